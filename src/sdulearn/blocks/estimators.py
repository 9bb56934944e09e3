"""The SDU estimators for rows that do not fit in memory: portions, Parquet files, Dask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sdulearn import linear
from sdulearn.base import LinearClassifier
from sdulearn.blocks import (
    Block,
    Blocks,
    HashedPairKFold,
    LocalBlocks,
    PairStatistics,
    Sums,
    add_all,
    check_width,
    fold_of_rows,
    make_block,
    refuse_shared,
    refuse_shared_prior,
)
from sdulearn.blocks.double_hinge import solve_double_hinge
from sdulearn.blocks.problem import (
    BlockProblem,
    CountedBlocks,
    RowRule,
    solve_lbfgs,
    solve_newton,
    survey,
)
from sdulearn.errors import InputError
from sdulearn.losses import ZeroOne, get_training_loss
from sdulearn.metrics.accuracy import pair_accuracy
from sdulearn.pairs import D, S, codes_of, labels_of, sources
from sdulearn.prior import no_answers, resolve_prior
from sdulearn.risks import Mixture, even_and_linear, mixture, refuse_linked, unit_weights, validation_risk
from sdulearn.sklearn_private import check_feature_names, check_n_features, fit_context
from sdulearn.solvers import choose_solver, warn_unless
from sdulearn.solvers.linalg import joined
from sdulearn.solvers.problem import Fit, Problem, Solution
from sdulearn.types import Array, Codes, Rows, Splitter

RowsLike: TypeAlias = Any  # rows in memory, or blocks, portions or a dask collection
# An array for rows in memory, an iterator of arrays for blocks, a dask collection for one.
Values: TypeAlias = Any
Model: TypeAlias = linear.SDUClassifier | linear.SDUClassifierCV

# The solver over blocks that stands for each solver in memory. The closed form needs no rows, only
# their statistics.
_SOLVERS: dict[str, Callable[..., Solution]] = {
    "interior_point": solve_double_hinge,
    "newton": solve_newton,
    "lbfgs": solve_lbfgs,
}
# What to do about answers that share points.
_CHOOSE_IN_MEMORY = (
    "Choose alpha and gamma in memory, with sdulearn.SDUClassifierCV on the rows in answers and a draw of the "
    "others (sdulearn.fit_table does so), and give them to SDUClassifier here."
)


def fit_classifier(model: Model, blocks: Blocks) -> Fit:
    """Fit as ``model.fit`` would on all rows at once, with settings chosen on hashed folds."""
    settings = model._settings()
    if isinstance(model, linear.SDUClassifier):
        return _BlockFit(model, blocks).refit((settings.alphas[0], settings.mixtures[0], {}))
    n_splits = _n_splits(model.cv)
    fit = _BlockFit(model, blocks, n_splits)
    refuse_shared(fit.points, "a choice by folds over points", _CHOOSE_IN_MEMORY)
    _check_folds(fit.folds)
    by_fold = np.array([fit.fold_coefficients(settings, k) for k in range(n_splits)])
    return fit.refit(settings.choose(_fold_scores(fit, by_fold)))


class _BlockFit:
    """What all settings share: the model's parameters, and the results of the first pass."""

    def __init__(self, model: Model, blocks: Blocks, n_splits: int | None = None) -> None:
        self.model = model
        self.n_splits = n_splits
        self.loss = get_training_loss(model.loss)
        self.solver = choose_solver(model.solver, self.loss, 1)
        self.blocks = blocks
        # The closed form reads the rows once and needs no sample of them.
        share = 0.0 if self.solver == "closed_form" else 1 / blocks.n_blocks
        first_pass = blocks.sum(survey, share, n_splits)
        if first_pass is None:
            raise InputError("There are no rows: every block is empty, or all weights are zero.")
        self.folds: list[PairStatistics] = [first_pass[f"fold{k}"] for k in range(n_splits or 1)]
        self.statistics: PairStatistics = add_all(self.folds)
        if self.statistics.checksum:
            raise InputError(
                "Some pair code stands on one row only, or on two rows with different signs or "
                "weights. Over all blocks, each code must stand on exactly two rows, with one sign "
                "and one weight; sdulearn.stack_pairs makes such codes. Where tables were joined, "
                "number the pairs of each on from the last."
            )
        self.sample: list[Block] = first_pass["sample"]
        self.n_rows = int(first_pass["counts"].sum())
        in_sample = sum(np.bincount(sources(block[1]), minlength=3) for block in self.sample)
        # Sources of which the sample has all rows.
        self.whole = in_sample == first_pass["counts"]
        self.points: list[Codes] = first_pass["points"]
        refuse_linked(*np.unique(np.concatenate(self.points), return_counts=True))
        if model.prior is None:
            refuse_shared_prior(self.points)
        self.prior, _ = resolve_prior(model.prior, self.statistics.counts, needed=True)

    def _without(self, fold: int | None) -> PairStatistics:
        """Statistics of all rows but a fold: a sum, because a difference loses digits."""
        if fold is None:
            return self.statistics
        return add_all(one for k, one in enumerate(self.folds) if k != fold)

    def _problem(self, g: Mixture, alpha: float, fold: int | None) -> BlockProblem:
        """The problem of one setting, on all rows or without a fold."""
        statistics = self._without(fold)
        moments = statistics.problem(g, self.prior.value, self.loss, alpha, self.model.fit_intercept)
        a, _ = even_and_linear(*unit_weights(g, self.prior.value, statistics.weight).T)
        left_out = None if fold is None else (self.n_splits or 0, fold)
        rule = RowRule(moments.origin, self.model.fit_intercept, a, self.loss, left_out)
        sampled = replace(rule, a=np.where(self.whole, 0.0, a))
        # Whole sources come first. A piece is a buffer that the next one overwrites, so it is
        # copied.
        rules = (replace(rule, a=a - sampled.a), sampled)
        parts = [[(A.copy(), a) for block in self.sample for A, a in one.pieces(*block)] for one in rules]
        n_whole = sum(len(a) for _, a in parts[0])
        rows, weights = zip(*parts[0], *parts[1], strict=True)
        sample = Problem(joined(list(rows)), np.concatenate(weights), moments.c, moments.ridge, self.loss)
        problem = partial(BlockProblem, blocks=CountedBlocks(self.blocks), rule=rule, sampled=sampled)
        return problem(**vars(moments), sample=sample, n_whole=n_whole, n_rows=self.n_rows)

    def refit(self, choice: linear.Choice) -> Fit:
        """Fit one setting on all rows."""
        alpha, g, fitted = choice
        if self.solver == "closed_form":
            return linear.fit_statistics(self.model, self.statistics, self.prior, choice)
        solution, coefficients = self._solve(g, alpha, self.model.tol)
        return Fit.of(solution, *coefficients, self.prior, fitted)

    def _solve(
        self, g: Mixture, alpha: float, tol: float, fold: int | None = None
    ) -> tuple[Solution, tuple[Array, float]]:
        """Solve one setting, on all rows or without a fold; return the coefficients too."""
        problem = self._problem(g, alpha, fold)
        solution = _SOLVERS[self.solver](problem, tol, self.model.max_iter)
        return solution, problem.coefficients(solution.w)

    def fold_coefficients(self, settings: linear.Settings, fold: int) -> Array:
        """``[coef, intercept]`` of every setting without one fold."""
        tol = linear.fold_tol(self.solver, self.model.tol)
        coefficients = np.empty((len(settings.alphas), len(settings.gammas)), dtype=object)
        for j, g in enumerate(settings.mixtures):
            if self.solver == "closed_form":
                setting = (g, self.prior.value, self.loss, settings.alphas[0], self.model.fit_intercept)
                problem = self._without(fold).problem(*setting)
                coefficients[:, j] = [problem.coefficients(w) for w in problem.ridge_path(settings.alphas)]
                continue
            for i, alpha in enumerate(settings.alphas):
                solution, coefficients[i, j] = self._solve(g, alpha, tol, fold)
                warn_unless(solution.optimality, tol, solution.n_iter)
        return np.array([[*coef, intercept] for coef, intercept in coefficients.ravel()])


