"""Learning curves: score by the number of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import U
from sdulearn.errors import InputError
from sdulearn.metrics.cross_validation import fitted
from sdulearn.model_selection import PairKFold
from sdulearn.plotting.display import ERROR_BARS, Axes, Display
from sdulearn.progress import long_work, steps
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, MatrixLike, RandomState

# Estimators that choose settings hold out a fifth of each kind of answer.
_FEWEST_OF_A_KIND = 5


class PairLearningCurveDisplay(Display):
    """Learning curve: score of a model by the number of training pairs.

    Attributes
    ----------
    n_pairs, scores : arrays of shape (n_sizes,) and (n_sizes, n_repeats)
        Numbers of training pairs, and the score of every fit.
    score_name, name : str
        Label of the axis, and entry in the legend.
    %(axes)s
    line_ : matplotlib ErrorbarContainer
        Means with their standard errors.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.plotting import PairLearningCurveDisplay
    >>> X, y = make_waveform(3000, random_state=0)
    >>> sizes = {"n_pairs": 200, "n_unlabeled": 200, "n_test": 300}
    >>> rows, codes, *test = sample_sdu(X, y, **sizes, prior=0.7, random_state=0)
    >>> options = {"n_pairs": [20, 200], "test": test, "random_state": 0}
    >>> model = PairLogisticRegression()
    >>> display = PairLearningCurveDisplay.from_estimator(model, rows, codes, **options)
    >>> bool(display.scores[0].mean() < display.scores[1].mean())
    True
    """

    n_pairs: Indices
    scores: Array
    score_name: str = "score"
    name: str | None = None

    @classmethod
    @long_work
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
        """Fit on random subsets of the pairs, with all unlabeled rows.

        Every subset has the share of similar pairs of all, and within a repeat larger subsets contain smaller ones.

        Parameters
        ----------
        estimator : estimator or pipeline
            It is cloned for every fit.
        %(X_and_y)s
        n_pairs : sequence of int, optional
            Numbers of training pairs; by default up to five. The smallest has five pairs of the rarer kind, which
            estimators that choose settings need.
        test : tuple of (X_test, y_test), optional
            Labelled test points; for more than two classes ``y`` must have labels, too. Without ``test``, points are
            held out by :class:`~sdulearn.PairKFold`.
        scoring : callable, optional
            A function (estimator, X, y) -> float; by default accuracy on the test points, or the estimator's own
            ``score`` on the held-out pairs.
        n_repeats : int, default=5
            Number of random draws, or of folds without ``test``.
        random_state : int, RandomState or None, default=None
            Seed of the draws.
        name : str, optional
            Entry in the legend.
        %(ax)s
        **line_kw
            Passed to the matplotlib function that draws the line.

        %(display)s
        """
        codes = np.asarray(AnswerGraph.from_y(y))
        rng = check_random_state(random_state)
        if test is None:
            splits = list(PairKFold(n_repeats, random_state=rng).split(X, codes))
            parts = [(train, safe_indexing(X, held), codes[held]) for train, held in splits]
            score = check_scoring(estimator, scoring)
        else:
            parts = [(np.arange(len(codes)), test[0], np.asarray(test[1]))] * n_repeats
            score = check_scoring(estimator, scoring or "accuracy")
        sizes = _sizes(n_pairs, [AnswerGraph.from_y(codes[train]).same > 0 for train, _, _ in parts])
        scores = np.empty((len(sizes), len(parts)))
        for k, (train, points, truth) in enumerate(steps(parts, "repeats")):
            for i, rows in enumerate(steps(_nested(codes[train], sizes, rng), "sizes")):
                chosen = train[rows]
                # Without warnings that there are few answers.
                model = fitted(estimator, safe_indexing(X, chosen), codes[chosen])
                if test is not None and scoring is None:
                    _refuse_unnamed(model, codes[chosen])
                scores[i, k] = score(model, points, truth)
        score_name = "score of held-out pairs" if test is None else "accuracy"
        return cls(n_pairs=sizes, scores=scores, score_name=score_name, name=name).plot(ax, **line_kw)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        repeats = self.scores.shape[1]
        error = self.scores.std(axis=1, ddof=1) / np.sqrt(repeats) if repeats > 1 else None
        options = {**ERROR_BARS, "label": self.name, **style}
        self.line_ = ax.errorbar(self.n_pairs, self.scores.mean(axis=1), error, **options)
        ax.set(xlabel="number of pairs", ylabel=self.score_name, xscale="log")
        ax.set_xticks(self.n_pairs, self.n_pairs.astype(str))
        ax.minorticks_off()
        if self.name:
            ax.legend(loc="best")


def _refuse_unnamed(model: Estimator, codes: Codes) -> None:
    """Raise an InputError if more than two classes have no names."""
    if len(model.classes_) > 2 and not AnswerGraph.from_y(codes).labels.any():
        raise InputError(
            f"The model numbers its {len(model.classes_)} classes by size, so they cannot be compared with the labels "
            "in `test`. Give labels of some points in `y` (stack_pairs(..., labels=...)), a `scoring` that matches the "
            "classes, or no `test`."
        )


def _sizes(n_pairs: Sequence[int] | None, kinds: Sequence[Mask]) -> Indices:
    """Return the numbers of training pairs: those given, or five up to all."""
    most = min(map(len, kinds))
    if n_pairs is None:
        rarer = min(min(share, 1 - share) for share in (float(np.mean(kind)) for kind in kinds))
        # Half a pair more, as the numbers of each kind are rounded.
        fewest = max(most / 16, 5, (_FEWEST_OF_A_KIND + 0.5) / rarer if rarer else 0)
        return np.unique(np.rint(np.geomspace(min(fewest, most), most, 5)).astype(np.intp))
    sizes = np.asarray(n_pairs, dtype=np.intp)
    if sizes.ndim != 1 or not len(sizes) or sizes.min() < 1 or sizes.max() > most:
        raise InputError(f"`n_pairs` must contain numbers of training pairs between 1 and {most}, got {n_pairs!r}.")
    return sizes


def _nested(codes: Codes, sizes: Indices, rng: np.random.RandomState) -> list[Indices]:
    """Return the rows of random pairs, in the ratio of all, and all unlabeled rows by size."""
    graph = AnswerGraph.from_y(codes)
    unlabeled = np.flatnonzero(graph.source == U)
    kinds = [rng.permutation(np.flatnonzero(kind)) for kind in (graph.same > 0, graph.same < 0)]
    rows = []
    for n in sizes:
        n_similar = round(n * len(kinds[0]) / graph.n_answers)
        taken = np.concatenate([kinds[0][:n_similar], kinds[1][: n - n_similar]])
        rows.append(np.sort(np.concatenate([graph.end_rows[taken].ravel(), unlabeled])))
    return rows
