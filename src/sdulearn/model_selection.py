"""Folds over points, so that no answer tells the training part of a test point, and the table of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.errors import InputError
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Indices, Mask, MatrixLike, RandomState, Splitter

# The fold of points that are in none: hubs, which cannot be held out and which every part may know.
NO_FOLD = -1


class PairFolds:
    """What splitters over points have in common: they know the fold of every point."""

    def __init__(self, n_splits: int) -> None:
        if not (isinstance(n_splits, int | np.integer) and n_splits >= 2):
            raise InputError(f"`n_splits` must be an integer of 2 or more, got {n_splits!r}.")
        self.n_splits = int(n_splits)

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
        self, X: MatrixLike, y: ArrayLike | Pairs, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield the row numbers of training and test part, in ascending order.

        An answer between points of two folds is in the training part of the other folds and in no
        test part.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows; only hashed folds depend on them.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.
        groups : ignored
            Here because scikit-learn passes it.

        Yields
        ------
        train, test : int arrays
            Row numbers.
        """
        pairs = read_pairs(y)
        fold, other = self._folds_of_ends(X, pairs)
        for k in range(self.n_splits):
            touched = (fold == k) | (other == k)
            whole = np.isin(fold, (k, NO_FOLD)) & np.isin(other, (k, NO_FOLD))
            yield np.flatnonzero(~touched), np.flatnonzero(touched & whole)

    def n_cut(self, X: MatrixLike, y: ArrayLike | Pairs) -> int:
        """Number of answers between points of two folds: they are in no test part.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows; only hashed folds depend on them.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.

        Returns
        -------
        int
            Their number; 0 where no component of the answers was too large for a fold.
        """
        pairs = read_pairs(y)
        fold = self.fold_of_rows(X, pairs)
        first, second = fold[pairs.ends].T
        return int(np.sum((first != second) & (first != NO_FOLD) & (second != NO_FOLD)))

    def _folds_of_ends(self, X: MatrixLike, pairs: Pairs) -> tuple[Indices, Indices]:
        """The fold of every row, and that of the other end of its answer (its own where it is in none)."""
        fold = self.fold_of_rows(X, pairs)
        other = fold.copy()
        other[pairs.ends] = fold[pairs.ends[:, ::-1]]
        return fold, other

    def fold_of_rows(self, X: MatrixLike, y: ArrayLike | Pairs) -> Indices:
        """Return the fold of every row's point."""
        raise NotImplementedError