def _n_splits(cv: Splitter) -> int:
    if isinstance(cv, Integral):
        return int(cv)
    if isinstance(cv, HashedPairKFold):
        return cv.n_splits
    raise InputError(
        f"`cv={cv!r}` needs all rows at once to deal them into folds. Over blocks give a number of "
        "folds, or sdulearn.blocks.HashedPairKFold, with which every block finds the folds of its "
        "own rows."
    )


def _check_folds(folds: list[PairStatistics]) -> None:
    """Refuse folds without one kind of pair, as PairKFold does in memory."""
    for source, name in ((S, "similar"), (D, "dissimilar")):
        weights = [fold.weight[source] if fold.n_features else 0.0 for fold in folds]
        if any(weights) and not all(weights):
            raise InputError(
                f"With so few {name} pairs, a fold got none of them: hashed folds are equal in size "
                "only on average. Lower `cv`, add pairs, or fit in memory, where PairKFold deals "
                "pairs out evenly."
            )


def _fold_scores(fit: _BlockFit, by_fold: Array) -> Array:
    """1 - zero-one risk (n_folds, n_settings) of each fold under the models without it."""
    sums = fit.blocks.sum(zero_one_sums, by_fold)
    scores = np.empty(by_fold.shape[:2])
    for k, fold in enumerate(fit.folds):
        g = mixture(validation_risk(np.flatnonzero(fold.weight)))
        share = unit_weights(g, fit.prior.value, fold.weight)
        scores[k] = 1 - np.einsum("st,stj->j", share, sums[f"fold{k}"])
    return scores


