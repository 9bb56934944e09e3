"""One problem over blocks: the first pass, sums at one w, and the solvers of smooth losses.

Newton's method and, for losses without curvature, L-BFGS start from the solution of a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from sdulearn.blocks import Block, Blocks, PairStatistics, Sums, fold_of_rows, points_of
from sdulearn.losses import TrainingLoss
from sdulearn.pairs import check_weights, codes_of, labels_of, sources
from sdulearn.solvers import smooth, solve
from sdulearn.solvers.linalg import affordable_rows, check_system_size, row_pieces, weighted_gram
from sdulearn.solvers.problem import Place, Problem, Solution, curvatures
from sdulearn.solvers.smooth import descend, follow_penalties
from sdulearn.solvers.squared import MomentProblem
from sdulearn.types import Array, Codes, Rows

# Tolerance for a sample. Its solution differs from that of all rows by about the root of d / n, a
# per cent or so, so further digits are of no use.
SAMPLE_TOL = 1e-4
T = TypeVar("T")


def count_columns(X: Rows, y: Codes, weight: Array | None) -> Sums | None:
    """Return the points of a block's answers, its annotators and its number of labels."""
    y = y if weight is None else y[weight > 0]
    if not len(y):
        return None
    annotators = y[y[:, 0] != 0, 2:3] if y.ndim == 2 else y[:0]
    n_labels = int(np.count_nonzero(labels_of(y)))
    return Sums(points=[points_of(y)], annotators=np.unique(annotators).tolist(), n_labels=n_labels)


@dataclass(frozen=True)
class RowRule:
    """How rows enter a sum: origin, even weight by source, loss, and the fold left out."""

    origin: Array
    fit_intercept: bool
    a: Array  # (3,), of S, D and U
    loss: TrainingLoss
    left_out: tuple[int, int] | None = None  # number of folds, and which

    def pieces(self, X: Rows, y: Codes, weight: Array | None) -> Iterator[tuple[Rows, Array]]:
        """Yield rows ``[x - origin, 1]`` with ``a > 0``, and their a, piece by piece."""
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


class CountedBlocks:
    """Blocks and the number of passes over them."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.n_blocks = blocks.n_blocks
        self.n_passes = 0

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
        self.n_passes += 1
        return self.blocks.sum(task, *arguments)


@dataclass(frozen=True)
class BlockProblem(MomentProblem):
    """A problem whose rows are in blocks; its moments are known."""

    blocks: CountedBlocks
    rule: RowRule
    sampled: RowRule  # the sources of which the sample has some rows only
    sample: Problem  # a small problem of the same kind, whose solution is a good start
    n_whole: int  # its first rows, which are all rows of their sources
    n_rows: int
    curved: bool = True  # whether a pass sums second derivatives
    # Sums at the last two w; they do not depend on the penalty.
    known: dict[tuple[bytes, bool], Sums] = field(default_factory=dict)

    def start(self, solver: str, max_iter: int) -> Solution:
        """Solve the sample, with a penalty no weaker than its noise, which is of order d / n."""
        n_rows, n_columns = self.sample.A.shape
        noise = float(np.mean(self.second.diagonal())) * n_columns / n_rows
        easy = self.sample.with_penalty(max(float(self.ridge.max()), noise))
        return solve(easy, solver, SAMPLE_TOL, max_iter)

    def at(self, w: Array) -> Place:
        sums = self._sums(w, False)
        objective = self.objective(w, sums["value"])
        gradient = self.gradient(w, sums["slopes"])
        return Place(w, objective, gradient, lambda careful: self._sums(w, careful)["second"])

    def along(self, w: Array, step: Array, lengths: Array) -> Array:
        values = self.blocks.sum(line_sums, self.rule, w, step, lengths)
        return np.array([self.objective(w + t * step, value) for t, value in zip(lengths, values, strict=True)])

    def _sums(self, w: Array, careful: bool) -> Sums:
        key = (w.tobytes(), careful)
        if key not in self.known:
            if len(self.known) > 1:
                self.known.pop(next(iter(self.known)))
            self.known[key] = self.blocks.sum(slope_sums, self.rule, w, self.curved, careful)
        return self.known[key]

    def solution(self, w: Array) -> Solution:
        """Certify w by sums over all rows."""
        here = self.at(w)
        optimality = self.relative(w, here.gradient)
        return Solution(w, self.blocks.n_passes, objective=here.objective, optimality=optimality)


def survey(X: Rows, y: Codes, weight: Array | None, share: float, n_splits: int | None) -> Sums | None:
    """First pass over a block: statistics (of each fold), points of answers, part of the sample."""
    check_system_size(X.shape[1])
    if weight is not None and not check_weights(weight, len(y), "sample_weight").all():
        # A row of weight 0 does not count.
        kept = np.flatnonzero(weight)
        X = X[kept]
        y = y[kept]
        weight = weight[kept]
    if not len(y):
        return None
    codes = codes_of(y)
    # Rounded at random, so that a sample does not grow with the number of blocks.
    seed = int(np.float64(X[:1].sum()).view(np.uint64))
    n_drawn = int(share * affordable_rows(X.shape[1] + 1) + np.random.default_rng(seed).random())
    sample = [_draw(X, codes, weight, n_drawn)] if n_drawn else []
    counts = np.bincount(sources(codes), minlength=3)
    sums = Sums(counts=counts, sample=sample, points=[points_of(y)])
    if n_splits is None:
        sums["fold0"] = PairStatistics().update(X, codes, weight)
        return sums
    fold = fold_of_rows(X, codes, n_splits)
    for k in range(n_splits):
        rows = np.flatnonzero(fold == k)
        its_weight = None if weight is None else weight[rows]
        sums[f"fold{k}"] = PairStatistics().update(X[rows], codes[rows], its_weight)
    return sums


def _draw(X: Rows, codes: Codes, weight: Array | None, count: int) -> Block:
    """Draw up to ``count`` rows of each source, weighted to stand for all of its rows."""
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


def slope_sums(
    X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array, curved: bool = False, careful: bool = False
) -> Sums:
    """``sum a even(z)``, ``sum a even'(z) x`` and, ``curved``, ``sum a even''(z) x x'``."""
    sums = Sums(value=0.0, slopes=np.zeros(len(w)), second=np.zeros((len(w), len(w)) if curved else ()))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        sums["value"] += float(a @ rule.loss.even(z))
        sums["slopes"] += A.T @ (a * rule.loss.even_grad(z))
        if curved:
            sums["second"] += weighted_gram(A, a * curvatures(rule.loss, z, careful))
    return sums


def line_sums(X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array, step: Array, lengths: Array) -> Array:
    """``sum a even(z)`` at ``w + t step`` for each length t."""
    value = np.zeros(len(lengths))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        dz = A @ step
        value += [float(a @ rule.loss.even(z + t * dz)) for t in lengths]
    return value


def solve_newton(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Run Newton's method, one pass per step; if it fails, from larger penalties."""
    w, _ = descend(problem, problem.start("newton", max_iter).w, tol, max_iter)
    left = max_iter - problem.blocks.n_passes
    if left > 0 and problem.solution(w).optimality > tol / 10:
        w, _ = follow_penalties(problem, w, tol, left)
    return problem.solution(w)


def solve_lbfgs(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Run L-BFGS, one pass per evaluation."""
    problem = replace(problem, curved=False)
    start = problem.start("lbfgs", max_iter)
    return problem.solution(smooth.solve_lbfgs(problem, tol, max_iter, [start]).w)
