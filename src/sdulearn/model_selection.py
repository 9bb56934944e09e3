"""Cross-validation over points: no point is in a training part and its test part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.stats import entropy, rankdata
from sklearn.utils import check_random_state

from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.likelihood import Likelihood
from sdulearn.errors import InputError, UselessModelWarning, warn
from sdulearn.types import Array, Indices, Mask, MatrixLike, RandomState, Splitter

# The fold of hubs: they cannot be held out, and are in every part.
NO_FOLD = -1
# A model is useful if it raises the log likelihood of all held-out answers by more than this above class shares alone,
# odds of 20 to 1. Of 160 boosted fits to noise (30 to 800 answers) 14 did, of 96 to rings and lines (50 answers and
# more) all.
_MIN_GAIN = 3.0


class PairKFold:
    """K folds over points: no point is in both a training part and its test part.

    The answers of a connected component stay in one fold if it is small enough, and loose pairs of either kind, and
    points in no answer, are each spread evenly over all folds. A component too large for a fold is cut where few
    answers are lost; :meth:`n_cut` counts them. A fold without an answer gets one from another, if there are enough. A
    hub, a point in many answers (:meth:`AnswerGraph.hubs <sdulearn.answers.AnswerGraph.hubs>`), cannot be held out: it
    is in every part. With groups of rows that belong together, a group takes the place of a point: it is never split.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether components and points in no answer are assigned in random order.
    random_state : int, RandomState or None, default=0
        Seed of the shuffle: the same folds in every run, unless it is None.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import PairKFold
    >>> y = np.array([1, 1, 2, 2, -3, -3, -4, -4, 0, 0])
    >>> for train, test in PairKFold(2, shuffle=False).split(y, y):
    ...     print(y[test])
    [ 1  1 -3 -3  0]
    [ 2  2 -4 -4  0]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = 0) -> None:
        if not (isinstance(n_splits, int | np.integer) and n_splits >= 2):
            raise InputError(f"`n_splits` must be an integer of 2 or more, got {n_splits!r}.")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"PairKFold({self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state})"

    def get_n_splits(self, X: MatrixLike = None, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored
            Here because scikit-learn passes them.

        Returns
        -------
        int
            ``n_splits``.
        """
        return self.n_splits

    def split(
        self, X: MatrixLike, y: ArrayLike | AnswerGraph, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield the row numbers of training and test part, in ascending order.

        An answer between points of two folds is in the training part of the other folds and in no test part.

        Parameters
        ----------
        X : ignored
            Here because scikit-learn passes it.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
            What is known about each row.
        groups : array-like of shape (n_rows,), optional
            Equal values are rows that belong together, such as those of one person; no group is split.

        Yields
        ------
        train, test : int arrays
            Row numbers.
        """
        fold, other = _folds_of_rows(self, AnswerGraph.from_y(y, groups=groups))
        for k in range(self.n_splits):
            touched = (fold == k) | (other == k)
            whole = np.isin(fold, (k, NO_FOLD)) & np.isin(other, (k, NO_FOLD))
            yield np.flatnonzero(~touched), np.flatnonzero(touched & whole)

    def n_cut(self, X: MatrixLike, y: ArrayLike | AnswerGraph) -> int:
        """Number of answers between points of two folds: they are in no test part.

        Parameters
        ----------
        X, y
            As in :meth:`split`.

        Returns
        -------
        int
            Their number; 0 if no component of the answers was too large for a fold.
        """
        graph = AnswerGraph.from_y(y)
        first, second = self.fold_of_points(graph)[graph.ends].T
        return int(np.sum((first != second) & (first != NO_FOLD) & (second != NO_FOLD)))

    def fold_of_points(self, y: ArrayLike | AnswerGraph) -> Indices:
        """Return the fold of every point.

        Parameters
        ----------
        y
            As in :meth:`split`.

        Returns
        -------
        int array of shape (n_points,)
            Numbers from 0 to ``n_splits - 1``, and -1 for hubs; points in ascending order of their numbers in ``y``.
        """
        rng = check_random_state(self.random_state)
        graph = AnswerGraph.from_y(y)
        for name, kind in (("similar", 1), ("dissimilar", -1)):
            count = int(np.sum(graph.same == kind))
            if 0 < count < self.n_splits:
                need = f"{self.n_splits} folds need at least {self.n_splits} {name} pairs, but there are {count}"
                remedy = "Lower `cv`, the number of folds" if count > 1 else "Choose an estimator without folds"
                raise InputError(f"{need}. {remedy}, or add pairs.")
        if graph.clusters is not None and (n_free := len(free_clusters(graph))) < self.n_splits:
            raise InputError(
                f"{self.n_splits} folds need answers about at least {self.n_splits} groups, but there are {n_free}. "
                "Lower `cv`, the number of folds, or ask about rows of more groups."
            )
        unit = fold_units(graph, self.n_splits)
        fold_of_unit = self._fold_of_units(graph, unit, rng)
        if graph.clusters is not None:
            _share_units(fold_of_unit, self.n_splits)
        fold = np.full(graph.n_points, NO_FOLD)
        fold[unit >= 0] = fold_of_unit[unit[unit >= 0]]
        if graph.clusters is None:
            _share_answers(fold, graph.ends, self.n_splits)
        units = graph.units
        unasked = np.setdiff1d(units, units[graph.degree > 0])
        dealt = np.full(int(units.max(initial=-1)) + 1, NO_FOLD)
        dealt[unasked] = self._deal(len(unasked), rng)
        return np.where(dealt[units] == NO_FOLD, fold, dealt[units])

    def _fold_of_units(self, graph: AnswerGraph, unit: Indices, rng: np.random.RandomState) -> Indices:
        """Deal single answers by kind, larger units to the fold with the fewest of their kinds."""
        of_ends = unit[graph.ends]
        cut = (of_ends[:, 0] != of_ends[:, 1]) & (of_ends >= 0).all(axis=1)
        of_answer = np.where(cut, -1, of_ends.max(axis=1, initial=-1))
        counted = np.flatnonzero(of_answer >= 0)
        n_units = int(unit.max(initial=-1)) + 1
        # Similar and dissimilar answers of each unit, those with hubs included.
        cell = 2 * of_answer[counted] + (graph.same[counted] < 0)
        kinds = np.bincount(cell, minlength=2 * n_units).reshape(-1, 2)
        having, first = np.unique(of_answer[counted], return_index=True)
        by_answer = having[np.argsort(first)]
        fold = np.empty(n_units, dtype=np.intp)
        single = kinds.sum(axis=1) == 1
        for kind in range(2):
            loose = by_answer[single[by_answer] & (kinds[by_answer, kind] == 1)]
            fold[loose] = self._deal(len(loose), rng)
        larger = np.flatnonzero(~single)
        if not len(larger):
            return fold
        load = np.array([np.bincount(fold[single], kinds[single, k], self.n_splits) for k in (0, 1)], dtype=float)
        order = rng.permutation(larger) if self.shuffle else larger
        total = np.maximum(kinds.sum(axis=0), 1)
        for large in order[np.argsort(-kinds[order].sum(axis=1), kind="stable")]:
            # A unit whose answers were all cut counts by itself.
            its_kinds = kinds[large] + 1e-3
            fold[large] = np.argmin((its_kinds / total**2) @ load)
            load[:, fold[large]] += its_kinds
        return fold

    def _deal(self, count: int, rng: np.random.RandomState) -> Indices:
        dealt = np.arange(count) % self.n_splits
        return rng.permutation(dealt) if self.shuffle else dealt


def free_clusters(graph: AnswerGraph) -> Indices:
    """Return the clusters, or points, that are in answers and can be held out: none of their points is a hub."""
    return np.setdiff1d(graph.units[graph.degree > 0], graph.units[graph.hubs()])


def fold_units(graph: AnswerGraph, n_splits: int) -> Indices:
    """Return the unit of each point, which stays in one fold; -1 for hubs, their clusters and unasked points."""
    # A unit is a component of the answers between nodes, points that are not hubs or clusters without one; a large one
    # is cut.
    node = graph.units
    free = np.isin(node, free_clusters(graph))
    nodes = np.unique(node[free])
    # Sorted, so that no fold depends on which end of an answer comes first.
    between = np.sort(node[graph.ends[free[graph.ends].all(axis=1)]], axis=1)
    component = graph.component
    if graph.clusters is not None or len(graph.hubs()):
        component = connect(between, graph.n_points)
    numbers, unit = np.unique(component[nodes], return_inverse=True)
    most = max(len(nodes) / n_splits, 2 if graph.clusters is None else 1)
    unit_of_node = np.full(graph.n_points, -1)
    unit_of_node[nodes] = unit
    n_units = len(numbers)
    for big in np.flatnonzero(np.bincount(unit, minlength=n_units) > most):
        # Breadth first, so that neighbours are close to each other.
        adjacency = csr_matrix((np.ones(len(between)), tuple(between.T)), shape=(graph.n_points,) * 2)
        start = nodes[unit == big][0]
        order = breadth_first_order(adjacency, start, directed=False, return_predecessors=False)
        n_pieces = int(np.ceil(len(order) / most))
        piece = np.arange(len(order)) // int(np.ceil(len(order) / n_pieces))
        if graph.clusters is not None:
            # Few large nodes: pieces of equal size, none of them empty.
            piece = np.arange(len(order)) * n_pieces // len(order)
        # The first piece keeps the number of the component.
        unit_of_node[order] = np.where(piece == 0, big, n_units + piece - 1)
        n_units += int(piece.max())
    return np.where(free, unit_of_node[node], -1)


def _share_units(fold_of_unit: Indices, n_splits: int) -> None:
    """Give each fold without a unit one from the fullest; no unit is larger than a fold, so there are enough."""
    for empty in np.setdiff1d(np.arange(n_splits), fold_of_unit):
        fullest = np.bincount(fold_of_unit, minlength=n_splits).argmax()
        fold_of_unit[np.flatnonzero(fold_of_unit == fullest)[-1]] = empty


def _share_answers(fold: Indices, ends: Indices, n_splits: int) -> None:
    """Give each fold without an answer the points of one, from folds that keep some."""
    for empty in range(n_splits):
        of_ends = fold[ends]
        whole = (of_ends[:, 0] == of_ends[:, 1]) | (of_ends == NO_FOLD).any(axis=1)
        owner = np.where(whole, of_ends.max(axis=1, initial=NO_FOLD), NO_FOLD)
        count = np.bincount(owner[owner >= 0], minlength=n_splits)
        movable = (of_ends >= 0).all(axis=1)
        if count[empty] or not movable.any():
            continue
        lost = np.bincount(ends[owner >= 0].ravel(), minlength=len(fold))[ends]
        together = of_ends[:, :1] == of_ends[:, 1:]
        left = count[of_ends] - np.where(together, lost.sum(axis=1, keepdims=True), lost)
        worst = np.where(of_ends == empty, len(ends), left).min(axis=1)
        best = int(np.argmax(np.where(movable, worst, -1)))
        if worst[best] > 0:
            fold[ends[best]] = empty


def _folds_of_rows(splitter: PairKFold, graph: AnswerGraph) -> tuple[Indices, Indices]:
    """Return the fold of each row's point, and of the other end of its answer, else the same again."""
    fold = splitter.fold_of_points(graph)[graph.row_point]
    other = fold.copy()
    other[graph.end_rows] = fold[graph.end_rows[:, ::-1]]
    return fold, other


def row_splits(cv: Splitter, X: MatrixLike, graph: AnswerGraph) -> Iterator[tuple[Indices, Indices]]:
    """Yield the training and test rows of each fold, as numbers of the kept rows."""
    splitter = splitter_of(cv)
    # Splitters of other libraries need ``y`` as an array.
    return splitter.split(X, graph if isinstance(splitter, PairKFold) else np.asarray(graph))


def fold_parts(cv: Splitter, X: MatrixLike, graph: AnswerGraph) -> list[tuple[Indices, Indices]]:
    """Return the training rows of each fold, and all rows of the points it holds out, as numbers of the kept rows."""
    splitter = splitter_of(cv)
    if not isinstance(splitter, PairKFold):
        return list(row_splits(splitter, X, graph))
    fold, other = _folds_of_rows(splitter, graph)
    folds = range(splitter.n_splits)
    return [(np.flatnonzero((fold != k) & (other != k)), np.flatnonzero(fold == k)) for k in folds]


class HeldOut(NamedTuple):
    """The mean log likelihood of an answer at predictions of models that have not seen it."""

    by_model: float
    by_shares: float  # by class shares alone, without ``X``
    n_answers: float  # independent ones

    @classmethod
    def at(cls, likelihood: Likelihood, scores: Array) -> HeldOut:
        """Return that of all answers, at held-out scores (n_points, n_scores)."""
        by_model = float(likelihood.mean(scores[:, :, None])[0][0])
        return cls(by_model, likelihood.best_constant(), likelihood.total)

    @classmethod
    def by_agreement(cls, agrees: Mask, similar: Mask) -> HeldOut:
        """Return that of a model without probabilities, by the shares of "same" where its classes agree or differ."""
        n_answers = max(len(similar), 1)
        by_shares = -n_answers * _entropy(similar)
        parts = [similar[agrees], similar[~agrees]]
        rises = all(map(len, parts)) and parts[0].mean() > parts[1].mean()
        by_model = -sum(len(part) * _entropy(part) for part in parts) if rises else by_shares
        return cls(by_model / n_answers, by_shares / n_answers, n_answers)

    @property
    def is_useful(self) -> bool:
        """Whether the model explains held-out answers better than class shares alone."""
        return self.n_answers * (self.by_model - self.by_shares) > _MIN_GAIN

    def warn_if_useless(self) -> None:
        """Give a UselessModelWarning with both numbers."""
        if not self.is_useful:
            warn(
                "Held-out answers do not show that the model separates the classes: their mean log likelihood is "
                f"{self.by_model:.3f}, and {self.by_shares:.3f} from the class shares alone, without `X`. "
                "Do not rely on its predictions. Add answers, or features that depend on the classes, and check that "
                "every answer in `y` is about the rows it was given for.",
                UselessModelWarning,
            )


def _entropy(events: Mask) -> float:
    """Return the entropy of the share of events."""
    return float(entropy([events.sum(), (~events).sum()])) if events.any() else 0.0


def splitter_of(cv: Splitter) -> Splitter:
    """Return the splitter for ``cv``; a number of folds has a fixed seed."""
    return PairKFold(int(cv)) if isinstance(cv, Integral) else cv


def number_of_folds(most: int, graph: AnswerGraph) -> int:
    """Return ``most``, or the number of answers of the rarer kind, or of clusters, if that is less."""
    n_similar = int(np.sum(graph.same > 0))
    counts = [most, *(n for n in (n_similar, graph.n_answers - n_similar) if n)] if graph.n_answers else [0]
    return min(counts) if graph.clusters is None else min(*counts, len(free_clusters(graph)))


def check_places(cv: Splitter | None) -> None:
    """Refuse a splitter that may go by row numbers where rows are left out."""
    if not (cv is None or isinstance(cv, Integral | PairKFold)):
        raise InputError(
            "Rows of weight 0 are left out before folds are made, and `cv` may go by row numbers. Leave these rows out "
            "yourself, or give a number of folds or a sdulearn.PairKFold."
        )


def positive_grid(name: str, values: Sequence[float]) -> list[float]:
    """Return a grid of penalties as floats, or raise an InputError."""
    grid = [float(value) for value in values]
    if not grid or not all(0 < value < np.inf for value in grid):
        raise InputError(f"`{name}` must have at least one number, all greater than zero and finite; got {values!r}.")
    return grid


def grid_results(params: list[dict[str, float]], scores: Array) -> dict[str, Any]:
    """Return ``cv_results_`` without times: all settings are fitted together."""
    values = {f"param_{name}": [setting[name] for setting in params] for name in params[0]}
    silent = np.isnan(scores).all(axis=1)
    counted = scores if silent.all() else scores[~silent]
    mean = counted.mean(axis=0)
    # Rounded, so that settings that differ in the last bit only tie.
    ranked = np.where(np.isnan(mean), -np.inf, mean.round(10))
    return {
        **{name: np.ma.MaskedArray(column, mask=np.zeros(len(params), dtype=bool)) for name, column in values.items()},
        "params": params,
        **{f"split{k}_test_score": split for k, split in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": counted.std(axis=0),
        "rank_test_score": rankdata(-ranked, method="min").astype(np.int32),
    }