def zero_one_sums(X: Rows, y: Codes, weight: Array | None, by_fold: Array) -> Sums:
    """Zero-one loss for +1 and -1, summed by fold and source: (3, 2, n_settings) each."""
    codes = codes_of(y)
    fold = fold_of_rows(X, codes, len(by_fold))
    weight = np.ones(len(codes)) if weight is None else weight
    sums = Sums()
    for k, models in enumerate(by_fold):
        rows = np.flatnonzero(fold == k)
        z = np.asarray(X[rows] @ models[:, :-1].T) + models[:, -1]
        of_source = (sources(codes[rows]) == np.arange(3)[:, None]) * weight[rows]
        sums[f"fold{k}"] = np.stack([of_source @ ZeroOne().value(z, t) for t in (1, -1)], axis=1)
    return sums


# Rows, what is known of them (pair codes, and points where answers share them) and, if any,
# weights.
Portion: TypeAlias = tuple[Rows, Codes] | Block


def as_blocks(data: RowsLike) -> Blocks:
    """Return blocks as they are, and portions that can be iterated again as blocks."""
    if isinstance(data, Blocks):
        return data
    if isinstance(data, Iterable) and not isinstance(data, Iterator) and not hasattr(data, "shape"):
        names = _column_names(next(iter(data), None))
        if isinstance(data, Sequence):
            return LocalBlocks(
                [partial(_block, portion, names, k) for k, portion in enumerate(data)], feature_names=names
            )
        return LocalBlocks([partial(_blocks, data, names)], feature_names=names)
    once = ", which comes only once" if isinstance(data, Iterator) else ""
    raise TypeError(
        "fit needs portions (X, y) that can be read again and again: parquet_blocks(...), a list, or "
        f"an object whose iteration starts afresh; got {type(data).__name__}{once}. Give `y` beside plain rows; "
        "for portions that come only once and squared loss, use sdulearn.SDUClassifier.partial_fit."
    )


