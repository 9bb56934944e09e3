"""Decision boundary over two features, with the pairs as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import U
from sdulearn.errors import InputError, require
from sdulearn.plotting.display import Axes, Display
from sdulearn.sklearn_private import column_indices
from sdulearn.types import Array, Estimator, Mask, MatrixLike

_SAME: dict[str, Any] = {"label": "same class", "color": "0.15", "linestyle": "-"}
_DIFFERENT: dict[str, Any] = {"label": "different", "color": "#d55e00", "linestyle": "--"}


class PairBoundaryDisplay(Display):
    """Decision boundary of a model over two features, with the pairs drawn as lines.

    In a good model few lines of similar pairs (solid) cross the boundary, and most of dissimilar pairs (dashed) do.

    Attributes
    ----------
    xx0, xx1, response : array of shape (resolution, resolution)
        The grid, and on it the probability of +1 or the decision value; of K > 2 classes each, along a third axis.
    level : float
        The response on the boundary; with K > 2 classes the lead of a class over all others.
    ends, similar, unlabeled : arrays of shape (n_pairs, 2, 2), (n_pairs,) and (n_unlabeled, 2)
        Ends of the pairs that are drawn, whether each pair is similar, and the unlabeled rows.
    names : tuple of two str
        Names of the features.
    %(axes)s
    surface_, boundaries_, lines_ : matplotlib objects
        The coloured response or classes, the boundaries, and two lines: all similar and all dissimilar pairs.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import sample_sdu
    >>> from sdulearn.plotting import PairBoundaryDisplay
    >>> X, y = make_blobs(400, centers=[(-2, 0), (2, 0)], random_state=0)
    >>> rows, codes = sample_sdu(X, 2 * y - 1, n_pairs=30, n_unlabeled=50, prior=0.7, random_state=0)
    >>> model = PairLogisticRegression().fit(rows, codes)
    >>> display = PairBoundaryDisplay.from_estimator(model, rows, codes)
    >>> display.ends.shape
    (30, 2, 2)
    """

    xx0: Array
    xx1: Array
    response: Array
    level: float
    ends: Array
    similar: Mask
    unlabeled: Array
    names: tuple[str, str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        features: Sequence[int | str] = (0, 1),
        max_pairs: int | None = 100,
        resolution: int = 150,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the boundary of a fitted estimator over two of its features.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            With ``predict_proba`` or ``decision_function``.
        %(X_and_y)s
        features : pair of int or str, default=(0, 1)
            The two features; all others are set to their median.
        max_pairs : int or None, default=100
            Draw at most this many pairs, chosen at random; None draws all.
        resolution : int, default=150
            Grid points per side.
        %(ax_and_display)s
        """
        values = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        columns = column_indices(X, list(features))
        if len(columns) != 2:
            raise InputError(f"`features` must name two columns, got {features!r}.")
        graph = AnswerGraph.from_y(y)
        drawn = np.arange(graph.n_answers)
        if max_pairs is not None and len(drawn) > max_pairs:
            drawn = np.sort(check_random_state(0).permutation(drawn)[:max_pairs])
        flat = values[:, columns]
        margin = np.array([0.05 * length or 1.0 for length in np.ptp(flat, axis=0)])
        sides = np.linspace(flat.min(axis=0) - margin, flat.max(axis=0) + margin, resolution)
        xx0, xx1 = np.meshgrid(*sides.T)
        grid = np.tile(np.median(values, axis=0), (xx0.size, 1))
        grid[:, columns] = np.column_stack([xx0.ravel(), xx1.ravel()])
        response, level = _respond(estimator, _like(X, grid))
        label = X.columns if hasattr(X, "columns") else [f"feature {k}" for k in range(values.shape[1])]
        return cls(
            xx0=xx0,
            xx1=xx1,
            response=response.reshape(*xx0.shape, *response.shape[1:]),
            level=level,
            ends=flat[graph.end_rows[drawn]],
            similar=graph.same[drawn] > 0,
            unlabeled=flat[graph.source == U],
            names=(str(label[columns[0]]), str(label[columns[1]])),
        ).plot(ax)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        if self.response.ndim == 2:
            surface = leads = self.response[..., None]
            colours = {"cmap": "RdBu", "norm": require("matplotlib.colors", "demo").CenteredNorm(self.level)}
        else:
            surface = np.argmax(self.response, axis=2)
            n_classes = self.response.shape[2]
            n_colours = 10 if n_classes <= 10 else 20
            colours = {"cmap": f"tab{n_colours}", "vmin": 0.0, "vmax": n_colours - 1.0}
            # The lead of each class over the best other one.
            others = [np.delete(self.response, k, axis=2).max(axis=2) for k in range(n_classes)]
            leads = self.response - np.stack(others, axis=2)
        options = {"alpha": 0.35, "linewidth": 0, "rasterized": True, **colours, **style}
        self.surface_ = ax.pcolormesh(self.xx0, self.xx1, surface.reshape(self.xx0.shape), **options)
        self.boundaries_ = [
            ax.contour(self.xx0, self.xx1, lead, levels=[self.level], colors="black", linewidths=2)
            for lead in np.moveaxis(leads, 2, 0)
            if lead.min() < self.level < lead.max()
        ]
        x, y = self.unlabeled.T
        ax.scatter(x, y, s=7, color="0.45", alpha=0.5, linewidths=0, zorder=2)
        self.lines_ = []
        for kind, look in ((self.similar, _SAME), (~self.similar, _DIFFERENT)):
            # Gaps between the pairs make them one line.
            x, y = np.insert(self.ends[kind], 2, np.nan, axis=1).reshape(-1, 2).T
            self.lines_ += ax.plot(x, y, marker="o", ms=3.5, mew=0, lw=0.9, alpha=0.75, zorder=3, **look)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend(loc="best", framealpha=0.9)


def _like(X: MatrixLike, grid: Array) -> MatrixLike:
    """Return the grid as the same kind of table as ``X``, with its column names."""
    if not hasattr(X, "columns"):
        return sparse.csr_matrix(grid) if sparse.issparse(X) else grid
    return type(X)(grid, **{"columns" if hasattr(X, "iloc") else "schema": list(X.columns)})


def _respond(estimator: Estimator, X: MatrixLike) -> tuple[Array, float]:
    """Return probabilities, or else decision values, and their value on the boundary."""
    if hasattr(estimator, "predict_proba"):
        P = np.asarray(estimator.predict_proba(X))
        return (P[:, 1], 0.5) if P.shape[1] == 2 else (P, 0.0)
    return np.asarray(estimator.decision_function(X)), 0.0
