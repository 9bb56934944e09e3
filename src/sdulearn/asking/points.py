"""The points that may be asked about: a fixed sample of candidates, standardised and in principal axes.

The next question must not depend on how many points there are: scores are kept for at most
``MAX_CANDIDATES`` points drawn once. Means, deviations and axes are those of the candidates, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from sdulearn.errors import InputError
from sdulearn.types import Array, Indices, MatrixLike, Rows

MAX_CANDIDATES = 2000
# More axes than this carry noise for the few hundred points that are ever known.
MAX_AXES = 300


@dataclass(frozen=True, eq=False)
class Points:
    """Candidates, and the axes in which all points are seen."""

    X: Rows  # (n_points, n_features), all points
    candidates: Indices  # points that the design chooses from, in ascending order
    order: Indices  # (n_points,), A random order of all points: any beginning of it is a random sample
    mean: Array  # (n_features,), of the candidates
    scale: Array
    axes: Array  # (n_features, n_axes), principal axes of the standardised candidates
    variances: Array  # (n_axes,), variances along these axes

    @classmethod
    def from_rows(cls, X: MatrixLike, rng: np.random.Generator) -> Points:
        """Draw the candidates and find the axes."""
        rows = _checked(X)
        n = rows.shape[0]
        order = rng.permutation(n)
        # Candidates are drawn apart from the order: the random sample must not be part of them more often than others.
        candidates = np.sort(rng.choice(n, min(n, MAX_CANDIDATES), replace=False))
        sample = _dense(rows[candidates])
        mean = sample.mean(axis=0)
        scale = sample.std(axis=0)
        scale[scale == 0] = 1.0
        axes, variances = _principal_axes((sample - mean) / scale)
        return cls(rows, candidates, order, mean, scale, axes, variances)

    @cached_property
    def position(self) -> Indices:
        """Position of each point in the random order."""
        position = np.empty_like(self.order)
        position[self.order] = np.arange(len(self.order))
        return position

    @property
    def n_points(self) -> int:
        """Number of all points."""
        return int(self.X.shape[0])

    def coordinates(self, points: Indices) -> Array:
        """Points along the principal axes."""
        return ((_dense(self.X[points]) - self.mean) / self.scale) @ self.axes

    @cached_property
    def candidate_coordinates(self) -> Array:
        """Coordinates of the candidates."""
        return self.coordinates(self.candidates)

    def stretch(self, power: float) -> Array:
        """Factors of the axes that make a ridge penalty w' C^-power w; the mean variance stays 1."""
        factor = (self.variances / self.variances.mean()) ** (power / 2)
        return factor / np.sqrt(np.mean(self.variances * factor**2))

    @cached_property
    def distances(self) -> Array:
        """Distances between the candidates."""
        Z = self.candidate_coordinates.astype(np.float32)
        squares = np.einsum("ij,ij->i", Z, Z)
        square = squares[:, None] + squares - 2 * (Z @ Z.T)
        return np.sqrt(np.maximum(square, 0, out=square), out=square)


def _checked(X: MatrixLike) -> Rows:
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    if rows.shape[0] < 2:
        raise InputError(f"`X` has {rows.shape[0]} row; a question needs two points.")
    return rows


def _dense(rows: Rows) -> Array:
    return rows.toarray() if sparse.issparse(rows) else rows


def _principal_axes(Z: Array) -> tuple[Array, Array]:
    """Axes along which standardised rows vary, the largest variance first."""
    _, singular, axes = np.linalg.svd(Z, full_matrices=False)
    kept = (singular > 1e-6 * max(float(singular.max(initial=0)), 1e-12)) & (np.arange(len(singular)) < MAX_AXES)
    if not kept.any():
        raise InputError("All rows of `X` are equal: no model can tell them apart. Give features that differ.")
    return axes[kept].T.copy(), singular[kept] ** 2 / len(Z)
