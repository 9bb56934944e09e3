"""Learning curve: score against the number of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state

from sdulearn.errors import InputError
from sdulearn.model_selection import PairKFold
from sdulearn.pairs import read_pairs
from sdulearn.plotting.display import ERROR_BARS, Display, set_sizes
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Estimator, Indices, MatrixLike, RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class PairLearningCurveDisplay(Display):
    """How good a model gets as pairs are added.

    Parameters
    ----------
    n_pairs : array of shape (n_sizes,)
        Numbers of training pairs.
    scores : array of shape (n_sizes, n_repeats)
        Score of every fit.
    score_name : str
        What the score is, for the axis.
    name : str or None
        Entry in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of those axes.
    line_ : matplotlib ErrorbarContainer
        Means with their standard errors.

    See Also
    --------
    PlanDisplay : The curve to expect, before any answer is there.
    sklearn.model_selection.LearningCurveDisplay : The same for labelled data.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.plotting import PairLearningCurveDisplay
    >>> X, y = make_waveform(3000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=200, prior=0.7, n_test=300, random_state=0
    ... )
    >>> display = PairLearningCurveDisplay.from_estimator(
    ...     PairLogisticRegression(), rows, codes, n_pairs=[20, 200], test=(X_test, y_test), random_state=0
    ... )
    >>> fewest, most = display.scores.mean(axis=1)
    >>> bool(fewest < most)
    True
    """

    n_pairs: Indices
    scores: Array
    score_name: str = "score"
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        n_pairs: Sequence[int] | None = None,
        test: tuple[MatrixLike, ArrayLike] | None = None,
        scoring: Callable[[Estimator, MatrixLike, ArrayLike], float] | None = None,
        n_repeats: int = 5,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> Self:
        """Fit on some of the pairs and all unlabeled rows, again and again.

        The share of similar pairs is that of all pairs at every size, and the larger sets of a
        repeat hold the smaller ones.

        Parameters
        ----------
        estimator : estimator or pipeline
            It is cloned for every fit.
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.
        n_pairs : sequence of int, optional
            Numbers of training pairs; five, up to all there are, by default.
        test : tuple of (X_test, y_test), optional
            Labelled points: the score is the accuracy, which of more than two classes needs labels in ``y`` too,
            to name them. Without ``test``, points are held out by :class:`~sdulearn.PairKFold`, and the score needs
            no label; with more than two classes it is the agreement with the answers held out.
        scoring : callable, optional
            A function (estimator, X, y) -> float: the score on the test points or on the held-out
            pairs; by default accuracy and the estimator's own ``score``.
        n_repeats : int, default=5
            Draws of pairs, or folds where pairs are held out.
        random_state : int, RandomState or None, default=None
            Seed of the draws.
        name : str, optional
            Entry in the legend.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **line_kw
            Passed to ``ax.errorbar``.

        Returns
        -------
        PairLearningCurveDisplay
            The display, drawn.
        """
        codes = np.asarray(read_pairs(y))
        rng = check_random_state(random_state)
        if test is None:
            splits = list(PairKFold(n_repeats, random_state=rng).split(X, codes))
            parts = [(train, safe_indexing(X, held), codes[held]) for train, held in splits]
            score = scoring or _own_score
        else:
            parts = [(np.arange(len(codes)), test[0], np.asarray(test[1]))] * n_repeats
            score = scoring or _accuracy
        sizes = _sizes(n_pairs, min(len(read_pairs(codes[train]).ends) for train, _, _ in parts))
        scores = np.empty((len(sizes), len(parts)))
        for k, (train, points, truth) in enumerate(parts):
            for i, rows in enumerate(_nested(codes[train], sizes, rng)):
                chosen = train[rows]
                model = clone(estimator).fit(safe_indexing(X, chosen), codes[chosen])
                if score is _accuracy:
                    _refuse_unnamed(model, codes[chosen])
                scores[i, k] = score(model, points, truth)
        score_name = "score of held-out pairs" if test is None else "accuracy"
        return cls(n_pairs=sizes, scores=scores, score_name=score_name, name=name).plot(ax, **line_kw)

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **line_kw
            Passed to ``ax.errorbar``.

        Returns
        -------
        PairLearningCurveDisplay
            The display itself.
        """
        ax = self._axes(ax)
        repeats = self.scores.shape[1]
        error = None
        if repeats > 1:
            error = self.scores.std(axis=1, ddof=1) / np.sqrt(repeats)
        style = {**ERROR_BARS, "label": self.name, **line_kw}
        self.line_ = ax.errorbar(self.n_pairs, self.scores.mean(axis=1), error, **style)
        ax.set(ylabel=self.score_name)
        set_sizes(ax, self.n_pairs.tolist())
        if self.name:
            ax.legend(loc="best")
        return self


def _own_score(model: Estimator, rows: MatrixLike, codes: Codes) -> float:
    return float(model.score(rows, codes))


def _accuracy(model: Estimator, points: MatrixLike, labels: ArrayLike) -> float:
    return float(accuracy_score(labels, model.predict(points)))


def _refuse_unnamed(model: Estimator, codes: Codes) -> None:
    """An InputError where more than two classes have no names."""
    if len(model.classes_) == 2 or (codes.ndim == 2 and codes.shape[1] > 3 and codes[:, 3].any()):
        return
    raise InputError(
        f"The model numbers its {len(model.classes_)} classes by size, so they cannot be compared with the labels in "
        "`test`. Give labels of some points in `y` (stack_pairs(..., labels=...)), a `scoring` that matches the "
        "classes, or no `test`: then the score is the agreement with held-out answers."
    )


def _sizes(n_pairs: Sequence[int] | None, most: int) -> Indices:
    """The numbers of training pairs: those asked for, or five up to all there are."""
    if n_pairs is None:
        return np.unique(np.rint(np.geomspace(max(most / 16, 5), most, 5)).astype(np.intp))
    sizes = np.asarray(n_pairs, dtype=np.intp)
    if sizes.ndim != 1 or not len(sizes) or sizes.min() < 1 or sizes.max() > most:
        raise InputError(f"`n_pairs` must hold numbers of training pairs between 1 and {most}, got {n_pairs!r}.")
    return sizes


def _nested(codes: Codes, sizes: Indices, rng: np.random.RandomState) -> list[Indices]:
    """Rows of n random pairs and of everything unlabeled, for each size n.

    Similar pairs keep their share of all.
    """
    pairs = read_pairs(codes)
    kinds = [rng.permutation(np.flatnonzero(kind)) for kind in (pairs.similar, ~pairs.similar)]
    rows = []
    for n in sizes:
        n_similar = round(n * len(kinds[0]) / len(pairs.ends))
        taken = np.concatenate([kinds[0][:n_similar], kinds[1][: n - n_similar]])
        rows.append(np.sort(np.concatenate([pairs.ends[taken].ravel(), pairs.unlabeled])))
    return rows