def _block(portion: Portion, names: list[str] | None, number: int) -> list[Block]:
    if not (isinstance(portion, tuple | list) and len(portion) in (2, 3)):
        raise InputError(
            "A portion is `(X, y)` or `(X, y, sample_weight)`: rows, their pair codes and, if any, their "
            f"weights; got {type(portion).__name__}. Put each portion into a tuple."
        )
    own = _column_names(portion)
    if own is not None and own != names:
        raise InputError(
            f"A portion has the columns {own}, but the first one has {names}. Give every portion the "
            "same columns in the same order."
        )
    X, y, weight = (*portion, None)[:3]
    return make_block(number, X, y, weight)


def _blocks(portions: Iterable[Portion], names: list[str] | None) -> Iterator[Block]:
    for number, portion in enumerate(portions):
        yield from _block(portion, names, number)


def _column_names(portion: object) -> list[str] | None:
    """Return the column names where the rows of a portion are a frame that has them."""
    columns = getattr(portion[0], "columns", None) if isinstance(portion, tuple | list) and portion else None
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def is_dask(X: RowsLike) -> bool:
    """Whether X is a dask collection; Dask itself may not be installed."""
    return hasattr(X, "__dask_graph__")


def _has_probability(estimator: RowsElsewhere) -> bool:
    # Raises with the reason where the local estimator has none.
    return bool(super(RowsElsewhere, estimator).predict_proba)


