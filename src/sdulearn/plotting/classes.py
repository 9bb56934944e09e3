"""Shares of the classes, and how sure a model is of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.plotting.display import Display
from sdulearn.types import Array, Estimator, MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEVELS = (0.5, 0.7, 0.9)


@dataclass(kw_only=True, eq=False, repr=False)
class ClassProbabilityDisplay(Display):
    """How many rows a model puts into each class, and how sure it is of them.

    A bar for each class: the share of rows that it is the likeliest class of, in parts by its
    probability there. A mark: the mean probability of the class over all rows.

    Parameters
    ----------
    names : tuple of K str
        Names of the classes.
    shares : array of shape (K, n_levels + 1)
        Share of all rows by likeliest class and by its probability, from low to high.
    means : array of shape (K,)
        Mean probability of each class.
    levels : tuple of float
        The probabilities that part the bars.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of those axes.
    bars_ : list of matplotlib BarContainer
        One for each part of the bars.
    marks_ : matplotlib PathCollection
        The means.

    See Also
    --------
    AnswerMatrixDisplay : Whether answers agree with the classes.

    Examples
    --------
    >>> from sdulearn.plotting import ClassProbabilityDisplay
    >>> P = [[0.95, 0.05, 0.0], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]]
    >>> display = ClassProbabilityDisplay.from_probabilities(P, ["a", "b", "c"])
    >>> display.shares.sum(axis=1).tolist()
    [0.5, 0.25, 0.25]
    """

    names: tuple[str, ...]
    shares: Array
    means: Array
    levels: tuple[float, ...] = _LEVELS

    @classmethod
    def from_estimator(cls, estimator: Estimator, X: MatrixLike, *, ax: Axes | None = None) -> Self:
        """Draw the classes of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            With ``predict_proba``.
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            Rows, best those that no answer is about.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ClassProbabilityDisplay
            The display, drawn.
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"`estimator` ({type(estimator).__name__}) has no predict_proba. Give one with probabilities, such "
                "as PairLogisticRegression."
            )
        return cls.from_probabilities(estimator.predict_proba(X), estimator.classes_, ax=ax)

    @classmethod
    def from_probabilities(
        cls,
        P: ArrayLike,
        names: Sequence[object],
        *,
        levels: Sequence[float] = _LEVELS,
        ax: Axes | None = None,
    ) -> Self:
        """Draw probabilities.

        Parameters
        ----------
        P : array-like of shape (n_rows, K)
            Probability of each class for each row.
        names : sequence of K names
            Names of the classes.
        levels : sequence of float, default=(0.5, 0.7, 0.9)
            The probabilities that part the bars, rising.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ClassProbabilityDisplay
            The display, drawn.
        """
        chances = np.asarray(P, dtype=np.float64)
        if chances.ndim != 2 or not len(chances) or chances.shape[1] != len(names):
            raise InputError(
                f"`P` must have a row or more, and a column for each of the {len(names)} names; got {chances.shape}."
            )
        shares = np.zeros((len(names), len(levels) + 1))
        np.add.at(shares, (chances.argmax(axis=1), np.searchsorted(levels, chances.max(axis=1), side="right")), 1.0)
        display = cls(
            names=tuple(str(name) for name in names),
            shares=shares / len(chances),
            means=chances.mean(axis=0),
            levels=tuple(levels),
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None, *, cmap: str = "Blues") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        cmap : str, default="Blues"
            Colours of the parts of the bars, the surest the darkest.

        Returns
        -------
        ClassProbabilityDisplay
            The display itself.
        """
        ax = self._axes(ax)
        colours = require("matplotlib", "demo").colormaps[cmap](np.linspace(0.25, 0.95, self.shares.shape[1]))
        places = np.arange(len(self.names))
        left = np.cumsum(self.shares, axis=1) - self.shares
        # The surest part comes first, so that it can be compared between classes.
        left = self.shares.sum(axis=1, keepdims=True) - left - self.shares
        edges = [0.0, *self.levels, 1.0]
        self.bars_ = [
            ax.barh(
                places,
                self.shares[:, k],
                left=left[:, k],
                color=colours[k],
                label=f"{edges[k]:g} to {edges[k + 1]:g}",
            )
            for k in range(self.shares.shape[1])
        ]
        self.marks_ = ax.scatter(self.means, places, marker="|", s=150, color="black", zorder=3, label="mean")
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set(xlabel="share of the rows", ylabel="class")
        ax.legend(title="probability", loc="upper left", bbox_to_anchor=(1.01, 1.0))
        return self
