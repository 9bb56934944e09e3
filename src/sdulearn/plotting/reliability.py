"""Whether predicted probabilities come true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.metrics import Calibration, calibration, pair_calibration
from sdulearn.metrics.cross_validation import held_out_same
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.plotting.display import ERROR_BARS, Display
from sdulearn.prior import clopper_pearson
from sdulearn.types import Array, Estimator, MatrixLike, Splitter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CONFIDENCE = 0.95


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Predicted probabilities against how often they came true, with intervals.

    Points on the diagonal: probabilities mean what they say. Flatter than it: the model is too sure of itself;
    steeper: not sure enough.

    Parameters
    ----------
    table : Calibration
        The bins and the expected calibration error.
    low, high : array of shape (n_bins,)
        95% interval of the share of events in each bin.
    event : str
        What is predicted.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of those axes.
    line_ : matplotlib ErrorbarContainer
        The bins with their intervals.

    See Also
    --------
    sdulearn.metrics.pair_calibration : The numbers, from answers.
    sdulearn.metrics.calibration : The numbers, from labels.
    sklearn.calibration.CalibrationDisplay : From labels alone, without intervals.

    Notes
    -----
    Each bin has a Clopper-Pearson interval. It is that of independent events; where answers share points, it is
    that of as many answers as the points make loose pairs. Answers are taken for right: those that are wrong pull the
    observed shares towards 1/2.

    Examples
    --------
    >>> from sdulearn.plotting import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_labels([0.1, 0.1, 0.9, 0.9], [-1, -1, 1, -1])
    >>> display.table.observed
    array([0. , 0.5])
    """

    table: Calibration
    low: Array
    high: Array
    event: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        cv: Splitter | None = 5,
        n_bins: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Draw how often the chance of "same" that an estimator gives to answers comes true.

        Parameters
        ----------
        estimator : estimator
            With ``predict_proba``; fitted where ``cv`` is None.
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.
        cv : int, splitter or None, default=5
            The answers are those that the estimator learns from: copies are fitted without the points of each fold,
            and judged by the answers about these. None: the estimator has not seen these answers.
        n_bins : int, default=10
            Bins of equal width from 0 to 1.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"`estimator` ({type(estimator).__name__}) has no predict_proba. Give one with probabilities, such "
                "as PairLogisticRegression."
            )
        if cv is None:
            return cls.from_predictions(estimator.predict_proba(X), y, n_bins=n_bins, ax=ax)
        chance, similar = held_out_same(estimator, X, y, cv=cv)
        table = calibration(chance, similar, n_bins=n_bins)
        return cls._of(table, _shared(read_pairs(y)), "same").plot(ax)

    @classmethod
    def from_predictions(
        cls, probability: ArrayLike, y: ArrayLike, *, n_bins: int = 10, ax: Axes | None = None
    ) -> Self:
        """Draw how often a chance of "same" comes true, by answers.

        Parameters
        ----------
        probability : array-like of shape (n_rows, n_classes)
            ``predict_proba`` of the rows, by a model that has not seen the answers.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.
        n_bins : int, default=10
            Bins of equal width from 0 to 1.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        table = pair_calibration(probability, y, n_bins=n_bins)
        return cls._of(table, _shared(read_pairs(y)), "same").plot(ax)

    @classmethod
    def from_labels(cls, probability: ArrayLike, event: ArrayLike, *, n_bins: int = 10, ax: Axes | None = None) -> Self:
        """Draw how often the probability of a class comes true, by labels.

        Parameters
        ----------
        probability : array-like of shape (n,)
            Predicted probability of the class, by a model that has not seen the labels.
        event : array-like of shape (n,)
            Whether it is the class: booleans, or classes of which the positive ones count.
        n_bins : int, default=10
            Bins of equal width from 0 to 1.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        return cls._of(calibration(probability, event, n_bins=n_bins), 1.0, "the class").plot(ax)

    @classmethod
    def _of(cls, table: Calibration, spread: float, event: str) -> Self:
        n = table.count / spread
        came = table.observed * n
        intervals = [clopper_pearson(a, b, _CONFIDENCE) for a, b in zip(came, n - came, strict=True)]
        low, high = np.transpose(intervals)
        return cls(table=table, low=low, high=high, event=event)

    def plot(self, ax: Axes | None = None, *, color: str = "C0") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        color : str, default="C0"
            Colour of the bins.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        ax = self._axes(ax)
        table = self.table
        # Rounding must not make a length negative.
        below = np.maximum(table.observed - self.low, 0)
        above = np.maximum(self.high - table.observed, 0)
        ax.plot([0, 1], [0, 1], color="0.6", ls="--", lw=1, zorder=0)
        label = f"expected calibration error {table.error:.3f}"
        self.line_ = ax.errorbar(
            table.predicted, table.observed, np.array([below, above]), color=color, label=label, **ERROR_BARS
        )
        ax.set(
            xlabel=f"predicted probability of {self.event}",
            ylabel="share that came true",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        ax.legend(loc="upper left")
        return self


def _shared(pairs: Pairs) -> float:
    """Answers for each two points: no more of them count than the points make loose pairs."""
    shown = pairs.ends if pairs.points is None else pairs.points[pairs.ends]
    return max(1.0, 2 * len(shown) / max(len(np.unique(shown)), 1))