class RowsElsewhere(LinearClassifier):
    """Mixin before a linear estimator: it also takes portions, blocks and dask collections."""

    def _fit_blocks(self, blocks: Blocks) -> Fit:
        return fit_classifier(cast(Model, self), blocks)

    def _is_iterative(self) -> bool:
        """Whether a fit reads the rows more than once."""
        model = cast(Model, self)
        return choose_solver(model.solver, get_training_loss(model.loss), 1) != "closed_form"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        if y is None or is_dask(X):
            return self._accept(self._fit_blocks(self._as_blocks(X, y, sample_weight, reset=True)))
        return super().fit(X, *_computed(y, sample_weight))

    def decision_function(self, X: RowsLike) -> Values:
        return self._mapped("decision_function", X)

    def predict(self, X: RowsLike) -> Values:
        return self._mapped("predict", X)

    @available_if(_has_probability)
    def predict_proba(self, X: RowsLike) -> Values:
        return self._mapped("predict_proba", X)

    def score(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        if y is not None and not is_dask(X):
            return super().score(X, *_computed(y, sample_weight))
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise InputError("Blocks can be scored with two classes only. Score the rows in answers in memory.")
        coefficients = (self.coef_[0], self.intercept_[0])
        blocks = self._as_blocks(X, y, sample_weight, reset=False)
        sums = blocks.sum(decision_sums, *coefficients)
        if sums is None:
            raise InputError("There are no rows: every block is empty.")
        signs = np.unique(np.sign(codes_of(np.concatenate(sums["y"]))))
        if not len(signs):
            raise no_answers("An accuracy")
        if self._known_prior is not None and len(signs[signs != 0]) == 1:
            # One kind of answer determines an accuracy only together with unlabeled rows.
            sums = blocks.sum(decision_sums, *coefficients, True)
        decision, known, weight = (np.concatenate(sums[name]) for name in ("decision", "y", "weight"))
        given = None if (weight == 1).all() else weight
        return pair_accuracy(decision, known, sample_weight=given, prior=self._known_prior).value

    def _as_blocks(self, X: RowsLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool) -> Blocks:
        """Return rows as blocks, their columns checked or, with ``reset``, taken over."""
        if is_dask(X):
            from sdulearn.distributed.chunks import dask_blocks

            lazy = dask_blocks(self._check_columns(X, reset=reset), y, sample_weight)
            return lazy.persist() if reset and self._is_iterative() else lazy
        blocks = as_blocks(X)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            if names := getattr(blocks, "feature_names", None):
                self.feature_names_in_ = np.array(names, dtype=object)
        return blocks

    def _check_columns(self, X: RowsLike, *, reset: bool) -> RowsLike:
        """Return a dask collection in whole rows; nothing is computed to check its columns."""
        from sdulearn.distributed.chunks import whole_rows

        X = whole_rows(X)
        check_feature_names(self, X._meta, reset=reset)
        check_n_features(self, X, reset=reset)
        return X

    def _mapped(self, method: str, X: RowsLike) -> Values:
        """Apply a method of the local estimator to the rows, block by block where they come so."""
        if not (is_dask(X) or isinstance(X, Blocks)):
            return getattr(super(), method)(X)
        check_is_fitted(self)
        # As it is now, even if it is fitted again or renamed later. The columns of a block have no
        # names.
        model = copy(self)
        model.__dict__.pop("feature_names_in_", None)
        if isinstance(X, Blocks):
            return (getattr(model, method)(rows) for rows, _, _ in cast(LocalBlocks, X))
        from sdulearn.distributed.chunks import map_rows

        return map_rows(model, method, self._check_columns(X, reset=False))


def _computed(*values: ArrayLike | None) -> tuple[Any, ...]:
    """Return what goes with rows in memory, brought there where it is a dask collection."""
    return tuple(cast(Any, one).compute() if is_dask(one) else one for one in values)


def decision_sums(
    X: Rows, y: Codes, weight: Array | None, coef: Array, intercept: float, with_unlabeled: bool = False
) -> Sums | None:
    """Decisions, ``y`` and weights of the rows in pairs or with a label, or of all rows."""
    if not len(y):
        return None
    check_width(X.shape[1], len(coef))
    assert_all_finite(X, input_name="X")
    rows = np.flatnonzero(with_unlabeled | (codes_of(y) != 0) | (labels_of(y) != 0))
    weight = np.ones(len(y)) if weight is None else weight
    return Sums(decision=[np.asarray(X[rows] @ coef + intercept)], y=[y[rows]], weight=[weight[rows]])


class SDUClassifier(RowsElsewhere, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier` for rows that do not fit in memory.

    Parameters, attributes and answer are the same; ``n_iter_`` counts passes over the rows, less
    the first. ``fit`` and ``score`` take

    - :func:`~sdulearn.streaming.parquet_blocks`, or portions ``(X, y)`` or ``(X, y, sample_weight)``
      that can be iterated again, without ``y``;
    - dask arrays and dask frames with their ``y``;
    - rows in memory, as the local estimator does.

    Predictions for blocks are iterators of arrays, one per block; for dask arrays lazy arrays; for
    dask frames lazy Series and frames with the index of their rows.

    Squared loss takes one pass and keeps no rows. The other losses take several passes; on a
    cluster they keep the rows in the workers' memory while they fit. A step brings back one sum of
    size d or d^2; a sample at the start and, for double hinge, the rows at a kink at the end are 16
    MB each, or ten d x d matrices. Whether pairs are whole is checked over all rows, by a checksum:
    it finds half a pair and a pair with two signs, not a code on four rows.

    Examples
    --------
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.streaming import SDUClassifier
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=400, n_unlabeled=500, prior=0.7, random_state=0)
    >>> portions = [(rows[k::4], codes[k::4]) for k in range(4)]
    >>> model = SDUClassifier(loss="double_hinge").fit(portions)
    >>> bool(model.optimality_ < 1e-8)
    True

    On Dask:

    >>> import dask.array as da
    >>> X_dask = da.from_array(rows, chunks=(300, -1))
    >>> model = SDUClassifier().fit(X_dask, da.from_array(codes, chunks=300))
    >>> model.predict(X_dask)
    dask.array<_on_chunk, shape=(1300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class SDUClassifierCV(RowsElsewhere, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV` for rows that do not fit in memory.

    Takes what :class:`sdulearn.streaming.SDUClassifier` takes. Parameters and attributes are the
    local estimator's, but ``cv`` is a number of folds, dealt by hash, or a
    :class:`sdulearn.blocks.HashedPairKFold`, with which the local estimator makes the same choice.
    ``n_jobs`` plays no role. Squared loss takes two passes; other losses take several for each
    setting and fold, so where that is long choose the settings in memory, on a draw of the rows.
    """
