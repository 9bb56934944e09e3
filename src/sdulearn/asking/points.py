"""The points, standardised and in the principal axes of the candidates.

Candidates are a random sample. Only they are scored, so that the time to the next question does not
depend on the number of points.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from sdulearn.errors import InputError
from sdulearn.types import Array, Indices, MatrixLike, Rows

MAX_CANDIDATES = 2000
# In place of a power: columns are not standardised.
AS_GIVEN = -1.0
# With a few hundred known points, further axes are noise.
MAX_AXES = 300


class Points:
    """All points, in a random order; candidates, and their principal axes."""

    def __init__(self, X: MatrixLike, rng: np.random.Generator, grown_from: Sequence[int] = ()) -> None:
        self.X: Rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        self.n_points = int(self.X.shape[0])
        if self.n_points < 2:
            raise InputError(f"`X` has {self.n_points} row; a question needs two points.")
        # Any beginning of the order is a random sample of the points that there were then.
        stages = pairwise([0, *grown_from, self.n_points])
        self.order: Indices = np.concatenate([begin + rng.permutation(end - begin) for begin, end in stages])
        self.position: Indices = np.argsort(self.order)
        # Drawn separately: the random sample must not be among them more often than other points.
        drawn = rng.choice(self.n_points, min(self.n_points, MAX_CANDIDATES), replace=False)
        self.candidates: Indices = np.sort(drawn)
        sample = _dense(self.X[self.candidates])
        self.mean: Array = sample.mean(axis=0)
        self.scale: Array = sample.std(axis=0)
        self.scale[self.scale == 0] = 1.0
        # Principal axes of the standardised candidates (n_features, n_axes), and variances.
        self.axes, self.variances = _principal_axes((sample - self.mean) / self.scale)
        self._central: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}

    def coordinates(self, points: Indices) -> Array:
        """Coordinates of points along the principal axes."""
        return ((_dense(self.X[points]) - self.mean) / self.scale) @ self.axes

    def most_central(self, chosen: Sequence[int], others: Sequence[int]) -> int:
        """Return the one of ``chosen`` that is nearest to the centre of ``others``."""
        key = tuple(chosen), tuple(others)
        # An answer changes one or two classes, and the examples of all are looked up for each question.
        if key not in self._central:
            centre = self.coordinates(np.array(others)).mean(axis=0)
            distance = np.linalg.norm(self.coordinates(np.array(chosen)) - centre, axis=1)
            self._central[key] = chosen[int(np.argmin(distance))]
        return self._central[key]

    @cached_property
    def candidate_coordinates(self) -> Array:
        """Coordinates of the candidates."""
        return self.coordinates(self.candidates)

    def stretch(self, power: float) -> Array:
        """Matrix to coordinates of mean variance 1, or columns ``AS_GIVEN``, where a ridge penalty is w' C^-power w."""
        if power == AS_GIVEN:
            return self._as_given
        factor = (self.variances / self.variances.mean()) ** (power / 2)
        return np.diag(factor / np.sqrt(np.mean(self.variances * factor**2)))

    @cached_property
    def _as_given(self) -> Array:
        """Matrix to coordinates with the distances of the columns as given."""
        given = self.axes.T * (self.scale / np.sqrt(np.mean(self.scale**2)))
        values, vectors = np.linalg.eigh(given @ given.T)
        return vectors * np.sqrt(np.maximum(values, 0))

    @cached_property
    def distances(self) -> Array:
        """Distances between the candidates."""
        Z = self.candidate_coordinates.astype(np.float32)
        squares = np.einsum("ij,ij->i", Z, Z)
        square = squares[:, None] + squares - 2 * (Z @ Z.T)
        return np.sqrt(np.maximum(square, 0, out=square), out=square)


def _dense(rows: Rows) -> Array:
    return rows.toarray() if sparse.issparse(rows) else rows


def _principal_axes(Z: Array) -> tuple[Array, Array]:
    """Principal axes and variances of standardised rows, the largest variance first."""
    _, singular, axes = np.linalg.svd(Z, full_matrices=False)
    least = 1e-6 * max(float(singular.max(initial=0)), 1e-12)
    kept = (singular > least) & (np.arange(len(singular)) < MAX_AXES)
    if not kept.any():
        raise InputError("All rows of `X` are equal: no model can tell them apart. Give features that differ.")
    return axes[kept].T.copy(), singular[kept] ** 2 / len(Z)
