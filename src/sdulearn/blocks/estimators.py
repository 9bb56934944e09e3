"""The SDU estimators fitted from blocks, and what estimators of rows elsewhere share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
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

from sdulearn.base import LinearClassifier
from sdulearn.blocks import (
    Block,
    Blocks,
    HashedPairKFold,
    PairStatistics,
    Sums,
    add_all,
    check_width,
    fold_of_rows,
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
from sdulearn.linear import (
    Choice,
    SDUClassifier,
    SDUClassifierCV,
    Settings,
    fit_statistics,
    fold_tol,
)
from sdulearn.losses import ZeroOne, get_training_loss
from sdulearn.metrics.accuracy import pair_accuracy
from sdulearn.pairs import D, S, codes_of, labels_of, sources
from sdulearn.prior import no_answers, resolve_prior
from sdulearn.risks import Mixture, even_and_linear, mixture, refuse_linked, unit_weights, validation_risk
from sdulearn.sklearn_private import fit_context
from sdulearn.solvers import choose_solver, warn_unless
from sdulearn.solvers.linalg import joined
from sdulearn.solvers.problem import Fit, Problem, Solution
from sdulearn.types import Array, Codes, Rows, Splitter

RowsLike: TypeAlias = Any  # rows in memory, or blocks, portions or dask collections
# An array for rows in memory; for others what holds such arrays where the rows are.
Values: TypeAlias = Any

# The solver over blocks that stands for each solver in memory; the closed form needs no rows, only
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


def fit_classifier(model: SDUClassifier | SDUClassifierCV, blocks: Blocks) -> Fit:
    """Fit as ``model.fit`` would on all rows at once, settings chosen on hashed folds."""
    settings = model._settings()
    if isinstance(model, SDUClassifier):
        return _BlockFit(model, blocks).refit((settings.alphas[0], settings.mixtures[0], {}))
    n_splits = _n_splits(model.cv)
    fit = _BlockFit(model, blocks, n_splits)
    refuse_shared(fit.points, "a choice by folds over points", _CHOOSE_IN_MEMORY)
    _check_folds(fit.folds)
    by_fold = np.array([fit.fold_coefficients(settings, k) for k in range(n_splits)])
    return fit.refit(settings.choose(_fold_scores(fit, by_fold)))


def is_iterative(model: SDUClassifier | SDUClassifierCV) -> bool:
    """Whether the blocks are asked again and again."""
    return choose_solver(model.solver, get_training_loss(model.loss), 1) != "closed_form"


class _BlockFit:
    """What all settings share: the model's parameters, and the blocks after the first pass."""

    def __init__(self, model: SDUClassifier | SDUClassifierCV, blocks: Blocks, n_splits: int | None = None) -> None:
        self.model = model
        self.blocks = blocks
        self.n_splits = n_splits
        self.loss = get_training_loss(model.loss)
        self.solver = choose_solver(model.solver, self.loss, 1)
        found = blocks.sum(survey, 1 / blocks.n_blocks if is_iterative(model) else 0.0, n_splits)
        if found is None:
            raise InputError("There are no rows: every block is empty, or all weights are zero.")
        self.folds: list[PairStatistics] = [found[f"fold{k}"] for k in range(n_splits or 1)]
        self.statistics: PairStatistics = add_all(self.folds)
        if self.statistics.checksum:
            raise InputError(
                "Some pair code stands on one row only, or on two rows with different signs or "
                "weights. Over all blocks, each code must stand on exactly two rows, with one sign "
                "and one weight; sdulearn.stack_pairs makes such codes. Where tables were joined, "
                "number the pairs of each on from the last."
            )
        self.sample: list[Block] = found["sample"]
        self.n_rows = int(found["counts"].sum())
        in_sample = sum(np.bincount(sources(block[1]), minlength=3) for block in self.sample)
        # Sources of which the sample has all rows.
        self.whole = in_sample == found["counts"]
        self.points: list[Codes] = found["points"]
        refuse_linked(*np.unique(np.concatenate(self.points), return_counts=True))
        if model.prior is None:
            refuse_shared_prior(self.points)
        self.prior, _ = resolve_prior(model.prior, self.statistics.counts, needed=True)

    def _without(self, fold: int | None) -> PairStatistics:
        """Statistics of all rows but a fold: a sum, for a difference loses digits."""
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
        drawn = replace(rule, a=np.where(self.whole, 0.0, a))
        # Sources that are there whole come first; a piece is a buffer that the next one overwrites.
        rules = (replace(rule, a=a - drawn.a), drawn)
        parts = [[(A.copy(), a) for block in self.sample for A, a in one.pieces(*block)] for one in rules]
        n_whole = sum(len(a) for _, a in parts[0])
        rows, weights = zip(*parts[0], *parts[1], strict=True)
        sample = Problem(joined(list(rows)), np.concatenate(weights), moments.c, moments.ridge, self.loss)
        problem = partial(BlockProblem, blocks=CountedBlocks(self.blocks), rule=rule, drawn=drawn)
        return problem(**vars(moments), sample=sample, n_whole=n_whole, n_rows=self.n_rows)

    def refit(self, choice: Choice) -> Fit:
        """One setting on all rows."""
        alpha, g, fitted = choice
        if self.solver == "closed_form":
            return fit_statistics(self.model, self.statistics, self.prior, choice)
        solution, coefficients = self._solve(g, alpha, self.model.tol)
        return Fit.of(solution, *coefficients, self.prior, fitted)

    def _solve(
        self, g: Mixture, alpha: float, tol: float, fold: int | None = None
    ) -> tuple[Solution, tuple[Array, float]]:
        """The solution of one setting, on all rows or without a fold, and its coefficients."""
        problem = self._problem(g, alpha, fold)
        solution = _SOLVERS[self.solver](problem, tol, self.model.max_iter)
        return solution, problem.coefficients(solution.w)

    def fold_coefficients(self, settings: Settings, fold: int) -> Array:
        """``[coef, intercept]`` of every setting without one fold."""
        tol = fold_tol(self.solver, self.model.tol)
        found = np.empty((len(settings.alphas), len(settings.gammas)), dtype=object)
        for j, g in enumerate(settings.mixtures):
            if self.solver == "closed_form":
                setting = (g, self.prior.value, self.loss, settings.alphas[0], self.model.fit_intercept)
                problem = self._without(fold).problem(*setting)
                found[:, j] = [problem.coefficients(w) for w in problem.ridge_path(settings.alphas)]
                continue
            for i, alpha in enumerate(settings.alphas):
                solution, found[i, j] = self._solve(g, alpha, tol, fold)
                warn_unless(solution.optimality, tol, solution.n_iter)
        return np.array([[*coef, intercept] for coef, intercept in found.ravel()])


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
    """Every kind of pair must be in every fold, as PairKFold makes sure in memory."""
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
    found = Sums()
    for k, models in enumerate(by_fold):
        rows = np.flatnonzero(fold == k)
        z = np.asarray(X[rows] @ models[:, :-1].T) + models[:, -1]
        of_source = (sources(codes[rows]) == np.arange(3)[:, None]) * weight[rows]
        found[f"fold{k}"] = np.stack([of_source @ ZeroOne().value(z, t) for t in (1, -1)], axis=1)
    return found


