"""Every setting of SDUClassifierCV on one data set, fold by fold."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.losses import ZeroOne
from sdulearn.risks import (
    Mixture,
    even_and_linear,
    marginal_risk,
    mixture,
    row_weights,
    source_weights,
    validation_risk,
)
from sdulearn.solvers import Design, GroupMoments, Problem, Solution, solve, warn_unless, with_ones
from sdulearn.types import Array


class Grid:
    """All settings on the rows of one data set; ``fold`` scores them on one split."""

    def __init__(
        self,
        design: Design,
        source: NDArray[np.intp],
        weight: Array | None,
        prior: float,
        mixtures: list[Mixture],
        alphas: list[float],
        loss: Any,
        solver: str,
        tol: float,
        max_iter: int,
    ) -> None:
        self.design, self.source = design, source
        self.weight = np.ones(len(source)) if weight is None else weight
        self.prior, self.mixtures, self.alphas = prior, mixtures, alphas
        self.loss, self.solver, self.tol, self.max_iter = loss, solver, tol, max_iter
        self.moments = self._moments(slice(None)) if solver == "closed_form" else None

    def problem(self, g: Mixture, alpha: float) -> Problem:
        """One setting on all rows."""
        a, m = even_and_linear(*row_weights(g, self.prior, self.source, self.weight))
        return self.design.problem(a, m, self.loss, alpha)

    def fold(self, train: NDArray[np.intp], test: NDArray[np.intp]) -> tuple[Array, float, float]:
        """Scores of shape (n_alphas, n_gammas) on ``test``; seconds of fitting and of scoring per setting."""
        began = time.perf_counter()
        W = self._closed_form_fold(test) if self.moments is not None else self._iterative_fold(train)
        fitted = time.perf_counter()
        decisions = self.design.A[test] @ W.reshape(-1, W.shape[-1]).T
        risk = mixture(validation_risk(self.source[test]))
        risks = marginal_risk(decisions, self.source[test], risk, self.prior, ZeroOne(), self.weight[test])
        settings = len(self.alphas) * len(self.mixtures)
        scores = 1 - risks.reshape(len(self.mixtures), len(self.alphas)).T
        return scores, (fitted - began) / settings, (time.perf_counter() - fitted) / settings

    def _moments(self, rows: Any) -> GroupMoments:
        A = self.design.A[rows]
        A = A if self.design.fit_intercept else with_ones(A)
        return GroupMoments.from_rows(A, self.source[rows], self.weight[rows], 3)

    def _closed_form_fold(self, test: NDArray[np.intp]) -> Array:
        """Every setting from the Gram matrices of all rows less those of the test rows."""
        assert self.moments is not None
        moments = self.moments - self._moments(test)
        totals = np.where(moments.weight > 0, moments.weight, 1.0)
        paths = []
        for g in self.mixtures:
            a, m = even_and_linear(*source_weights(g, self.prior).T)
            curvature, free = self.loss.curvature, self.design.fit_intercept
            paths.append(moments.ridge_path(a / totals, m / totals, curvature, self.alphas, free))
        return np.array(paths)

    def _iterative_fold(self, train: NDArray[np.intp]) -> Array:
        """Every setting by the solver, each started from the better neighbour: the last alpha or the last gamma."""
        design, source, weight = self.design.subset(train), self.source[train], self.weight[train]
        paths: list[list[Solution]] = []
        for g in self.mixtures:
            a, m = even_and_linear(*row_weights(g, self.prior, source, weight))
            problem = design.problem(a, m, self.loss, self.alphas[0])
            path: list[Solution] = []
            for k, alpha in enumerate(self.alphas):
                starts = path[-1:] + [Solution(last[k].w, 0) for last in paths[-1:]]
                problem = problem.with_penalty(alpha)
                solution = solve(problem, self.solver, self.tol, self.max_iter, starts)
                warn_unless(problem.optimality(solution), self.tol, solution.n_iter)
                path.append(solution)
            paths.append(path)
        return np.array([[solution.w for solution in path] for path in paths])
