"""Answers that come with a certainty: how often people are right who say that they are so sure.

Person a who says to be right with probability c is right with

    logit P(right) = alpha_a + beta_a logit(c),   alpha_a ~ N(0, 1), beta_a ~ N(1, 1/4)             (1)

and the answer is the factor P(right) where its points are of the classes that it says, else 1 - P(right). Answers
that others can check tell the means of alpha and beta, by EM; of a person without any, c is taken at its word.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, logit, softmax

from sdulearn.answers.graph import AnswerGraph, restrict
from sdulearn.answers.propagate import FactorGraph, sum_by
from sdulearn.answers.rates import HIGHEST, LOWEST, log_factors, on_cycles
from sdulearn.types import Array, Codes

_SUREST = 0.99
_ITER = 30
_ALPHA, _BETA = (grid.ravel() for grid in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(0, 2, 17)))


def split_by_certainty(annotators: Codes, certainty: Array) -> tuple[Codes, Codes, Array]:
    """Answers of one person with one certainty are a part, numbered from 1: that of each answer; whose; how sure."""
    stated = np.round(np.minimum(certainty, _SUREST), 2)
    parts, part = np.unique(np.column_stack([annotators, stated]), axis=0, return_inverse=True)
    return part.ravel() + 1, parts[:, 0].astype(np.int64), parts[:, 1]


def calibrated_rates(graph: AnswerGraph, person: Codes, stated: Array, n_classes: int) -> dict[int, float]:
    """Error rates of the parts, the annotators of the graph, by equation (1)."""
    checked = restrict(graph, on_cycles(graph), graph.labels != 0)
    part = checked.annotators - 1
    z = np.outer(_ALPHA, np.ones(len(stated))) + np.outer(_BETA, logit(stated))
    prior = -(_ALPHA**2) / 2 - 2 * (_BETA - 1) ** 2
    equal = np.full(n_classes, -np.log(n_classes))
    errors = 1 - stated
    for _ in range(_ITER):
        factors = log_factors(checked.same, errors[part], checked.weights)
        right = FactorGraph.from_answers(checked, n_classes, factors).propagate(equal, tol=1e-4, max_iter=60).right
        n_right, n_wrong = (sum_by(part, share, len(stated)) for share in (right, 1 - right))
        of_part = (n_right * log_expit(z) + n_wrong * log_expit(-z)).T
        chance = softmax(sum_by(person, of_part, int(person.max()) + 1) + prior, axis=1)
        errors = expit(-(chance @ _ALPHA)[person] - (chance @ _BETA)[person] * logit(stated))
        errors = np.clip(errors, LOWEST, HIGHEST)
    return dict(enumerate(errors.tolist(), 1))
