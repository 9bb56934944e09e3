"""The settings that SDUClassifierCV tries, and their scores on the folds of one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sdulearn.errors import InputError
from sdulearn.losses import TrainingLoss, ZeroOne
from sdulearn.model_selection import grid_results, positive_grid
from sdulearn.risks import (
    MIXED_RISKS,
    Mixture,
    even_and_linear,
    marginal_risk,
    mixture,
    row_weights,
    source_weights,
    validation_risk,
)
from sdulearn.solvers import Design, GroupMoments, Solution, solve, warn_unless, with_ones
from sdulearn.types import Array, Indices

# The interior point method gains one digit an iteration, and no choice among settings hangs on the
# later ones. Newton's last digits come for free.
FOLD_TOL = {"interior_point": 1e-3}


def fold_tol(solver: str, tol: float) -> float:
    """The tolerance of fits that are only compared with each other."""
    return max(tol, FOLD_TOL.get(solver, 0.0))


@dataclass(frozen=True)
class Settings:
    """Penalties and mixtures to try; a risk without gamma has the lone gamma None.

    Settings are numbered as ParameterGrid does it: alphas outer, gammas inner.
    """

    alphas: list[float]
    gammas: list[float | None]
    mixtures: list[Mixture]

    @classmethod
    def of(cls, risk: str | Sequence[float], gammas: Sequence[float], alphas: Sequence[float]) -> Settings:
        """From the parameters of SDUClassifierCV."""
        checked = positive_grid("alphas", alphas)
        if not (isinstance(risk, str) and risk in MIXED_RISKS):
            return cls(checked, [None], [mixture(risk)])
        if not len(gammas):
            raise InputError("`gammas` is empty; give at least one mixture weight between 0 and 1.")
        return cls(checked, [float(g) for g in gammas], [mixture(risk, g) for g in gammas])

    @property
    def params(self) -> list[dict[str, float]]:
        """The settings as GridSearchCV names them."""
        pairs = [(alpha, gamma) for alpha in self.alphas for gamma in self.gammas]
        return [{"alpha": a} if g is None else {"alpha": a, "gamma": g} for a, g in pairs]

    def choose(self, scores: Array) -> tuple[float, Mixture, dict[str, object]]:
        """The best alpha and mixture by scores (n_splits, n_settings), and the attributes of the choice.

        Of settings with equal scores the first wins.
        """
        results = grid_results(self.params, scores)
        i, j = divmod(int(np.argmin(results["rank_test_score"])), len(self.gammas))
        alpha = self.alphas[i]
        gamma = self.gammas[j]
        chosen: dict[str, object] = {"alpha_": alpha, "gamma_": gamma, "cv_results_": results}
        return alpha, self.mixtures[j], chosen


@dataclass
class Grid:
    """All settings on the rows of one data set; ``fold`` scores them on one split."""

    settings: Settings
    design: Design
    source: Indices
    weight: Array
    prior: float
    loss: TrainingLoss
    solver: str
    tol: float
    max_iter: int
    moments: GroupMoments | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.solver == "closed_form":
            self.moments = _moments(self.design, self.source, self.weight)

    def weights(self, g: Mixture) -> tuple[Array, Array]:
        """Even and linear weight of all rows."""
        return even_and_linear(*row_weights(g, self.prior, self.source, self.weight))

    def fold(self, train: Indices, test: Indices) -> Array:
        """Score every setting, fitted on ``train``, on ``test``."""
        W = self._iterative_fold(train) if self.moments is None else self._closed_form_fold(train, test)
        decisions = self.design.A[test] @ W.reshape(-1, W.shape[-1]).T
        source = self.source[test]
        risk = mixture(validation_risk(source))
        risks = marginal_risk(decisions, source, risk, self.prior, ZeroOne(), self.weight[test])
        return 1 - risks.reshape(W.shape[:2]).T.ravel()

    def _closed_form_fold(self, train: Indices, test: Indices) -> Array:
        """Every setting from the Gram matrices of all rows less those of the test rows."""
        assert self.moments is not None
        held_out = _moments(self.design.subset(test), self.source[test], self.weight[test])
        moments = self.moments - held_out
        if moments.is_drowned_by(held_out):
            moments = _moments(self.design.subset(train), self.source[train], self.weight[train])
        totals = np.where(moments.weight > 0, moments.weight, 1.0)
        alphas = self.settings.alphas
        paths = []
        for g in self.settings.mixtures:
            a, m = even_and_linear(*source_weights(g, self.prior).T)
            curvature = self.loss.curvature
            free = self.design.fit_intercept
            paths.append(moments.ridge_path(a / totals, m / totals, curvature, alphas, free))
        return np.array(paths)

    def _iterative_fold(self, train: Indices) -> Array:
        """Every setting by the solver, each started from the better neighbour: the last alpha or the last gamma."""
        design = self.design.subset(train)
        paths: list[list[Solution]] = []
        for g in self.settings.mixtures:
            weights = row_weights(g, self.prior, self.source[train], self.weight[train])
            problem = design.problem(*even_and_linear(*weights), self.loss, self.settings.alphas[0])
            path: list[Solution] = []
            for k, alpha in enumerate(self.settings.alphas):
                starts = path[-1:] + [Solution(last[k].w, 0) for last in paths[-1:]]
                problem = problem.with_penalty(alpha)
                solution = solve(problem, self.solver, self.tol, self.max_iter, starts)
                warn_unless(solution.optimality, self.tol, solution.n_iter)
                path.append(solution)
            paths.append(path)
        return np.array([[solution.w for solution in path] for path in paths])


def _moments(design: Design, source: Indices, weight: Array) -> GroupMoments:
    A = design.A if design.fit_intercept else with_ones(design.A)
    return GroupMoments.from_rows(A, source, weight, 3)
