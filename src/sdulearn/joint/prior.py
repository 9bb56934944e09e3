"""The prior of a fit."""

from __future__ import annotations

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError, OneKindWarning, warn
from sdulearn.joint.path import Parameters
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate, clopper_pearson, effective_number, estimate_prior, prior_of_weights
from sdulearn.types import Array


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
    estimate = prior_of_weights(n_similar, n_dissimilar, squares, _majority(parameters))
    return estimate, estimate.pull


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
    estimate = estimate_prior(y=pairs, sample_weight=weight, error_rate=answer_model, majority=_majority(parameters))
    return estimate, estimate.pull


def _majority(parameters: Parameters) -> str:
    return "positive" if parameters.orientation == "majority" else "negative"


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
