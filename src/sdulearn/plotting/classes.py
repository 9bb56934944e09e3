"""Displays of predicted classes and of annotators: agreement, calibration, error rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers import AnswerGraph, AnswerModel, Rate
from sdulearn.errors import InputError
from sdulearn.metrics.classes import AnswerCounts, class_agreement
from sdulearn.metrics.cross_validation import held_out, held_out_same
from sdulearn.metrics.scores import Calibration, calibration, pair_calibration
from sdulearn.plotting.display import ERROR_BARS, Axes, Display
from sdulearn.prior import clopper_pearson
from sdulearn.types import Array, Estimator, MatrixLike, Splitter


class AnswerMatrixDisplay(Display):
    """Counts of answers "same" and "different" for every two predicted classes.

    Each cell shows both counts, "same" first, and is darker the larger the share of "same". Good predictions have a
    dark diagonal. A dark cell elsewhere means that two classes are one or are confused, a light cell on the diagonal
    that a class should be split.

    Attributes
    ----------
    counts, names : AnswerCounts and tuple of K str
        The counts, and the names of the classes.
    %(axes)s
    image_, texts_ : matplotlib AxesImage, and list of matplotlib Text
        The cells on and below the diagonal, and the counts in those that have answers.

    Examples
    --------
    >>> from sdulearn.plotting import AnswerMatrixDisplay
    >>> display = AnswerMatrixDisplay.from_predictions([1, 1, 2, 3, 2, 3], [1, 1, -2, -2, 3, 3])
    >>> display.counts.same
    ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    """

    counts: AnswerCounts
    names: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: MatrixLike, y: ArrayLike, *, cv: Splitter | None = 5, ax: Axes | None = None
    ) -> Self:
        """Draw the answers by the classes that a fitted estimator predicts.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            With ``predict``; unless ``cv`` is None, its last step needs ``orient``.
        %(X_and_y)s
        %(cv)s
        %(ax_and_display)s
        """
        predicted = np.asarray(estimator.predict(X))
        if cv is not None:
            predicted = held_out(estimator, X, y, predicted, cv=cv)
        return cls.from_predictions(predicted, y, ax=ax)

    @classmethod
    def from_answer_model(
        cls, model: AnswerModel, names: Sequence[str] | None = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw how often careful people say "same" and "different" about two classes, in per cent.

        Parameters
        ----------
        model : AnswerModel
            An answer model with a ``table``, such as ``answer_model_`` of a fitted estimator.
        names : sequence of str, optional
            Names of the classes; 1, 2, ... by default.
        %(ax_and_display)s
        """
        if model.table is None:
            raise InputError("`model` has no table: its errors do not depend on the classes. Draw its rates instead.")
        same = np.round(100 * model.table)
        classes = tuple(range(1, len(same) + 1))
        counts = AnswerCounts(classes, *(tuple(map(tuple, table.tolist())) for table in (same, 100 - same)))
        return cls(counts=counts, names=tuple(map(str, classes if names is None else names))).plot(ax)

    @classmethod
    def from_predictions(cls, y_pred: ArrayLike, y: ArrayLike, *, ax: Axes | None = None) -> Self:
        """Draw the answers by given classes.

        Parameters
        ----------
        y_pred : array-like of shape (n_rows,)
            Classes predicted by a model that has not seen the answers.
        %(y)s
        %(ax_and_display)s
        """
        counts = class_agreement(y_pred, y).counts
        assert counts is not None
        return cls(counts=counts, names=tuple(map(str, counts.classes))).plot(ax)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        same = np.array(self.counts.same)
        total = same + np.array(self.counts.different)
        # The matrix is symmetric.
        shown = np.tril(total > 0)
        shares = np.divide(same, total, out=np.full(same.shape, np.nan), where=shown)
        self.image_ = ax.imshow(shares, **{"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, **style})
        self.texts_ = []
        for i, j in np.argwhere(shown).tolist():
            text = f"{self.counts.same[i][j]:.4g} / {self.counts.different[i][j]:.4g}"
            colour = "white" if shares[i, j] > 0.6 else "black"
            self.texts_.append(ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="small"))
        ax.set_xticks(range(len(self.names)), self.names)
        ax.set_yticks(range(len(self.names)), self.names)
        ax.set(xlabel="class", ylabel="class", title="answers: same / different")


class AnnotatorDisplay(Display):
    """Forest plot of annotators: error rate of each with its interval, the highest first.

    Attributes
    ----------
    names, rates : tuple of str, and tuple of Rate
        The annotators that are drawn, and their error rates.
    mean : float
        Error rate of all answers.
    %(axes)s
    points_ : matplotlib ErrorbarContainer
        The rates with their intervals.

    Examples
    --------
    >>> from sdulearn.answers import AnswerGraph, AnswerModel
    >>> from sdulearn.plotting import AnnotatorDisplay
    >>> graph = AnswerGraph.from_answers([(0, 1), (1, 2)], [True, False], annotators=[1, 2])
    >>> model = AnswerModel.given({1: 0.1, 2: 0.2}, graph)
    >>> AnnotatorDisplay.from_answer_model(model, ["ann", "bob"]).names
    ('bob', 'ann')
    """

    names: tuple[str, ...]
    rates: tuple[Rate, ...]
    mean: float

    @classmethod
    def from_answer_model(
        cls, model: AnswerModel, names: Sequence[str] | None = None, *, most: int = 40, ax: Axes | None = None
    ) -> Self:
        """Draw the error rates of an answer model.

        Parameters
        ----------
        model : AnswerModel
            Such as ``answer_model_`` of a fitted estimator.
        names : sequence of str, optional
            Names of annotators 1, 2, ..., such as ``annotator_names`` of the answers; their numbers by default.
        most : int, default=40
            Draw at most this many annotators, those with the highest rates.
        %(ax_and_display)s
        """
        worst = sorted(model.by_annotator, key=lambda a: -model.by_annotator[a].value)
        known = range(1, max(worst, default=0) + 1) if names is None else names
        if len(known) < max(worst, default=0):
            raise InputError(f"`names` has {len(known)} names, but there is an annotator {max(worst)}.")
        shown = [str(known[a - 1]) if a else "unknown" for a in worst[:most]]
        rates = tuple(model.by_annotator[a] for a in worst[:most])
        return cls(names=tuple(shown), rates=rates, mean=model.error_rate.value).plot(ax)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        value, low, high = np.array([(rate.value, rate.low, rate.high) for rate in self.rates]).reshape(-1, 3).T
        options = {"linestyle": "none", **ERROR_BARS, **style}
        self.points_ = ax.errorbar(value, np.arange(len(value)), xerr=[value - low, high - value], **options)
        ax.axvline(self.mean, color="0.6", linestyle="--", zorder=0)
        ax.set_yticks(range(len(value)), self.names)
        ax.invert_yaxis()
        ax.set(xlabel="share of wrong answers", title="annotators with the highest rates (dashed: all answers)")


class ReliabilityDisplay(Display):
    """Reliability diagram of the predicted probability of "same", with intervals.

    Points on the diagonal are calibrated. A flatter curve means that the model is overconfident, a steeper one that it
    is underconfident. Each bin has a Clopper-Pearson interval, for which no more answers count than their points could
    make loose pairs. Wrong answers pull the observed shares towards 1/2.

    Attributes
    ----------
    table, low, high : Calibration, and arrays of shape (n_bins,)
        Bins and expected calibration error; 95% interval of the share of "same" in each bin.
    %(axes)s
    line_ : matplotlib ErrorbarContainer
        The bins with their intervals.

    Examples
    --------
    >>> from sdulearn.plotting import ReliabilityDisplay
    >>> P = [[0.1, 0.9], [0.0, 1.0], [0.1, 0.9], [0.0, 1.0]]
    >>> ReliabilityDisplay.from_predictions(P, [1, 1, -2, -2]).table.observed
    array([0.5])
    """

    table: Calibration
    low: Array
    high: Array

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
        """Draw the calibration of an estimator.

        Parameters
        ----------
        estimator : estimator
            With ``predict_proba``; fitted if ``cv`` is None.
        %(X_and_y)s
        %(cv)s
        %(n_bins)s
        %(ax_and_display)s
        """
        if not hasattr(estimator, "predict_proba"):
            name = type(estimator).__name__
            raise InputError(f"`estimator` ({name}) has no predict_proba. Give one such as PairLogisticRegression.")
        if cv is None:
            return cls.from_predictions(estimator.predict_proba(X), y, n_bins=n_bins, ax=ax)
        chance, similar = held_out_same(estimator, X, y, cv)
        return cls._with_intervals(calibration(chance, similar, n_bins=n_bins), y).plot(ax)

    @classmethod
    def from_predictions(
        cls, probability: ArrayLike, y: ArrayLike, *, n_bins: int = 10, ax: Axes | None = None
    ) -> Self:
        """Draw the calibration of given probabilities.

        Parameters
        ----------
        probability : array-like of shape (n_rows, n_classes)
            Class probabilities of the rows by a model that has not seen the answers.
        %(y)s
        %(n_bins)s
        %(ax_and_display)s
        """
        return cls._with_intervals(pair_calibration(probability, y, n_bins=n_bins), y).plot(ax)

    @classmethod
    def _with_intervals(cls, table: Calibration, y: ArrayLike) -> Self:
        graph = AnswerGraph.from_y(y)
        # No more answers count than the points could make loose pairs.
        n = table.count / max(1.0, 2 * graph.n_answers / max(int(np.sum(graph.degree > 0)), 1))
        same = table.observed * n
        low, high = np.transpose([clopper_pearson(*each) for each in zip(same, n - same, strict=True)])
        return cls(table=table, low=low, high=high)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        table = self.table
        # Rounding must not make a length negative.
        reach = np.maximum([table.observed - self.low, self.high - table.observed], 0)
        ax.plot([0, 1], [0, 1], color="0.6", ls="--", lw=1, zorder=0)
        options = {"color": "C0", "label": f"expected calibration error {table.error:.3f}", **ERROR_BARS, **style}
        self.line_ = ax.errorbar(table.predicted, table.observed, reach, **options)
        ax.set(xlabel="predicted probability of same", ylabel="share that came true")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.legend(loc="upper left")
