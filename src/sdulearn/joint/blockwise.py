"""PairLogisticRegression over blocks: the sums over rows are asked of the blocks, all else is as in memory.

Tasks see rows about their mean in the user's columns and get coefficients in them; only what comes
back is turned into the principal axes. A pass so costs O(n d K) for a gradient of K problems and
O(n d^2) for moments and Hessians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, check_consistent_length

from sdulearn.blocks.source import Blocks, Sums, add_all
from sdulearn.errors import InputError
from sdulearn.joint.estimators import PairLogisticRegression
from sdulearn.joint.likelihood import Pull, bordered_gram, curvature_sums, hessian, slope_sums, value_and_gradient
from sdulearn.joint.path import Axes, Summary, pair_moments
from sdulearn.pairs import read_pairs
from sdulearn.statistics import check_width
from sdulearn.types import Array

Piece = tuple[Any, Array, Array, Array | None]

_MOST_COLUMNS = 4000
# So many numbers stay in a core's own cache.
_PIECE_SIZE = 1 << 18
# How a sum follows a change of coordinates: by its rows, or by its rows and its columns.
_ONE_SIDED = {"slope", "moved", "ends"}
_TWO_SIDED = {"second", "joint", "curvature", "bent"}


def fit_pair_logistic(model: PairLogisticRegression, blocks: Blocks) -> None:
    """Fit a :class:`~sdulearn.PairLogisticRegression` from blocks, to the answer of its ``fit`` in memory.

    Both ends of every pair must sit in one block. Takes some 20 to 60 passes, each one
    ``blocks.sum``.

    Parameters
    ----------
    model : PairLogisticRegression
        With valid parameters; gets the fitted attributes.
    blocks : Blocks
        Rows, pair codes and weights; rows may be dense or CSR, float32 or float64, at most 4000
        columns wide.
    """
    survey = blocks.sum(_survey)
    answers = (survey.similar, survey.dissimilar) if survey else (0.0, 0.0)
    model.prior_, prior = model._resolve_prior(*answers)
    data = BlockData.of(blocks, survey, prior, float(model.prior_strength))
    model.n_features_in_ = len(survey.total)
    model._finish(data, model._descend(data), model.alpha, model.covariance_power)


@dataclass(frozen=True)
class Survey:
    """The first look at the rows: how many, their sum, and the weight of the pairs and of the unlabeled rows."""

    n_rows: int
    n_unlabeled: int
    total: Array
    similar: float
    dissimilar: float
    free: float
    free_squares: float

    def __add__(self, other: Survey) -> Survey:
        check_width(len(other.total), len(self.total))
        return Survey(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def _survey(X: Any, y: NDArray[np.int64], weight: Array | None) -> Survey | None:
    """Check a block and count what is in it."""
    if not len(y):
        return None
    check_consistent_length(X, y, weight)
    assert_all_finite(X, input_name="X")
    _check_whole_pairs(np.asarray(y))
    # A code may name other pairs in other blocks: it ties two rows of one block together and is
    # never compared.
    pairs = read_pairs(y)
    weight = np.ones(len(y)) if weight is None else _check_weight(weight)
    answers, free = pairs.pair_weights(weight), weight[pairs.unlabeled]
    total = X.T @ np.ones(len(y)) if sparse.issparse(X) else X.sum(axis=0, dtype=np.float64)
    similar, dissimilar = float(answers @ pairs.similar), float(answers @ ~pairs.similar)
    return Survey(len(y), len(free), total, similar, dissimilar, float(free.sum()), float(free @ free))


def _check_weight(weight: Array) -> Array:
    """Weights, of which a block may hold zeros alone."""
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise InputError("Weights must be finite numbers, zero or more. Leave a row out by the weight 0.")
    return weight


def _check_whole_pairs(codes: NDArray[np.int64]) -> None:
    values, counts = np.unique(np.abs(codes[codes != 0]), return_counts=True)
    if (half := values[counts == 1]).size:
        raise InputError(
            f"Pair code {half[0]} stands on one row only of its block ({half.size} such codes in it). The likelihood "
            "of a pair needs both rows at once, so over blocks both ends of a pair must sit in one block. "
            "sdulearn.distributed.gather_pairs(X, y) repartitions the rows; or sort them by the size of their pair "
            "code and cut between pairs."
        )


@dataclass(frozen=True)
class Frame:
    """What a task is told of all rows: their mean, the weight of all pairs and of all unlabeled rows."""

    mean: Array
    n_answers: float
    free: float

    def pieces(self, X: Any, y: NDArray[np.int64], weight: Array | None, unlabeled: bool) -> Iterator[Piece]:
        """A block in the layout of PairObjective, in float64; dense rows about the mean and a few at a time."""
        ends, free, adjacent = _sides(y)
        free = free if unlabeled else free[:0]
        if not adjacent and not sparse.issparse(X):
            # Rows are picked one by one, which is slow where a row is not in one place.
            X = np.ascontiguousarray(X)
        count = _n_pieces(X)
        for some, others in zip(np.array_split(ends, count), np.array_split(free, count), strict=True):
            A = self._rows(X, np.concatenate([some[:, 0], some[:, 1], others]))
            s = np.sign(y[some[:, :1]]).astype(np.float64)
            omega, share = (_weights(weight, rows) for rows in (some[:, 0], others))
            yield A, s, omega / self.n_answers, share / (self.free or 1.0) if unlabeled else None

    def still_off(self, X: Any) -> Array:
        """How far the rows of a piece are still from being about the mean: sparse ones stay as they are."""
        return self.mean if sparse.issparse(X) else np.zeros(len(self.mean))

    def _rows(self, X: Any, rows: NDArray[np.intp]) -> Any:
        A = X[rows].astype(np.float64, copy=False)
        if not sparse.issparse(A):
            A -= self.mean
        return A


def _sides(y: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp], bool]:
    """Row numbers of the ends and of the unlabeled rows of a block that was checked; whether ends are neighbours."""
    named = np.flatnonzero(y)
    codes = y[named]
    adjacent = bool((codes[::2] == codes[1::2]).all())
    if not adjacent:
        named = named[np.argsort(np.abs(codes), kind="stable")]
    return named.reshape(-1, 2), np.flatnonzero(y == 0), adjacent


def _n_pieces(X: Any) -> int:
    """Sparse rows need no copy that is larger than they are; a dense piece outweighs the d x d sum made of it."""
    n_rows, d = X.shape
    return 1 if sparse.issparse(X) else -(-n_rows // max(_PIECE_SIZE // max(d, 1), min(d, 1024)))


def _weights(weight: Array | None, rows: NDArray[np.intp]) -> Array:
    return np.ones((len(rows), 1)) if weight is None else weight[rows, None]


def _sum_rows(
    X: Any,
    y: NDArray[np.int64],
    weight: Array | None,
    frame: Frame,
    sums_of: Callable[..., dict[str, Any]],
    W: Array,
    unlabeled: bool,
) -> Sums | None:
    """The task of every pass but the first: ``sums_of(A, s, omega, share, W)`` of a block, rows about the mean."""
    if not len(y):
        return None
    off = frame.still_off(X)
    shifted = W.copy()
    shifted[-1] -= off @ W[:-1]
    total = add_all(Sums(sums_of(*piece, shifted)) for piece in frame.pieces(X, y, weight, unlabeled))

    def about_mean(M: Array) -> Array:
        M[:-1] -= np.outer(off, M[-1])
        return M

    return _changed(total, about_mean)


def _changed(sums: Sums, change: Callable[[Array], Array]) -> Sums:
    """Sums in other coordinates; ``change`` takes the rows of a matrix there."""
    one = {name: change(sums[name]) for name in _ONE_SIDED & sums.keys()}
    two = {name: change(change(sums[name]).T).T for name in _TWO_SIDED & sums.keys()}
    return Sums(sums | one | two)


def _moments(A: Any, s: Array, omega: Array, share: Array, W: Array) -> dict[str, Any]:
    """Second moments of all rows, beside those of the pairs."""
    return {"second": bordered_gram(A, np.ones(A.shape[0]), A), **pair_moments(A, s, omega)}


def _positive(A: Any, s: Array, omega: Array, share: Array, w: Array) -> dict[str, Any]:
    """The share of unlabeled rows, and the number of all rows, on the positive side."""
    positive = A @ w[:-1] + w[-1] > 0
    return {"share": float(share[:, 0] @ positive[2 * len(s) :]), "count": int(positive.sum())}


@dataclass(frozen=True)
class BlockData:
    """Rows in blocks; see :class:`sdulearn.joint.path.Data`."""

    blocks: Blocks
    survey: Survey
    frame: Frame
    axes: Axes
    summary: Summary
    pull: Pull | None
    _known: dict[bytes, dict[str, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: Blocks, survey: Survey, prior: float | None, strength: float) -> BlockData:
        """The axes and what is known before the first step, in one pass."""
        d, n = len(survey.total), survey.n_rows
        _check_columns(d)
        frame = Frame(survey.total / n, survey.similar + survey.dissimilar, survey.free)
        sums = blocks.sum(_sum_rows, frame, _moments, np.zeros(d + 1), True)
        rest = sums["second"][:-1, -1] / n
        axes = Axes.from_moments(frame.mean, sums.pop("second")[:-1, :-1] / n - np.outer(rest, rest))
        summary = Summary(axes.variance, **_changed(sums, axes.inward), prior=prior)
        return cls(blocks, survey, frame, axes, summary, Pull.of(prior, strength, survey.n_unlabeled))

    def objective(self, pen: Array) -> BlockObjective:
        """See :class:`sdulearn.joint.path.Data`."""
        return BlockObjective(self, pen)

    def positive_share(self, v: Array) -> tuple[float, float]:
        """See :class:`sdulearn.joint.path.Data`."""
        sums, n, free = self._sums(_positive, v, True), self.survey.n_rows, self.survey.free
        return (sums["share"], self.survey.free_squares / free**2) if free else (sums["count"] / n, 1 / n)

    def slopes(self, W: Array) -> dict[str, Array]:
        """``slope_sums`` in the axes. They know no penalty, so a point met before, at any alpha, takes no pass."""
        keys = [w.tobytes() for w in W.T]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            sums = self._sums(slope_sums, W[:, new], self.pull is not None)
            self._known.update((keys[k], {name: sums[name][..., j] for name in sums}) for j, k in enumerate(new))
        found = [self._known[key] for key in keys]
        return {name: np.stack([one[name] for one in found], axis=-1) for name in found[0]}

    def curvatures(self, w: Array) -> dict[str, Array]:
        """``curvature_sums`` in the axes."""
        return self._sums(curvature_sums, w, self.pull is not None)

    def _sums(self, sums_of: Callable[..., dict[str, Any]], W: Array, unlabeled: bool) -> Sums:
        sums = self.blocks.sum(_sum_rows, self.frame, sums_of, self.axes.outward(W), unlabeled)
        return _changed(sums, self.axes.inward)


def _check_columns(d: int) -> None:
    if d > _MOST_COLUMNS:
        raise InputError(
            f"X has {d} columns, and over blocks PairLogisticRegression makes {d} x {d} matrices: {_MOST_COLUMNS} "
            "columns is the most it takes. Reduce the columns (for example sklearn.random_projection), or fit in "
            "memory on a draw of the rows, where more columns than rows are no trouble."
        )


class BlockObjective:
    """Equation (2) over blocks; see :class:`sdulearn.joint.likelihood.Objective`."""

    def __init__(self, data: BlockData, pen: Array) -> None:
        self.data, self.pen = data, pen

    def value_and_gradient(self, W: Array, columns: Any) -> tuple[Array, Array]:
        """See :class:`sdulearn.joint.likelihood.Objective`."""
        return value_and_gradient(self.data.slopes(W), W, self.pen[:, columns], self.data.pull)

    def hessian(self, w: Array) -> Array:
        """See :class:`sdulearn.joint.likelihood.Objective`."""
        return hessian(self.data.slopes(w[:, None]), self.data.curvatures(w), self.pen[:, 0], self.data.pull)
