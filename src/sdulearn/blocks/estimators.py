"""SDUClassifier and SDUClassifierCV fitted from blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from sdulearn.base import Fit
from sdulearn.blocks.double_hinge import solve_double_hinge
from sdulearn.blocks.folds import HashedPairKFold, fold_of_rows
from sdulearn.blocks.points import codes_of, refuse_shared_points
from sdulearn.blocks.problem import SurveyedBlocks
from sdulearn.blocks.smooth import solve_lbfgs, solve_newton
from sdulearn.blocks.source import Blocks, Sums
from sdulearn.errors import InputError
from sdulearn.grid import Settings, fold_tol
from sdulearn.linear import SDUClassifier, SDUClassifierCV, fit_statistics
from sdulearn.losses import TrainingLoss, ZeroOne, get_training_loss
from sdulearn.pairs import D, S, sources
from sdulearn.prior import PriorEstimate
from sdulearn.risks import (
    Mixture,
    check_sources,
    mixture,
    refuse_linked,
    resolve_prior,
    source_weights,
    validation_risk,
)
from sdulearn.solvers import Solution, choose_solver, warn_unless
from sdulearn.types import Array, Codes, Indices, Rows, Splitter

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
_GIVE_THE_PRIOR = (
    "Give `prior`: sdulearn.estimate_prior(y=...) finds it from the rows in answers alone. Or fit in memory, "
    "with `engine='memory'` of sdulearn.fit_table."
)


def fit_classifier(model: SDUClassifier, blocks: Blocks) -> Fit:
    """Fit as ``model.fit`` would on all rows at once. Squared loss takes one pass, another loss a handful more."""
    g = mixture(model.risk, model.gamma)
    return _BlockFit.of(model, blocks).refit(g, model.alpha, {})


def fit_classifier_cv(model: SDUClassifierCV, blocks: Blocks) -> Fit:
    """Choose alpha and gamma on hashed folds, then fit on all rows; squared loss takes two passes."""
    settings = Settings.of(model.risk, model.gammas, model.alphas)
    n_splits = _n_splits(model.cv)
    fit = _BlockFit.of(model, blocks, n_splits)
    refuse_shared_points(fit.surveyed.points, "a choice by folds over points", _CHOOSE_IN_MEMORY)
    _check_folds(fit.surveyed)
    lines = np.array([fit.fold_lines(settings, k) for k in range(n_splits)])
    alpha, g, chosen = settings.choose(_fold_scores(fit.surveyed, lines, fit.prior.value))
    return fit.refit(g, alpha, chosen)


@dataclass(frozen=True)
class _BlockFit:
    """What all settings of a model have in common: its parameters, and the blocks after the first pass."""

    surveyed: SurveyedBlocks
    prior: PriorEstimate
    loss: TrainingLoss
    solver: str
    fit_intercept: bool
    tol: float
    max_iter: int

    @classmethod
    def of(cls, model: SDUClassifier | SDUClassifierCV, blocks: Blocks, n_splits: int | None = None) -> _BlockFit:
        """After the first pass over the blocks."""
        loss = get_training_loss(model.loss)
        solver = choose_solver(model.solver, loss, 1)
        surveyed = SurveyedBlocks(blocks, sampled=solver != "closed_form", n_splits=n_splits)
        statistics = surveyed.statistics
        if surveyed.points.shared:
            refuse_linked(surveyed.points.points, surveyed.points.counts)
        if model.prior is None:
            refuse_shared_points(surveyed.points, "`prior=None`, a prior from the answers,", _GIVE_THE_PRIOR)
        prior = resolve_prior(model.prior, statistics.weight, statistics.squares)
        return cls(surveyed, prior, loss, solver, model.fit_intercept, model.tol, model.max_iter)

    def refit(self, g: Mixture, alpha: float, fitted: dict[str, object]) -> Fit:
        """One setting on all rows."""
        if self.solver == "closed_form":
            statistics = self.surveyed.statistics
            return fit_statistics(statistics, g, self.prior, self.loss, alpha, self.fit_intercept, fitted)
        solution, line = self._solve(g, alpha, self.tol)
        return Fit.of(solution, *line, self.prior, fitted)

    def _solve(
        self, g: Mixture, alpha: float, tol: float, fold: int | None = None
    ) -> tuple[Solution, tuple[Array, float]]:
        """The solution of one setting, without a fold where one is given, and its line."""
        problem = self.surveyed.problem(g, self.prior.value, self.loss, alpha, self.fit_intercept, fold)
        solution = _SOLVERS[self.solver](problem, tol, self.max_iter)
        return solution, problem.moments.coefficients(solution.w)

    def fold_lines(self, settings: Settings, fold: int) -> Array:
        """``[coef, intercept]`` of every setting without one fold."""
        tol = fold_tol(self.solver, self.tol)
        lines = np.empty((len(settings.alphas), len(settings.gammas)), dtype=object)
        for j, g in enumerate(settings.mixtures):
            if self.solver == "closed_form":
                lines[:, j] = self._closed_form_lines(g, settings.alphas, fold)
                continue
            for i, alpha in enumerate(settings.alphas):
                solution, line = self._solve(g, alpha, tol, fold)
                warn_unless(solution.optimality, tol, solution.n_iter)
                lines[i, j] = line
        return np.array([[*coef, intercept] for coef, intercept in lines.ravel()])

    def _closed_form_lines(self, g: Mixture, alphas: list[float], fold: int) -> list[tuple[Array, float]]:
        train = self.surveyed.without(fold)
        setting = (g, self.prior.value, self.loss)
        problem = train.problem(*setting, alphas[0], self.fit_intercept)
        return [problem.coefficients(w) for w in train.solve(*setting, alphas, self.fit_intercept)]


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


def _check_folds(surveyed: SurveyedBlocks) -> None:
    """Every kind of pair must be in every fold, as PairKFold makes sure in memory."""
    for source, name in ((S, "similar"), (D, "dissimilar")):
        weights = [fold.weight[source] if fold.n_features else 0.0 for fold in surveyed.folds]
        if any(weights) and not all(weights):
            raise InputError(
                f"With so few {name} pairs, a fold got none of them: hashed folds are equal in size "
                "only on average. Lower `cv`, add pairs, or fit in memory, where PairKFold deals "
                "pairs out evenly."
            )


def _fold_scores(surveyed: SurveyedBlocks, lines: Array, prior: float) -> Array:
    """1 - zero-one risk (n_folds, n_settings) of each fold under the lines fitted without it."""
    sums = surveyed.blocks.sum(zero_one_sums, lines)
    scores = np.empty(lines.shape[:2])
    for k, fold in enumerate(surveyed.folds):
        scores[k] = 1 - validation_risk_of(fold.weight, sums[f"fold{k}"], prior)
    return scores


def zero_one_sums(X: Rows, y: Codes, weight: Array | None, lines: Array) -> Sums:
    """Zero-one loss for the labels +1 and -1, summed over the rows of each fold and source (3, 2, n_settings)."""
    codes = codes_of(y)
    fold = fold_of_rows(X, codes, len(lines))
    found = Sums()
    for k, line in enumerate(lines):
        rows = np.flatnonzero(fold == k)
        z = np.asarray(X[rows] @ line[:, :-1].T) + line[:, -1]
        its_weight = None if weight is None else weight[rows]
        found[f"fold{k}"] = source_losses(z, sources(codes[rows]), its_weight)
    return found


def source_losses(z: Array, source: Indices, weight: Array | None) -> Array:
    """Zero-one loss for the labels +1 and -1 (3, 2, n_columns of z), summed over the rows of each source."""
    of_source = (source == np.arange(3)[:, None]) * (1.0 if weight is None else weight)
    return np.stack([of_source @ ZeroOne().value(z, t) for t in (1, -1)], axis=1)


def validation_risk_of(weight: Array, losses: Array, prior: float) -> Array:
    """The risk that the sources allow, from their weights and :func:`source_losses`."""
    g = mixture(validation_risk(np.flatnonzero(weight)))
    check_sources(g, weight)
    share = source_weights(g, prior) / np.where(weight > 0, weight, 1.0)[:, None]
    return np.einsum("st,stj->j", share, losses)
