"""SDUClassifier and SDUClassifierCV fitted from blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.blocks.double_hinge import double_hinge
from sdulearn.blocks.folds import HashedPairKFold, fold_of_rows
from sdulearn.blocks.problem import Solution, SurveyedBlocks
from sdulearn.blocks.smooth import lbfgs, newton
from sdulearn.blocks.source import Blocks, Sums
from sdulearn.errors import InputError
from sdulearn.linear import FOLD_TOL, SDUClassifier, SDUClassifierCV, resolve_prior
from sdulearn.losses import ZeroOne, get_training_loss
from sdulearn.model_selection import grid_results
from sdulearn.pairs import D, S, sources
from sdulearn.risks import Mixture, check_sources, mixture, source_weights, validation_risk
from sdulearn.solvers import choose_solver, warn_unless
from sdulearn.types import Array

# The solver over blocks that stands for each solver in memory; the closed form needs no rows, only
# their statistics.
_SOLVERS: dict[str, Callable[..., Solution]] = {"interior_point": double_hinge, "newton": newton, "lbfgs": lbfgs}


def fit_classifier(model: SDUClassifier, blocks: Blocks) -> None:
    """Fit as ``model.fit`` would on all rows at once. Squared loss takes one pass, another loss a handful more."""
    loss, g = get_training_loss(model.loss), mixture(model.risk, model.gamma)
    solver = choose_solver(model.solver, loss, 1)
    surveyed = SurveyedBlocks(blocks, sampled=solver != "closed_form")
    _begin(model, surveyed)
    _refit(model, surveyed, g, model.alpha, loss, solver)


def fit_classifier_cv(model: SDUClassifierCV, blocks: Blocks) -> None:
    """Choose alpha and gamma on hashed folds, then fit on all rows; squared loss takes two passes."""
    loss = get_training_loss(model.loss)
    alphas, gammas, mixtures = model._settings()
    solver, n_splits = choose_solver(model.solver, loss, 1), _n_splits(model.cv)
    surveyed = SurveyedBlocks(blocks, sampled=solver != "closed_form", n_splits=n_splits)
    _begin(model, surveyed)
    _check_folds(surveyed)
    began = time.perf_counter()
    lines = np.array([_fold_lines(model, surveyed, mixtures, alphas, loss, solver, k) for k in range(n_splits)])
    fitted = time.perf_counter()
    scores = _fold_scores(surveyed, lines, model.prior_.value).reshape(n_splits, len(mixtures), len(alphas))
    settings = lines.shape[0] * lines.shape[1]
    seconds = [np.full(n_splits, t / settings) for t in (fitted - began, time.perf_counter() - fitted)]
    j = model._choose(grid_results(alphas, gammas, scores.transpose(0, 2, 1), *seconds), alphas, gammas)
    _refit(model, surveyed, mixtures[j], model.alpha_, loss, solver)


def _begin(model: Any, surveyed: SurveyedBlocks) -> None:
    model.__dict__.pop("statistics_", None)
    model.n_features_in_ = surveyed.statistics.n_features
    model.prior_ = resolve_prior(model.prior, surveyed.statistics.weight)


def _refit(model: Any, surveyed: SurveyedBlocks, g: Mixture, alpha: float, loss: Any, solver: str) -> None:
    if solver == "closed_form":
        model._solve_statistics(surveyed.statistics, g, alpha, loss)
        return
    problem = surveyed.problem(g, model.prior_.value, loss, alpha, model.fit_intercept)
    solution = _SOLVERS[solver](problem, model.tol, model.max_iter)
    model._set_line(*problem.moments.coefficients(solution.w))
    model._certify(solution.objective, solution.optimality, solution.n_iter)


def _n_splits(cv: Any) -> int:
    if isinstance(cv, Integral):
        return int(cv)
    if isinstance(cv, HashedPairKFold):
        return cv.n_splits
    raise InputError(
        f"cv={cv!r} needs all rows at once to deal them into folds. Over blocks give a number of folds, or "
        "sdulearn.blocks.HashedPairKFold, with which every block finds the folds of its own rows."
    )


def _check_folds(surveyed: SurveyedBlocks) -> None:
    """Every kind of pair must be in every fold, as PairKFold makes sure in memory."""
    for source, name in ((S, "similar"), (D, "dissimilar")):
        weights = [fold.weight[source] if fold.n_features else 0.0 for fold in surveyed.folds]
        if any(weights) and not all(weights):
            raise InputError(
                f"With so few {name} pairs, a fold got none of them: hashed folds are equal in size only on average. "
                "Lower cv, add pairs, or fit in memory, where PairKFold deals pairs out evenly."
            )


def _fold_lines(
    model: SDUClassifierCV,
    surveyed: SurveyedBlocks,
    mixtures: list[Mixture],
    alphas: list[float],
    loss: Any,
    solver: str,
    fold: int,
) -> Array:
    """``[coef, intercept]`` of every setting (mixtures outer, alphas inner) without one fold."""
    lines, tol = [], max(model.tol, FOLD_TOL.get(solver, 0.0))
    train = surveyed.statistics - surveyed.folds[fold]
    for g in mixtures:
        if solver == "closed_form":
            problem = train.problem(g, model.prior_.value, loss, alphas[0], model.fit_intercept)
            solutions = train.solve(g, model.prior_.value, loss, alphas, model.fit_intercept)
            lines += [problem.coefficients(w) for w in solutions]
            continue
        for alpha in alphas:
            rows = surveyed.problem(g, model.prior_.value, loss, alpha, model.fit_intercept, fold)
            solution = _SOLVERS[solver](rows, tol, model.max_iter)
            warn_unless(solution.optimality, tol, solution.n_iter)
            lines.append(rows.moments.coefficients(solution.w))
    return np.array([[*coef, intercept] for coef, intercept in lines])


def _fold_scores(surveyed: SurveyedBlocks, lines: Array, prior: float) -> Array:
    """1 - zero-one risk (n_folds, n_settings) of each fold under the lines fitted without it."""
    sums = surveyed.blocks.sum(zero_one_sums, lines)
    scores = np.empty(lines.shape[:2])
    for k, fold in enumerate(surveyed.folds):
        scores[k] = 1 - validation_risk_of(fold.weight, sums[f"fold{k}"], prior)
    return scores


def zero_one_sums(X: Any, y: NDArray[np.int64], weight: Array | None, lines: Array) -> Sums:
    """Zero-one loss for the labels +1 and -1, summed over the rows of each fold and source (3, 2, n_settings)."""
    fold, found = fold_of_rows(X, y, len(lines)), Sums()
    for k, line in enumerate(lines):
        rows = np.flatnonzero(fold == k)
        z = np.asarray(X[rows] @ line[:, :-1].T) + line[:, -1]
        found[f"fold{k}"] = source_losses(z, sources(y[rows]), None if weight is None else weight[rows])
    return found


def source_losses(z: Array, source: NDArray[np.intp], weight: Array | None) -> Array:
    """Zero-one loss for the labels +1 and -1 (3, 2, n_columns of z), summed over the rows of each source."""
    of_source = (source == np.arange(3)[:, None]) * (1.0 if weight is None else weight)
    return np.stack([of_source @ ZeroOne().value(z, t) for t in (1, -1)], axis=1)


def validation_risk_of(weight: Array, losses: Array, prior: float) -> Array:
    """The risk that the sources allow, from their weights and :func:`source_losses`."""
    g = mixture(validation_risk(np.flatnonzero(weight)))
    check_sources(g, weight)
    share = source_weights(g, prior) / np.where(weight > 0, weight, 1.0)[:, None]
    return np.einsum("st,stj->j", share, losses)
