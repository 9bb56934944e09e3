"""Solvers of ``min_w J(w)`` (see :class:`Problem`): they see rows and weights, never pairs, sources or priors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from sdulearn.errors import InputError, warn
from sdulearn.solvers.closed_form import closed_form
from sdulearn.solvers.interior_point import interior_point
from sdulearn.solvers.moments import GroupMoments
from sdulearn.solvers.pieces import pieces, with_ones
from sdulearn.solvers.problem import Design, Problem, Solution
from sdulearn.solvers.smooth import lbfgs, newton

__all__ = [
    "SOLVERS",
    "Design",
    "GroupMoments",
    "Problem",
    "Solution",
    "check_system_size",
    "choose_solver",
    "pieces",
    "solve",
    "warn_unless",
    "with_ones",
]

# What each solver needs of a loss, in the order in which "auto" tries them.
SOLVERS: dict[str, tuple[str, Callable[..., Solution]]] = {
    "closed_form": ("curvature", closed_form),
    "interior_point": ("flat", interior_point),
    "newton": ("even_hess", newton),
    "lbfgs": ("even_grad", lbfgs),
}
_LARGEST_SYSTEM = 4000


def choose_solver(solver: str, loss: Any, n_columns: int) -> str:
    """The solver by name, or for "auto" the first whose needs the loss meets and whose system is small enough."""
    if solver == "auto":
        smooth = not hasattr(loss, "flat")
        if n_columns > _LARGEST_SYSTEM and smooth:
            return "lbfgs"
        return next(name for name, (needs, _) in SOLVERS.items() if hasattr(loss, needs))
    needs, _ = SOLVERS[solver]
    if not hasattr(loss, needs) or (solver == "lbfgs" and hasattr(loss, "flat")):
        lacks = "smoothness" if solver == "lbfgs" else needs
        able = [name for name, (need, _) in SOLVERS.items() if hasattr(loss, need) and name != solver]
        raise InputError(
            f"solver={solver!r} needs a loss with {lacks!r}, which {type(loss).__name__} lacks; use solver='auto' "
            f"or one of {able}."
        )
    return solver


def check_system_size(n_columns: int) -> None:
    """Refuse more columns than a dense square matrix of them is good for."""
    if n_columns > _LARGEST_SYSTEM:
        raise InputError(
            f"X has {n_columns:,} features. Rows that come in portions are summed up in square matrices of that size, "
            f"and {_LARGEST_SYSTEM:,} is the limit. Fit in memory, or reduce the features first."
        )


def solve(problem: Problem, solver: str, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Run a solver by its name, cold or from neighbours' solutions, the most trusted first."""
    return SOLVERS[solver][1](problem, tol, max_iter, starts)


def warn_unless(residual: float, tol: float, n_iter: int) -> None:
    """A ConvergenceWarning with the residual where the certificate does not hold."""
    if not residual <= tol:
        warn(
            f"The solver stopped after {n_iter} iterations at a relative KKT residual of {residual:.2g}, above "
            f"tol={tol:g}. Raise max_iter or tol, standardise the features, or raise alpha.",
            ConvergenceWarning,
        )
