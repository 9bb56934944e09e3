"""The steps of a fit, for rows in memory and rows in blocks alike.

They are the prior, the starts, the path of penalties, the polish and the names of the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.profile import profile
from sdulearn.base import Fit
from sdulearn.errors import InputError, OneKindWarning, OrientationWarning, ScalingWarning, warn
from sdulearn.joint.optimise import newton
from sdulearn.joint.path import Data, Summary, fit_path
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate, clopper_pearson, effective_number, estimate_prior, prior_of_weights
from sdulearn.solvers.lbfgs import lbfgs_many
from sdulearn.types import Array

_STEPS_DOWN = 6
# The last steps of L-BFGS, before Newton's method.
_POLISH_TOL = 1e-4
_POLISH_ITER = 50
# Standard deviations this many times apart: the smaller column has lost its say at any covariance
# power.
_FAR_APART = 1e3


class Parameters(Protocol):
    """The parameters that both estimators have."""

    prior: float | None
    prior_strength: float
    orientation: str
    init: str
    tol: float
    max_iter: int


def resolve_prior(
    parameters: Parameters, n_similar: float, n_dissimilar: float, squares: float
) -> tuple[PriorEstimate, float | None]:
    """The prior as reported, and the one in the objective (None where there is none).

    ``n_similar`` and ``n_dissimilar`` are total weights of pairs, ``squares`` the sum of the
    squared weights of all pairs.
    """
    n_answers = n_similar + n_dissimilar
    if n_answers == 0:
        raise InputError(
            "PairLogisticRegression learns from pairs, and `y` marks none (or all weigh zero). "
            "Mark the two rows of each similar pair k with +k and of each dissimilar pair with -k; "
            "sdulearn.stack_pairs does it."
        )
    warn_of_one_kind(n_similar, n_dissimilar, parameters.prior)
    if parameters.prior is not None:
        return PriorEstimate.given(parameters.prior), float(parameters.prior)
    majority = "positive" if parameters.orientation == "majority" else "negative"
    estimate = prior_of_weights(n_similar, n_dissimilar, squares, majority)
    if n_similar <= n_dissimilar:
        return estimate, None
    # Not 0 or 1 even if every pair is similar: a few more answers would have brought a different
    # one.
    margin = 1 / (4 * effective_number(n_answers, squares))
    return estimate, float(np.clip(estimate.value, margin, 1 - margin))


def resolve_graph_prior(
    parameters: Parameters, pairs: Pairs, weight: Array, graph: AnswerGraph, answer_model: AnswerModel
) -> tuple[PriorEstimate, float | None]:
    """As :func:`resolve_prior`, of answers that share points and of labels."""
    known = graph.labels[graph.labels != 0]
    if not graph.n_answers and (len(known) == 0 or abs(known.sum()) == len(known)):
        raise InputError(
            "There is no answer in `y`, or all weigh zero, and its labels are not of two classes, so nothing "
            "tells the classes apart. Add answers, or labels -1 and +1."
        )
    if parameters.prior is not None:
        return PriorEstimate.given(parameters.prior), float(parameters.prior)
    if not graph.n_answers:
        # The points with labels were chosen: their share is reported, and pulls nothing.
        by_label = graph.point_weights[graph.labels != 0]
        n_labels = effective_number(float(by_label.sum()), float(by_label @ by_label))
        share = float(by_label @ (known > 0)) / float(by_label.sum())
        low, high = clopper_pearson(share * n_labels, (1 - share) * n_labels, 0.95)
        identified = low > 0.5 or high < 0.5
        return PriorEstimate(share, low, high, identified), None
    if not len(known) and (graph.same > 0).all():
        warn_of_one_kind(1.0, 0.0, None)
    majority = "positive" if parameters.orientation == "majority" else "negative"
    if not answer_model.certain:
        estimate = _noisy_prior(graph, answer_model)
        estimate = estimate if majority == "positive" else estimate.mirrored()
    else:
        estimate = estimate_prior(y=pairs, sample_weight=weight, majority=majority)
    if estimate.value == 0.5:
        return estimate, None
    margin = 1 / (4 * (estimate.n_effective or 1.0))
    return estimate, float(np.clip(estimate.value, margin, 1 - margin))


def _noisy_prior(graph: AnswerGraph, answer_model: AnswerModel) -> PriorEstimate:
    """The prior by answers that are wrong at these rates, the larger class +1."""
    counted = estimate_prior(float((graph.same > 0).sum()), float((graph.same < 0).sum()))
    # Labels would be a choice of points, not a random draw.
    found = profile(replace(graph, labels=np.zeros_like(graph.labels)), 0.95, answer_model)
    return replace(
        counted,
        value=found.value,
        low=found.low,
        high=found.high,
        identified=found.low > 0.5,
        n_effective=float(graph.n_independent),
    )


def warn_of_scales(deviation: Array, names: Sequence[str] | None = None) -> None:
    """A ScalingWarning where the standard deviations of columns are far apart; zero for a constant."""
    largest = int(np.argmax(deviation))
    hidden = np.flatnonzero((deviation > 0) & (deviation * _FAR_APART < deviation[largest]))
    if not hidden.size:
        return
    smallest = hidden[np.argmin(deviation[hidden])]
    ratio = deviation[largest] / deviation[smallest]
    named = [f"column {j}" if names is None else f"column {names[j]!r}" for j in (largest, smallest)]
    more = f" ({hidden.size - 1} more are as small)" if hidden.size > 1 else ""
    warn(
        f"In `X`, the standard deviation of {named[0]} is {ratio:.1g} times that of {named[1]}{more}. "
        "The penalty is in the units of the columns, so the small ones may have no say. Standardise "
        "the features first, for example with sklearn.preprocessing.StandardScaler in a Pipeline.",
        ScalingWarning,
    )


def warn_of_one_kind(n_similar: float, n_dissimilar: float, prior: float | None) -> None:
    """A OneKindWarning where all answers are the same."""
    if n_similar and n_dissimilar:
        return
    found = "similar, which one class for all rows explains fully, so the two classes are not identified"
    if n_dissimilar:
        found = "dissimilar, which says nothing of how large the classes are, so the prior is not identified"
    remedy = "Ask about randomly drawn pairs until both answers have come"
    if prior is not None:
        found += f" by the answers but by `prior={prior:g}` alone"
    else:
        remedy += ", or give `prior`, P(y = +1), if you know it"
    warn(f"All answers are {found}. {remedy}.", OneKindWarning)


def make_starts(parameters: Parameters, summary: Summary) -> list[Array]:
    """Where the path begins: the starts that ``init`` names."""
    starts = summary.starts()
    return starts[:1] if parameters.init == "moment" else starts


def descend(parameters: Parameters, data: Data, alpha: float, covariance_power: float) -> Array:
    """The solution at ``alpha``, in the axes, by the path from where the model leaves zero."""
    top = max(data.summary.largest_alpha(covariance_power), alpha)
    alphas = np.geomspace(top, alpha, _STEPS_DOWN if top > alpha else 1)[:, None]
    return fit_path(data, alphas, [covariance_power], make_starts(parameters, data.summary))[-1, :, 0]


def polish(
    parameters: Parameters,
    data: Data,
    v: Array,
    alpha: float,
    covariance_power: float,
    prior: PriorEstimate,
) -> Fit:
    """Solve to ``tol`` from a solution of the path, certify it and name the classes."""
    pen = data.summary.penalty(alpha, covariance_power)[:, None]
    objective = data.objective(pen)
    scale = data.summary.scale(pen)
    # Without an exact Hessian Newton's method is slow: L-BFGS does it all.
    tol = _POLISH_TOL if objective.exact_hessian else parameters.tol
    n_steps = _POLISH_ITER if objective.exact_hessian else 10 * parameters.max_iter
    W, _ = lbfgs_many(objective.value_and_gradient, v[:, None], scale, tol, n_steps)
    v, value, optimality, n_iter = newton(objective, W[:, 0], scale[:, 0], parameters.tol, parameters.max_iter)
    # Labels have named the classes.
    sign = 1.0 if data.summary.named is not None else class_sign(parameters, prior, *data.positive_share(v))
    coef, intercept = data.axes.coefficients(v)
    return Fit(sign * coef[None, :], np.array([sign * intercept]), value, optimality, n_iter, prior)


def class_sign(parameters: Parameters, prior: PriorEstimate, positive: float, spread: float) -> float:
    """The sign that makes the larger class +1, or as ``prior`` or ``orientation`` says.

    ``positive`` is the share of the unlabeled rows on the positive side, ``spread`` the sum of
    the squared weights of the rows.
    """
    # Two standard errors of the share; and where the counts cannot tell p from 1/2, what the prior
    # penalty may have added.
    margin = max(2 * np.sqrt(0.25 * spread), 0.0 if prior.identified else 0.1)
    close = abs(positive - 0.5) <= margin
    if parameters.prior == 0.5 or (parameters.prior is None and close):
        warn(
            f"The model puts {max(positive, 1 - positive):.0%} of the rows on one side, so which class "
            "is the larger is uncertain and the names -1 and +1 are arbitrary. Name them by a few "
            "labelled points: orient(X, y_true).",
            OrientationWarning,
        )
    larger_is_positive = parameters.orientation == "majority"
    if parameters.prior is not None:
        larger_is_positive = parameters.prior >= 0.5
    return 1.0 if positive == 0.5 or (positive > 0.5) == larger_is_positive else -1.0
