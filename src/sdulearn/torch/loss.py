"""The likelihood of answers, and a loss for unlabeled rows, as functions of the logits of a network.

The likelihood is that of :mod:`sdulearn.answers.likelihood`, computed on the CPU. Its gradient in the scores of a point
is posterior minus node probability (Fisher's identity), so no message is differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.answer_model import AnswerModel, answer_model_of
from sdulearn.answers.graph import AnswerGraph, weights_by_component
from sdulearn.answers.likelihood import Likelihood
from sdulearn.errors import InputError, OptionalModule
from sdulearn.types import Array

torch = OptionalModule("torch", "torch")
Tensor: TypeAlias = Any
"""A torch.Tensor: torch is imported only where it is used."""


def pair_nll(
    logits: Tensor,
    y: ArrayLike,
    *,
    error_rate: float | Mapping[int, float] | AnswerModel = 0.0,
    sample_weight: ArrayLike | None = None,
) -> Tensor:
    """Mean negative log-likelihood of the answers and labels of a batch: a loss for any network.

    Parameters
    ----------
    logits : tensor of shape (n_rows, K) or (n_rows,)
        One row for each row of ``y``, on any device. One logit is the log odds of class +1 against class -1. A point
        has the mean of its rows.
    y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5)
        What is known about each row: answer, point, annotator, label, question. The batch must contain both rows of an
        answer and should contain whole components (:class:`PairBatchSampler`). A tensor should be on the CPU.
    error_rate : float, mapping or AnswerModel, default=0.0
        Probability that an answer is wrong: one for all, or one for each annotator.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight. Only their ratios matter.

    Returns
    -------
    tensor of shape ()
        The mean over answers and labels, at least float32; 0 if there are none.
    """
    graph = AnswerGraph.from_y(y.detach().cpu().numpy() if hasattr(y, "detach") else y, sample_weight)
    if logits.ndim not in (1, 2) or len(logits) != graph.n_given:
        raise InputError(
            f"`logits` must have one row for each of the {graph.n_given} rows of `y`, got {tuple(logits.shape)}."
        )
    wide = logits.reshape(len(logits), -1).to(torch.promote_types(logits.dtype, torch.float32))
    place = torch.as_tensor(graph.row_point, device=wide.device)
    count = torch.as_tensor(np.bincount(graph.row_point, minlength=graph.n_points)[:, None]).to(wide)
    total = wide.new_zeros((graph.n_points, wide.shape[1]))
    scores = total.index_add(0, place, wide[torch.as_tensor(graph.rows, device=wide.device)]) / count
    n_classes = max(scores.shape[1], 2)
    model = answer_model_of(error_rate, graph, n_classes)
    if scores.shape[1] == 2:
        scores = scores[:, 1:] - scores[:, :1]
    value, slope = _mean_and_slope(scores.detach().double().cpu().numpy(), graph, model, n_classes)
    # The second term is 0 and has the gradient.
    return -value - (torch.as_tensor(slope).to(scores) * (scores - scores.detach())).sum()


def _mean_and_slope(scores: Array, graph: AnswerGraph, model: AnswerModel, n_classes: int) -> tuple[float, Array]:
    """Mean log-likelihood of an answer or label, and its gradient in the scores of the points."""
    crowd = model.crowd_of(graph) if graph.n_answers else None
    relative, weight = weights_by_component(graph)
    evidence = None if crowd is None else crowd.evidence(graph)
    likelihood = Likelihood(relative, n_classes, model.errors(graph.annotators), evidence, weight)
    log_p, slope = likelihood.terms(scores[:, :, None], exact=True)
    n_known = np.bincount(graph.component[graph.ends[:, 0]], minlength=graph.n_components)
    n_known += np.bincount(graph.component[graph.labels != 0], minlength=graph.n_components)
    share = weight / max(float(weight @ n_known), 1e-30)
    return float(share @ log_p[:, 0]), share[graph.component][:, None] * slope[:, :, 0]


def unlabeled_loss(
    logits: Tensor,
    augmented_logits: Tensor,
    *,
    shares: ArrayLike | None = None,
    temperature: float = 0.5,
    consistency_weight: float = 1.0,
    balance_weight: float = 1.0,
) -> Tensor:
    """Loss of rows without answers: augmentation should keep the class of a row, and all classes should be used.

    ``consistency_weight KL(sharpened prediction of a row || prediction of its augmentation) + balance_weight KL(mean
    prediction || shares)``, the first a mean over rows and without a gradient in the sharpened prediction.

    Parameters
    ----------
    logits, augmented_logits : tensor of shape (n_rows, K) or (n_rows,)
        Logits of rows, and of the same rows after an augmentation.
    shares : array-like of shape (K,), optional
        Shares of the classes; equal ones by default.
    temperature : float, default=0.5
        Predictions are sharpened to powers of 1 / temperature.
    consistency_weight, balance_weight : float, default=1.0
        Weights of the two terms.

    Returns
    -------
    tensor of shape ()
        The sum of both.
    """
    log_p = log_probabilities(logits)
    target = torch.log_softmax(log_p.detach() / temperature, -1)
    inconsistency = (target.exp() * (target - log_probabilities(augmented_logits))).sum(-1).mean()
    mean = torch.logsumexp(log_p, 0) - np.log(len(log_p))
    shares = np.full(log_p.shape[1], 1 / log_p.shape[1]) if shares is None else shares
    imbalance = (mean.exp() * (mean - torch.as_tensor(shares).to(log_p).log())).sum()
    return consistency_weight * inconsistency + balance_weight * imbalance


def log_probabilities(logits: Tensor) -> Tensor:
    """Log probabilities of classes (n_rows, K) in at least float32; one logit stands for two classes."""
    logits = (logits if logits.ndim > 1 else logits[:, None]).to(torch.promote_types(logits.dtype, torch.float32))
    if logits.shape[1] == 1:
        return torch.nn.functional.logsigmoid(torch.cat([-logits, logits], -1))
    return torch.log_softmax(logits, -1)
