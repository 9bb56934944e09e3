"""PairLogisticRegression over blocks, which give the sums over rows; the rest is as in memory.

Tasks see rows minus their mean in the user's columns, and coefficients of these; only the sums are
turned into the principal axes. A pass costs O(n d K) for a gradient of K problems, and O(n d^2)
for moments and Hessians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_consistent_length

from sdulearn.answers.answer_model import AnswerModel, Rate, unknown_answer_model
from sdulearn.answers.propagate import log_factors
from sdulearn.blocks import Blocks, Sums, add_all, check_width
from sdulearn.errors import InputError
from sdulearn.joint.data import Axes, Moments, warn_of_scales
from sdulearn.joint.estimators import MAJORITY, PairLogisticRegression, check_kinds
from sdulearn.joint.likelihood import (
    Columns,
    LoosePairs,
    PriorPull,
    Problem,
    bordered_gram,
    bordered_sum,
    mean_curvature,
    mean_sums,
)
from sdulearn.joint.path import descend, polish
from sdulearn.pairs import check_weights, codes_of, read_pairs
from sdulearn.prior import resolve_prior
from sdulearn.solvers.linalg import PIECE_SIZE, check_magnitude, check_system_size
from sdulearn.solvers.problem import Fit
from sdulearn.types import Array, Codes, Indices, Rows

# Rows (first ends, second ends, unlabeled), answers, weights of the pairs, weights of the unlabeled
# rows.
Piece = tuple[Rows, LoosePairs, Array, Array | None]
SumsOf = Callable[..., Mapping[str, Array | float]]

# Sums of which a change of coordinates transforms the rows, and those of which also the columns.
_ONE_SIDED = {"slope", "mean_slope", "ends"}
_TWO_SIDED = {"ends_second", "free_second", "joint", "curvature", "mean_curvature"}


def fit_pair_logistic(model: PairLogisticRegression, blocks: Blocks) -> Fit:
    """Solve a model over blocks as its ``fit`` does; both ends of a pair must be in one block."""
    if model.n_classes != 2:
        raise InputError(
            f"Over blocks there are two classes; got `n_classes={model.n_classes!r}`. Fit in memory with "
            "sdulearn.PairLogisticRegression for more."
        )
    error_rate = 0.0 if model.error_rate == "auto" else model.error_rate
    if not isinstance(error_rate, Real) or (error_rate and model.prior is None):
        raise InputError(
            "Over blocks `error_rate` must be 'auto', which is 0 there, or one rate for all answers; with a rate above "
            "0 give `prior` too. Fit in memory for rates of annotators, or to estimate a prior from wrong answers."
        )
    survey = blocks.sum(_survey)
    similar, dissimilar, squares = (
        survey[name] if survey else 0.0 for name in ("similar", "dissimilar", "pair_squares")
    )
    check_kinds(similar, dissimilar, model.prior)
    majority = MAJORITY[model.orientation]
    estimate, prior = resolve_prior(model.prior, (similar, dissimilar, squares), majority=majority)
    problem = BlockProblem(blocks, survey, prior, float(model.prior_strength), float(error_rate))
    v = descend(problem, *model._penalty, model.init)
    answer_model = unknown_answer_model(np.zeros(1, dtype=int), np.array([survey["n_pairs"]]))
    if model.error_rate != "auto":
        rate = Rate(float(error_rate), float(error_rate), float(error_rate), survey["n_pairs"])
        answer_model = AnswerModel(rate, {0: rate})
    fit = polish(model, problem, v, *model._penalty, estimate)
    return replace(fit, fitted={"answer_model_": answer_model})


class Survey(Sums):
    """The first pass: sum of the rows, counts and weights of pairs and of unlabeled rows."""

    def __add__(self, other: Sums) -> Survey:
        check_width(len(other["total"]), len(self["total"]))
        return Survey(super().__add__(other))


def _survey(X: Rows, y: Codes, weight: Array | None) -> Survey | None:
    """Check a block and count its rows and pairs."""
    if not len(y):
        return None
    y = codes_of(y)
    check_consistent_length(X, y, weight)
    assert_all_finite(X, input_name="X")
    check_magnitude(X)
    _check_whole_pairs(y)
    # A code ties two rows of one block together, and may stand for another pair in another block.
    pairs = read_pairs(y)
    weight = np.ones(len(y)) if weight is None else check_weights(weight, len(y), "sample_weight")
    pair_weight = pairs.pair_weights(weight)
    unlabeled = weight[pairs.unlabeled]
    return Survey(
        n_pairs=int(np.count_nonzero(pair_weight)),
        n_unlabeled=int(np.count_nonzero(unlabeled)),
        # einsum does not copy dense rows in float32.
        total=X.T @ weight if sparse.issparse(X) else np.einsum("i,ij->j", weight, X),
        similar=float(pair_weight @ pairs.similar),
        dissimilar=float(pair_weight @ ~pairs.similar),
        pair_squares=float(pair_weight @ pair_weight),
        unlabeled=float(unlabeled.sum()),
        unlabeled_squares=float(unlabeled @ unlabeled),
    )


def _check_whole_pairs(codes: Codes) -> None:
    values, counts = np.unique(np.abs(codes[codes != 0]), return_counts=True)
    if (half := values[counts == 1]).size:
        raise InputError(
            f"Pair code {half[0]} stands on one row only of its block ({half.size} such codes in "
            "it). The likelihood of a pair needs both rows at once, so over blocks both ends of a "
            "pair must be in one block. sdulearn.distributed.gather_pairs(X, y) repartitions the "
            "rows; or sort them by the size of their pair code and cut between pairs."
        )


class Totals(NamedTuple):
    """What a task needs to know about all rows."""

    mean: Array
    n_answers: float
    unlabeled: float
    error_rate: float

    def pieces(self, X: Rows, y: Codes, weight: Array, unlabeled: bool) -> Iterator[Piece]:
        """Yield a block in float64, a few rows at a time; dense rows are centred."""
        ends, others, adjacent = _sides(y)
        if not unlabeled:
            others = others[:0]
        if not adjacent and not sparse.issparse(X):
            # Rows are picked one by one, which is slow unless each is contiguous.
            X = np.ascontiguousarray(X)
        count = _n_pieces(X)
        pieces = zip(np.array_split(ends, count), np.array_split(others, count), strict=True)
        for pairs, rest in pieces:
            A = X[np.concatenate([pairs[:, 0], pairs[:, 1], rest])].astype(np.float64, copy=False)
            if not sparse.issparse(A):
                A -= self.mean
            signs = y[pairs[:, 0]]
            answers = LoosePairs(*log_factors(signs, np.full(len(signs), self.error_rate), np.ones(len(signs))))
            omega = weight[pairs[:, 0]] / self.n_answers
            share = weight[rest] / (self.unlabeled or 1.0) if unlabeled else None
            yield A, answers, omega, share


def _sides(y: Codes) -> tuple[Indices, Indices, bool]:
    """Return row numbers of ends and of unlabeled rows, and whether ends are neighbours."""
    named = np.flatnonzero(y)
    codes = y[named]
    adjacent = bool((codes[::2] == codes[1::2]).all())
    if not adjacent:
        named = named[np.argsort(np.abs(codes), kind="stable")]
    return named.reshape(-1, 2), np.flatnonzero(y == 0), adjacent


def _n_pieces(X: Rows) -> int:
    """Return the number of pieces; a dense one fits the cache, or has up to 1024 rows."""
    if sparse.issparse(X):
        return 1
    n_rows, d = X.shape
    return -(-n_rows // max(PIECE_SIZE // max(d, 1), min(d, 1024)))


def _sum_rows(
    X: Rows, y: Codes, weight: Array | None, totals: Totals, sums_of: SumsOf, W: Array, unlabeled: bool
) -> Sums | None:
    """Return ``sums_of(A, pairs, omega, share, W)`` of a block, in every pass but the first."""
    if not len(y):
        return None
    y = codes_of(y)
    # Sparse rows are not centred.
    offset = totals.mean if sparse.issparse(X) else np.zeros(len(totals.mean))
    shifted = W.copy()
    shifted[-1] -= offset @ W[:-1]
    weight = np.ones(len(y)) if weight is None else weight
    pieces = totals.pieces(X, y, weight, unlabeled)
    total = add_all(Sums(sums_of(*piece, shifted)) for piece in pieces)

    def about_mean(M: Array) -> Array:
        M[:-1] -= np.outer(offset, M[-1])
        return M

    return _changed(total, about_mean)


def _changed(sums: Sums, change: Callable[[Array], Array]) -> Sums:
    """Return sums in other coordinates; ``change`` transforms the rows of a matrix."""
    one = {name: change(sums[name]) for name in _ONE_SIDED & sums.keys()}
    two = {name: change(change(sums[name]).T).T for name in _TWO_SIDED & sums.keys()}
    return Sums(sums | one | two)


def _slopes(A: Rows, pairs: LoosePairs, omega: Array, share: Array | None, W: Array) -> dict[str, Array]:
    n = len(omega)
    Z = A @ W[:-1] + W[-1]
    losses, slopes = pairs.terms(Z[: 2 * n])
    slopes *= np.tile(omega, 2)[:, None]
    sums = {"loss": omega @ losses, "slope": bordered_sum(A[: 2 * n], slopes)}
    return sums if share is None else sums | mean_sums(A[2 * n :], share, Z[2 * n :])


def _curvatures(A: Rows, pairs: LoosePairs, omega: Array, share: Array | None, w: Array) -> dict[str, Array]:
    n = len(omega)
    z = A @ w[:-1] + w[-1]
    sums = {"curvature": pairs.curvature(A[: 2 * n], omega, z[: 2 * n])}
    return sums if share is None else sums | {"mean_curvature": mean_curvature(A[2 * n :], share, z[2 * n :])}


def _moments(A: Rows, pairs: LoosePairs, omega: Array, share: Array, W: Array) -> dict[str, Array]:
    """Return weighted second moments of ends, of unlabeled rows and of pairs."""
    n = len(omega)
    ends = A[: 2 * n]
    free = A[2 * n :]
    joint = bordered_gram(A[:n], omega * pairs.side[n:], A[n : 2 * n])
    return {
        "ends_second": bordered_gram(ends, np.tile(omega, 2), ends),
        "free_second": bordered_gram(free, share, free),
        "joint": joint + joint.T,
        "ends": bordered_sum(ends, np.tile(omega, 2)[:, None]),
    }


def _positive(A: Rows, pairs: LoosePairs, omega: Array, share: Array, w: Array) -> dict[str, float]:
    """Return the share of unlabeled rows, and that of ends, on the positive side."""
    positive = A @ w[:-1] + w[-1] > 0
    first, second, free = np.split(positive, [len(omega), 2 * len(omega)])
    ends = (first.astype(np.float64) + second) / 2
    return {"share": float(share @ free), "share_of_ends": float(omega @ ends)}


class BlockProblem(Problem):
    """Rows in blocks; see :class:`sdulearn.joint.likelihood.Problem`."""

    exact_hessian = True

    def __init__(
        self, blocks: Blocks, survey: Survey, prior: float | None, prior_strength: float, error_rate: float = 0.0
    ) -> None:
        """Find the axes and what the starts need, in one pass."""
        d = len(survey["total"])
        check_system_size(d)
        self.blocks = blocks
        self.survey = survey
        n_answers = survey["similar"] + survey["dissimilar"]
        weight = 2 * n_answers + survey["unlabeled"]
        self.totals = Totals(survey["total"] / weight, n_answers, survey["unlabeled"], error_rate)
        sums = blocks.sum(_sum_rows, self.totals, _moments, np.zeros(d + 1), True)
        second = n_answers * sums.pop("ends_second") + survey["unlabeled"] * sums.pop("free_second")
        second /= weight
        # The mean that was subtracted is rounded.
        rest = second[:-1, -1]
        covariance = second[:-1, :-1] - np.outer(rest, rest)
        warn_of_scales(np.sqrt(np.maximum(covariance.diagonal(), 0.0)), self.totals.mean)
        self.axes = Axes.from_moments(self.totals.mean, covariance)
        self.moments = Moments(self.axes.variance, **_changed(sums, self.axes.inward), prior=prior)
        # Wrong answers weaken the pull, as for loose pairs in memory.
        self.pull = PriorPull.of(prior, prior_strength * (1 - 2 * error_rate) ** 2, survey["n_unlabeled"])
        self._known: dict[bytes, dict[str, Array]] = {}

    def positive_share(self, v: Array) -> tuple[float, float]:
        sums = self._sums(_positive, v, True)
        if self.totals.unlabeled:
            return sums["share"], self.survey["unlabeled_squares"] / self.totals.unlabeled**2
        return sums["share_of_ends"], self.survey["pair_squares"] / self.totals.n_answers**2 / 2

    def slopes(self, W: Array, columns: Columns, exact: bool) -> dict[str, Array]:
        # The sums do not depend on the penalty: coefficients seen before, at any alpha, need no
        # pass.
        keys = [w.tobytes() for w in W.T]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            sums = self._sums(_slopes, W[:, new], self.pull is not None)
            for j, k in enumerate(new):
                self._known[keys[k]] = {name: sums[name][..., j] for name in sums}
        found = [self._known[key] for key in keys]
        return {name: np.stack([one[name] for one in found], axis=-1) for name in found[0]}

    def curvatures(self, w: Array) -> dict[str, Array]:
        return self._sums(_curvatures, w, self.pull is not None)

    def _sums(self, sums_of: SumsOf, W: Array, unlabeled: bool) -> Sums:
        outward = self.axes.outward(W)
        sums = self.blocks.sum(_sum_rows, self.totals, sums_of, outward, unlabeled)
        return _changed(sums, self.axes.inward)
