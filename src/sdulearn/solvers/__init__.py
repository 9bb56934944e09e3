"""Solvers of ``min_w J(w)`` (see ``problem.py``): they never see pairs, sources or priors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sklearn.exceptions import ConvergenceWarning

from sdulearn.errors import InputError, warn
from sdulearn.losses import TrainingLoss
from sdulearn.solvers.interior_point import solve_interior_point
from sdulearn.solvers.linalg import LARGEST_SYSTEM
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.solvers.smooth import solve_lbfgs, solve_newton
from sdulearn.solvers.squared import solve_closed_form

# What each solver needs of a loss, in the order in which "auto" tries them.
SOLVERS: dict[str, tuple[str, Callable[..., Solution]]] = {
    "closed_form": ("curvature", solve_closed_form),
    "interior_point": ("flat", solve_interior_point),
    "newton": ("even_hess", solve_newton),
    "lbfgs": ("even_grad", solve_lbfgs),
}


def choose_solver(solver: str, loss: TrainingLoss, n_columns: int) -> str:
    """Return a solver's name; "auto" is the first that suits the loss and the number of columns."""
    if solver == "auto":
        if n_columns > LARGEST_SYSTEM and not hasattr(loss, "flat"):
            return "lbfgs"
        return next(name for name, (needs, _) in SOLVERS.items() if hasattr(loss, needs))
    needs, _ = SOLVERS[solver]
    if not hasattr(loss, needs) or (solver == "lbfgs" and hasattr(loss, "flat")):
        lacks = "smoothness" if solver == "lbfgs" else needs
        raise InputError(
            f"`solver={solver!r}` needs a loss with {lacks!r}, which {type(loss).__name__} lacks; use `solver='auto'`."
        )
    return solver


def solve(problem: Problem, solver: str, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Run a solver, cold or from neighbours' solutions (best first), and certify the solution."""
    return problem.certified(SOLVERS[solver][1](problem, tol, max_iter, starts))


def warn_unless(residual: float, tol: float, n_iter: int) -> None:
    """Warn, with the residual, where a solution is not certified to ``tol``."""
    if not residual <= tol:
        warn(
            f"The solver stopped after {n_iter} iterations at a relative KKT residual of {residual:.2g}, above "
            f"`tol={tol:g}`. Raise `max_iter` or `tol`, standardise the features, or raise `alpha`.",
            ConvergenceWarning,
        )