def _has_probability(estimator: RowsElsewhere) -> bool:
    # Raises with the reason where the local estimator has none.
    return bool(super(RowsElsewhere, estimator).predict_proba)


class RowsElsewhere(LinearClassifier):
    """A linear estimator for rows elsewhere; for rows in memory it is the local one."""

    def _is_elsewhere(self, X: RowsLike) -> bool:
        raise NotImplementedError

    def _comes_with_codes(self, X: RowsLike, y: ArrayLike | None) -> bool:
        """Whether rows with what is known of them are elsewhere."""
        return self._is_elsewhere(X)

    def _map_rows(self, method: str, X: RowsLike) -> Values:
        """A method of the fitted local estimator on every block of rows."""
        raise NotImplementedError

    def _open(
        self, X: RowsLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool, keep: bool = False
    ) -> AbstractContextManager[Blocks]:
        """Rows as blocks; ``reset``: take their columns over; ``keep``: they are read often."""
        raise NotImplementedError

    def _fit_blocks(self, blocks: Blocks) -> Fit:
        return fit_classifier(cast(SDUClassifier | SDUClassifierCV, self), blocks)

    def _in_memory(self, *values: Any) -> tuple[Any, ...]:
        """What goes with rows in memory."""
        return values

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        if not self._comes_with_codes(X, y):
            return super().fit(X, *self._in_memory(y, sample_weight))
        with self._open(X, y, sample_weight, reset=True, keep=True) as blocks:
            fit = self._fit_blocks(blocks)
        return self._accept(fit)

    def decision_function(self, X: RowsLike) -> Values:
        return self._map_rows("decision_function", X) if self._is_elsewhere(X) else super().decision_function(X)

    def predict(self, X: RowsLike) -> Values:
        return self._map_rows("predict", X) if self._is_elsewhere(X) else super().predict(X)

    @available_if(_has_probability)
    def predict_proba(self, X: RowsLike) -> Values:
        return self._map_rows("predict_proba", X) if self._is_elsewhere(X) else super().predict_proba(X)

    def score(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        if not self._comes_with_codes(X, y):
            return super().score(X, *self._in_memory(y, sample_weight))
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise InputError("Blocks can be scored with two classes only. Score the rows in answers in memory.")
        coefficients = (self.coef_[0], self.intercept_[0])
        with self._open(X, y, sample_weight, reset=False) as blocks:
            sums = blocks.sum(decision_sums, *coefficients)
            if sums is None:
                raise InputError("There are no rows: every block is empty.")
            signs = np.unique(np.sign(codes_of(np.concatenate(sums["y"]))))
            if not len(signs):
                raise no_answers("An accuracy")
            if self._known_prior is not None and len(signs[signs != 0]) == 1:
                # One kind of answer tells an accuracy only beside unlabeled rows.
                sums = blocks.sum(decision_sums, *coefficients, True)
        decision, known, weight = (np.concatenate(sums[name]) for name in ("decision", "y", "weight"))
        given = None if (weight == 1).all() else weight
        return pair_accuracy(decision, known, sample_weight=given, prior=self._known_prior).value

    def _without_names(self) -> Self:
        """The fitted model for blocks, whose columns have no names."""
        model = copy(self)
        model.__dict__.pop("feature_names_in_", None)
        return model


def decision_sums(
    X: Rows, y: Codes, weight: Array | None, coef: Array, intercept: float, with_unlabeled: bool = False
) -> Sums | None:
    """Decisions, what is known and weights of rows in pairs or with a label, or of all."""
    if not len(y):
        return None
    check_width(X.shape[1], len(coef))
    assert_all_finite(X, input_name="X")
    rows = np.flatnonzero(with_unlabeled | (codes_of(y) != 0) | (labels_of(y) != 0))
    weight = np.ones(len(y)) if weight is None else weight
    return Sums(decision=[np.asarray(X[rows] @ coef + intercept)], y=[y[rows]], weight=[weight[rows]])
