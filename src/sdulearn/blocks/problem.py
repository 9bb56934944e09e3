"""One problem over blocks: what is sent to the rows, what is kept here, and the sample a solver starts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.blocks.folds import fold_of_rows
from sdulearn.blocks.points import PointCounts, codes_of
from sdulearn.blocks.source import Block, Blocks, Sums, add_all
from sdulearn.errors import InputError
from sdulearn.losses import TrainingLoss
from sdulearn.pairs import integer_codes, sources
from sdulearn.risks import Mixture
from sdulearn.solvers import Problem, check_system_size, row_pieces, solve
from sdulearn.solvers.limits import affordable_rows, check_weight_range
from sdulearn.solvers.pieces import joined
from sdulearn.statistics import MomentProblem, PairStatistics
from sdulearn.types import Array, Codes, Rows

# How well a sample is solved. Its solution differs from that of all rows by about the root of d / n,
# a per cent or so, and further digits of it say nothing.
SAMPLE_TOL = 1e-4


@dataclass(frozen=True)
class RowRule:
    """How rows count: their coordinates, their even weight by source, the loss, and the fold that is left out."""

    origin: Array
    fit_intercept: bool
    a: Array
    loss: TrainingLoss
    left_out: tuple[int, int] | None = None

    def pieces(self, X: Rows, y: Codes, weight: Array | None) -> Iterator[tuple[Rows, Array]]:
        """Rows ``[x - origin, 1]`` with ``a > 0``, and their a, piece by piece."""
        codes = codes_of(y)
        a = self.a[sources(codes)]
        if weight is not None:
            a = a * weight
        if self.left_out is not None:
            n_splits, fold = self.left_out
            a[fold_of_rows(X, codes, n_splits) == fold] = 0.0
        for rows, A in row_pieces(X, self.origin):
            A = A if self.fit_intercept else A[:, :-1]
            active = a[rows] > 0
            yield (A, a[rows]) if active.all() else (A[active], a[rows][active])


@dataclass(frozen=True)
class BlockProblem:
    """``min J(w)`` as in :class:`sdulearn.solvers.Problem`, its rows in blocks.

    ``moments`` knows c, the penalty and the scale of the columns; ``sample`` is a small problem of
    the same kind, whose solution is a good start; it stands for ``n_rows`` rows, or is all of them
    (``complete``).
    """

    blocks: Blocks
    rule: RowRule
    moments: MomentProblem
    sample: Problem
    n_rows: int
    complete: bool

    def with_penalty(self, factor: float) -> BlockProblem:
        """The same problem with a multiple of its penalty."""
        return replace(self, moments=replace(self.moments, ridge=factor * self.moments.ridge))

    @property
    def easy_sample(self) -> Problem:
        """The sample with a penalty no weaker than its noise, of the order d / n, calls for."""
        n_rows, n_columns = self.sample.A.shape
        noise = float(np.mean(self.moments.second.diagonal())) * n_columns / n_rows
        return self.sample.with_penalty(max(float(self.moments.ridge.max()), noise))

    def start(self, solver: str, max_iter: int) -> Array:
        """The solution of the sample."""
        return solve(self.easy_sample, solver, SAMPLE_TOL, max_iter).w

    def along(self, w: Array, step: Array, lengths: Array, values: Array) -> list[float]:
        """J at points of a line, from ``sum_i a_i even(z_i)`` at each."""
        return [self.moments.objective(w + t * step, value) for t, value in zip(lengths, values, strict=True)]


def survey(X: Rows, y: ArrayLike, weight: Array | None, share: float, n_splits: int | None) -> Sums | None:
    """First pass over a block: statistics (of each fold), the points of its answers, and its share of a sample."""
    codes = _check_block(X, y, weight)
    known = np.asarray(y)
    if weight is not None and not weight.all():
        # A row of weight 0 is not there.
        there = np.flatnonzero(weight)
        X = X[there]
        codes = codes[there]
        known = known[there]
        weight = weight[there]
    if not len(codes):
        return None
    n_drawn = _whole(share * affordable_rows(X.shape[1] + 1), X)
    sample = [_draw(X, codes, weight, n_drawn)] if n_drawn else []
    found = Sums(rows=len(codes), sample=sample, points=PointCounts.of(known))
    if n_splits is None:
        found["fold0"] = PairStatistics().update(X, codes, weight)
        return found
    fold = fold_of_rows(X, codes, n_splits)
    for k in range(n_splits):
        rows = np.flatnonzero(fold == k)
        its_weight = None if weight is None else weight[rows]
        found[f"fold{k}"] = PairStatistics().update(X[rows], codes[rows], its_weight)
    return found


def _check_block(X: Rows, y: ArrayLike, weight: Array | None) -> Codes:
    codes = integer_codes(y) if np.size(y) else np.empty(0, dtype=np.int64)
    if X.shape[0] != len(codes) or (weight is not None and len(weight) != len(codes)):
        weights = "" if weight is None else f" and {len(weight)} weights"
        raise InputError(
            f"A block has {X.shape[0]} rows of `X`, {len(codes)} pair codes{weights}. Give `X`, `y` "
            "and `sample_weight` the same rows, in blocks of the same lengths."
        )
    if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise InputError("`sample_weight` must hold finite numbers of zero or more.")
    if weight is not None:
        check_weight_range(weight)
    check_system_size(X.shape[1])
    return codes


def _whole(number: float, X: Rows) -> int:
    """The number, rounded up or down by chance (the same for the same rows): a sample must not grow with the blocks."""
    seed = int(np.float64(X[:1].sum()).view(np.uint64))
    return int(number + np.random.default_rng(seed).random())


def _draw(X: Rows, codes: Codes, weight: Array | None, count: int) -> Block:
    """Up to ``count`` rows of each source at random, weighted so that they stand for all of it."""
    rng = np.random.default_rng(len(codes))
    source = sources(codes)
    weight = np.ones(len(codes)) if weight is None else weight
    chosen = []
    stands_for = []
    for k in range(3):
        rows = np.flatnonzero(source == k)
        few = np.sort(rng.choice(rows, count, replace=False)) if len(rows) > count else rows
        chosen.append(few)
        stands_for.append(weight[few] * (weight[rows].sum() / (weight[few].sum() or 1.0)))
    rows = np.concatenate(chosen)
    return X[rows], codes[rows], np.concatenate(stands_for)


class SurveyedBlocks:
    """Blocks after the first pass: their statistics, by fold, and a sample of the rows."""

    def __init__(self, blocks: Blocks, *, sampled: bool, n_splits: int | None = None) -> None:
        self.blocks = blocks
        self.n_splits = n_splits
        found = blocks.sum(survey, 1 / blocks.n_blocks if sampled else 0.0, n_splits)
        if found is None:
            raise InputError("There are no rows: every block is empty, or all weights are zero.")
        self.folds: list[PairStatistics] = [found[f"fold{k}"] for k in range(n_splits or 1)]
        self.statistics: PairStatistics = add_all(self.folds)
        self._sample: list[Block] = found["sample"]
        self._n_rows: int = found["rows"]
        self.points: PointCounts = found["points"]
        if self.statistics.checksum:
            raise InputError(
                "Some pair code stands on one row only, or on two rows with different signs or "
                "weights. Over all blocks, each code must stand on exactly two rows, with one sign "
                "and one weight; sdulearn.stack_pairs makes such codes. Where tables were joined, "
                "number the pairs of each on from the last."
            )

    def without(self, fold: int) -> PairStatistics:
        """Statistics of all rows but a fold: a sum, since a difference loses digits to heavy rows."""
        return add_all(one for k, one in enumerate(self.folds) if k != fold)

    def problem(
        self,
        g: Mixture,
        prior: float,
        loss: TrainingLoss,
        alpha: float,
        fit_intercept: bool,
        fold: int | None = None,
    ) -> BlockProblem:
        """The problem of one setting, on all rows or without a fold."""
        statistics = self.statistics if fold is None else self.without(fold)
        moments = statistics.problem(g, prior, loss, alpha, fit_intercept)
        left_out = None if fold is None else (self.n_splits or 0, fold)
        a, _ = statistics.unit_weights(g, prior)
        rule = RowRule(moments.origin, fit_intercept, a, loss, left_out)
        # A piece is a buffer that the next one overwrites.
        parts = [(A.copy(), a) for block in self._sample for A, a in rule.pieces(*block)]
        rows = joined([A for A, _ in parts])
        weights = np.concatenate([a for _, a in parts])
        sample = Problem(rows, weights, moments.c, moments.ridge, loss)
        complete = sum(len(block[1]) for block in self._sample) == self._n_rows
        return BlockProblem(self.blocks, rule, moments, sample, self._n_rows, complete)