class PairKFold(PairFolds):
    """K folds over points: a test part knows no point of its training part.

    The answers of a connected component stay in one fold where it is small enough, and loose pairs
    of either kind, and points in no answer, are each spread evenly over all folds. A component too
    large for a fold is cut, where it can be with few answers lost; :meth:`n_cut` tells how many. A fold that
    would be left without an answer gets one from another, where there are enough. A hub, a point that many
    answers hang on (:meth:`AnswerGraph.hubs <sdulearn.answers.AnswerGraph.hubs>`), cannot be held out: it is in
    every part.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether components and points in no answer are dealt out in random order.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle; give an int for the same folds every time.

    See Also
    --------
    sdulearn.blocks.HashedPairKFold : Folds for rows that come in blocks.

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

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = None) -> None:
        super().__init__(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"PairKFold({self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state})"

    def fold_of_rows(self, X: MatrixLike, y: ArrayLike | Pairs) -> Indices:
        """Return the fold of every row's point.

        Parameters
        ----------
        X : ignored
            Here because hashed folds depend on it.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.

        Returns
        -------
        int array of shape (n_rows,)
            Numbers from 0 to ``n_splits - 1``, and -1 for hubs.
        """
        rng = check_random_state(self.random_state)
        graph = AnswerGraph.from_y(y)
        units = Units.of(graph, self.n_splits)
        self._check_enough(units)
        of_unit = self._fold_of_units(units, rng)
        fold = np.full(graph.n_points, NO_FOLD)
        fold[units.points] = of_unit[units.unit[units.points]]
        _share_answers(fold, graph.ends, self.n_splits)
        alone = np.flatnonzero(graph.degree == 0)
        fold[alone] = self._deal(len(alone), rng)
        return fold[graph.row_point]

    def _check_enough(self, units: Units) -> None:
        for name, count in zip(("similar", "dissimilar"), units.n_answers, strict=True):
            if 0 < count < self.n_splits:
                raise InputError(
                    f"{self.n_splits} folds need at least {self.n_splits} {name} pairs, but there "
                    f"are {count}. Lower `cv`, the number of folds, or add pairs."
                )

    def _fold_of_units(self, units: Units, rng: np.random.RandomState) -> Indices:
        """Single answers are dealt out by kind, the others to the fold that has least of their kinds."""
        fold = np.empty(len(units.kinds), dtype=np.intp)
        single = units.kinds.sum(axis=1) == 1
        for kind in range(2):
            some = units.by_answer[single[units.by_answer] & (units.kinds[units.by_answer, kind] == 1)]
            fold[some] = self._deal(len(some), rng)
        larger = np.flatnonzero(~single)
        if not len(larger):
            return fold
        load = np.array(
            [np.bincount(fold[single], units.kinds[single, kind], self.n_splits) for kind in range(2)], dtype=np.float64
        )
        order = rng.permutation(larger) if self.shuffle else larger
        order = order[np.argsort(-units.kinds[order].sum(axis=1), kind="stable")]
        total = np.maximum(units.kinds.sum(axis=0), 1)
        for unit in order:
            # A unit whose answers were all cut counts by itself.
            its_kinds = units.kinds[unit] + 1e-3
            fold[unit] = np.argmin((its_kinds / total**2) @ load)
            load[:, fold[unit]] += its_kinds
        return fold

    def _deal(self, count: int, rng: np.random.RandomState) -> Indices:
        dealt = np.arange(count) % self.n_splits
        return rng.permutation(dealt) if self.shuffle else dealt


@dataclass(frozen=True)
class Units:
    """What goes into one fold as a whole: a component of the answers, or a piece of a large one.

    Hubs are in no unit; the answers that join them with others do not connect these.
    """

    unit: Indices  # (n_points,), unit of each point; -1 for hubs and points in no answer
    kinds: Indices  # (n_units, 2), similar and dissimilar answers of each unit, those with hubs included
    by_answer: Indices  # units that have an answer, in the order of their first one
    cut: Mask  # (n_answers,), answers between two units
    large: Mask  # (n_units,), pieces of components that are too large for a fold
    n_answers: tuple[int, int]  # similar and dissimilar answers in all

    @classmethod
    def of(cls, graph: AnswerGraph, n_splits: int) -> Units:
        """Units of which ``n_splits`` folds can be made."""
        free = graph.degree > 0
        free[graph.hubs()] = False
        between = graph.ends[free[graph.ends].all(axis=1)]
        unit, large = _pieces(connect(between, graph.n_points), between, free, n_splits)
        of_ends = unit[graph.ends]
        cut = (of_ends[:, 0] != of_ends[:, 1]) & (of_ends >= 0).all(axis=1)
        of_answer = np.where(cut, -1, of_ends.max(axis=1, initial=-1))
        counted = np.flatnonzero(of_answer >= 0)
        cell = 2 * of_answer[counted] + (graph.same[counted] < 0)
        kinds = np.bincount(cell, minlength=2 * len(large)).reshape(-1, 2)
        having, first = np.unique(of_answer[counted], return_index=True)
        n_similar = int(np.sum(graph.same > 0))
        by_answer = having[np.argsort(first)]
        return cls(unit, kinds, by_answer, cut, large, (n_similar, graph.n_answers - n_similar))

    @property
    def points(self) -> Indices:
        """Points that are in a unit."""
        return np.flatnonzero(self.unit >= 0)


def _pieces(component: Indices, ends: Indices, free: Mask, n_splits: int) -> tuple[Indices, Mask]:
    """Unit of each point, -1 where it is not free; components larger than a fold are cut along their breadth."""
    points = np.flatnonzero(free)
    numbers, unit = np.unique(component[points], return_inverse=True)
    size = np.bincount(unit, minlength=len(numbers))
    most = max(len(points) / n_splits, 2)
    found = np.full(len(free), -1)
    found[points] = unit
    n_units = len(numbers)
    large = list(np.zeros(n_units, dtype=bool))
    for big in np.flatnonzero(size > most):
        order = _breadth_first(ends, points[unit == big], len(free))
        piece = np.arange(len(order)) // int(np.ceil(len(order) / np.ceil(len(order) / most)))
        # The first piece keeps the number of the component.
        found[order] = np.where(piece == 0, big, n_units + piece - 1)
        n_units += int(piece.max())
        large[big] = True
        large += [True] * int(piece.max())
    return found, np.array(large, dtype=bool)


def _share_answers(fold: Indices, ends: Indices, n_splits: int) -> None:
    """Move the points of an answer to each fold that has none of its own, from folds that keep some, if there are."""
    for empty in range(n_splits):
        count, owner = _own_answers(fold, ends, n_splits)
        of_ends = fold[ends]
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


def _own_answers(fold: Indices, ends: Indices, n_splits: int) -> tuple[Indices, Indices]:
    """Number of answers between points of each fold, or of it and hubs, and the fold of each such answer, else -1."""
    first, second = fold[ends].T
    whole = (first == second) | (first == NO_FOLD) | (second == NO_FOLD)
    owner = np.where(whole, np.maximum(first, second), NO_FOLD)
    return np.bincount(owner[owner >= 0], minlength=n_splits), owner


def _breadth_first(ends: Indices, members: Indices, n_points: int) -> Indices:
    """The points of a component, neighbours close to each other."""
    adjacency = csr_matrix((np.ones(len(ends)), tuple(ends.T)), shape=(n_points, n_points))
    return breadth_first_order(adjacency, members[0], directed=False, return_predecessors=False)


def splitter_of(cv: Splitter) -> Splitter:
    """A number of folds as the splitter it stands for, with a fixed seed."""
    return PairKFold(int(cv), random_state=0) if isinstance(cv, Integral) else cv


def number_of_folds(most: int, similar: Mask) -> int:
    """As many folds as asked for, or as the rarer kind of answer allows: below 2 where one is too rare for any."""
    n_similar = int(np.sum(similar))
    return min([most, *(n for n in (n_similar, len(similar) - n_similar) if n)] if len(similar) else [0])


def check_places(cv: Splitter | None) -> None:
    """Where rows are left out, a splitter that goes by the places of rows would take others for them."""
    if cv is None or isinstance(cv, Integral | PairFolds):
        return
    raise InputError(
        "Rows of weight 0 are left out before folds are made, and `cv` is a splitter that may go by the places of "
        "the rows. Leave these rows out of `X`, `y` and `sample_weight` yourself, or give a number of folds or a "
        "sdulearn.PairKFold."
    )


def positive_grid(name: str, values: Sequence[float]) -> list[float]:
    """A grid of penalties as floats, or an InputError."""
    grid = [float(value) for value in values]
    if not grid or not all(0 < value < np.inf for value in grid):
        raise InputError(f"`{name}` must hold at least one number, all greater than zero and finite; got {values!r}.")
    return grid


def grid_results(params: list[dict[str, float]], scores: Array) -> dict[str, Any]:
    """The table of GridSearchCV, without the times, which a joint fit of all settings has not."""
    results: dict[str, Any] = {}
    for name in params[0]:
        values = [setting[name] for setting in params]
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(len(params), dtype=bool))
    results["params"] = params
    for k, split in enumerate(scores):
        results[f"split{k}_test_score"] = split
    silent = np.isnan(scores).all(axis=1)
    counted = scores if silent.all() else scores[~silent]
    mean = counted.mean(axis=0)
    results["mean_test_score"] = mean
    results["std_test_score"] = counted.std(axis=0)
    # Rounded, so that settings with equal answers tie instead of being ranked by the last bit.
    ranked = np.where(np.isnan(mean), -np.inf, mean.round(10))
    results["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
    return results
