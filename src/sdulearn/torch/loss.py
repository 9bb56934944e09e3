"""The likelihood of answers, and a loss for unlabeled rows, as functions of the logits of a network.

With p_i = softmax of the logits of point i, an answer about i and j has

    P(same) = (1 - e) s + e (1 - s),  s = sum_k p_i(k) p_j(k),  e = its error rate                      (1)

computed in logarithms, 1 - s too: ``log sum_k p_i(k) (1 - p_j(k))``, where 1 - p_j of the likeliest
class is the sum of the others. Labels, and the answers of a crowd about a point, are evidence of
one point:

    P(evidence) = sum_k p_i(k) exp(evidence_i(k))                                                       (2)

Loose pairs, single points and trees of answers are computed on the device of the logits, trees by
one sweep of messages from the leaves to the roots. Components with cycles go through
:mod:`sdulearn.answers.propagate` on the CPU: the gradient of log P in log p_i(k) is the posterior
of class k (Fisher's identity), so no message is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree

from sdulearn.answers.answer_model import AnswerModel, answer_model_of
from sdulearn.answers.graph import AnswerGraph, weights_by_component
from sdulearn.answers.propagate import FactorGraph, Network, log_factors
from sdulearn.errors import InputError, OptionalModule
from sdulearn.joint.data import loose_pairs
from sdulearn.types import Array, Indices, Mask

# Log probability of an impossible class within a message.
_LOWEST = -1e4
torch = OptionalModule("torch", "torch")
Tensor: TypeAlias = Any
"""A torch.Tensor: torch is imported only where it is used."""
Device: TypeAlias = Any
"""A torch.device, or its name."""


def pair_nll(
    logits: Tensor,
    y: ArrayLike,
    *,
    error_rate: float | Mapping[int, float] | AnswerModel = 0.0,
    answer_table: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Tensor:
    """Mean negative log-likelihood of the answers and labels of a batch: a loss for any network.

    Loose pairs, labels and components without cycles are computed on the device of the logits,
    those with cycles on the CPU. Logits of half precision are converted to float32.

    Parameters
    ----------
    logits : tensor of shape (n_rows, K) or (n_rows,)
        One row for each row of ``y``. One logit is the log odds of class +1 against class -1.
    y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5)
        What is known of each row: answer, point, annotator, label. The batch must hold both rows of
        an answer and should hold whole components (:class:`PairBatchSampler`). A tensor should be
        on the CPU.
    error_rate : float, mapping or AnswerModel, default=0.0
        Probability that an answer is wrong: one for all, or one for each annotator.
    answer_table : array-like of shape (K, K), optional
        Probability of the answer "same" by the classes of the two points, before the error rate.
        Loose pairs only.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight. Only their ratios matter.

    Returns
    -------
    tensor of shape ()
        The mean over answers and labels; 0 where there are none.

    See Also
    --------
    unlabeled_loss : The term for rows in no answer.
    sdulearn.metrics.pair_log_likelihood : The same number, with the other sign, of a fitted estimator.

    Examples
    --------
    >>> import torch
    >>> from sdulearn.torch import pair_nll
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 0.0]])
    >>> round(float(pair_nll(logits, [1, 1, -2, -2])), 3)
    0.478
    """
    graph = AnswerGraph.from_y(y.detach().cpu().numpy() if hasattr(y, "detach") else y, sample_weight)
    if logits.ndim not in (1, 2) or len(logits) != graph.n_given:
        raise InputError(
            f"`logits` must have one row for each of the {graph.n_given} rows of `y`, got {tuple(logits.shape)}."
        )
    logits = logits.reshape(len(logits), -1)
    logits = logits if graph.n_rows == graph.n_given else logits[graph.rows]
    n_classes = max(logits.shape[1], 2)
    model = answer_model_of(error_rate, graph, n_classes)
    if answer_table is None and model.crowd_of(graph) is None:
        answer_table = model.table
    known = TorchLikelihood(graph, n_classes, model, answer_table, device=logits.device)
    place, count = known.tensors(graph.row_point, np.bincount(graph.row_point, minlength=graph.n_points)[:, None])
    wide = torch.promote_types(logits.dtype, torch.float32)
    total = torch.zeros((graph.n_points, logits.shape[1]), device=logits.device, dtype=wide)
    # A point has the mean of its rows.
    mean = total.index_add(0, place, logits.to(wide)) / count
    return -known.mean(log_probabilities(mean))


def unlabeled_loss(
    logits: Tensor,
    distorted_logits: Tensor,
    *,
    shares: ArrayLike | None = None,
    temperature: float = 0.5,
    agreement: float = 1.0,
    use: float = 1.0,
) -> Tensor:
    """Loss of rows without answers: a distortion should keep the class of a row, and all classes should be used.

    ``agreement KL(sharpened prediction of a row || prediction of its distortion) + use KL(mean
    prediction || shares)``, the first a mean over rows and without a gradient in the sharpened
    prediction.

    Parameters
    ----------
    logits, distorted_logits : tensor of shape (n_rows, K) or (n_rows,)
        Logits of rows, and of the same rows after a distortion that keeps their classes.
    shares : array-like of shape (K,), optional
        Shares of the classes; equal ones by default.
    temperature : float, default=0.5
        Predictions are sharpened to powers of 1 / temperature.
    agreement, use : float, default=1.0
        Weights of the two terms.

    Returns
    -------
    tensor of shape ()
        The sum of both.

    See Also
    --------
    pair_nll : The likelihood of answers.

    Examples
    --------
    >>> import torch
    >>> from sdulearn.torch import unlabeled_loss
    >>> logits = torch.tensor([[4.0, 0.0], [0.0, 4.0]])
    >>> round(float(unlabeled_loss(logits, logits)), 3), round(float(unlabeled_loss(logits, -logits)), 3)
    (0.016, 4.014)
    """
    log_p = log_probabilities(logits)
    disagreement, disuse = unlabeled_terms(log_p, log_probabilities(distorted_logits), shares, temperature)
    return agreement * disagreement + use * disuse


def unlabeled_terms(
    log_p: Tensor, log_distorted: Tensor, shares: ArrayLike | None, temperature: float
) -> tuple[Tensor, Tensor]:
    """Both divergences of :func:`unlabeled_loss`, from log probabilities (..., n_rows, K)."""
    target = torch.log_softmax(log_p.detach() / temperature, -1)
    disagreement = (target.exp() * (target - log_distorted)).sum(-1).mean(-1)
    mean = torch.logsumexp(log_p, -2) - np.log(log_p.shape[-2])
    if shares is None:
        log_shares: Any = -np.log(log_p.shape[-1])
    else:
        log_shares = torch.as_tensor(shares, dtype=log_p.dtype, device=log_p.device).log()
    return disagreement, (mean.exp() * (mean - log_shares)).sum(-1)


def log_probabilities(logits: Tensor) -> Tensor:
    """Log probabilities of classes (..., n_rows, K) in at least float32; one logit stands for two classes."""
    logits = (logits if logits.ndim > 1 else logits[:, None]).to(torch.promote_types(logits.dtype, torch.float32))
    if logits.shape[-1] == 1:
        return torch.nn.functional.logsigmoid(torch.cat([-logits, logits], -1))
    return torch.log_softmax(logits, -1)


class TorchLikelihood:
    """The likelihood of a graph in three parts: loose pairs, single points, all other components."""

    def __init__(
        self,
        graph: AnswerGraph,
        n_classes: int,
        model: AnswerModel,
        table: ArrayLike | None = None,
        device: Device = None,
        *,
        exact: bool = True,
    ) -> None:
        """Put indices and factors on the device; ``exact`` as in :class:`Components`."""
        self.device = device
        crowd = model.crowd_of(graph)
        graph, weight = weights_by_component(graph)
        of_answer = graph.component[graph.ends[:, 0]]
        n_known = np.bincount(of_answer, minlength=graph.n_components)
        n_known += np.bincount(graph.component[graph.labels != 0], minlength=graph.n_components)
        # The evidence of a crowd about each point replaces the answers.
        weight = weight if crowd is None else np.ones_like(weight)
        loose = loose_pairs(graph) & (crowd is None)
        single = (graph.component_sizes == 1) | (crowd is not None)
        others = (n_known > 0) & ~loose & ~single
        points = np.flatnonzero(single[graph.component] & ((graph.degree > 0) | (graph.labels != 0)))
        evidence = np.zeros((graph.n_points, n_classes)) if crowd is None else crowd.evidence(graph)
        evidence = FactorGraph.of_evidence(graph.subgraph(points), evidence[points]).potentials
        by_point = weight[graph.component[points]]
        # Each part ends with weights and, by weight, numbers of answers and labels.
        self.singles = self.tensors(points, evidence, by_point, by_point)
        amount = weight * n_known
        ends, factors = _pair_factors(graph, np.flatnonzero(loose[of_answer]), model, n_classes, table)
        self.pairs = self.tensors(ends.T, factors, weight[loose], amount[loose])
        points = np.flatnonzero(others[graph.component])
        self.others = self.tensors(points, weight[others], amount[others])
        self.components: Components | None = None
        if len(points):
            if table is not None:
                raise InputError(
                    "`answer_table` is for loose pairs, and here answers share points. Give the AnswerModel that was "
                    "estimated from the answers as `error_rate`, or leave the column of points out of `y`."
                )
            self.components = Components(model.factor_graph(graph.subgraph(points), n_classes), self.tensors, exact)

    @property
    def total(self) -> Tensor:
        """Number of answers and labels, weighted."""
        return sum(part[-1].sum() for part in (self.pairs, self.singles, self.others))

    def pick(self, pairs: Tensor, singles: Tensor) -> tuple[Tensor, TorchLikelihood]:
        """Select loose pairs and single points by number: their points, and their likelihood."""
        small = copy(self)
        ends, *by_pair = self.pairs
        points, *by_single = self.singles
        place = torch.arange(2 * len(pairs) + len(singles), device=self.device)
        small.pairs = [place[: 2 * len(pairs)].reshape(2, -1), *(one[pairs] for one in by_pair)]
        small.singles = [place[2 * len(pairs) :], *(one[singles] for one in by_single)]
        small.components = None
        small.others = [one[:0] for one in self.others]
        return torch.cat([*ends[:, pairs], points[singles]]), small

    def tensors(self, *arrays: ArrayLike) -> list[Tensor]:
        """Copy arrays to the device; from pinned memory, so that a GPU is not waited for."""
        tensors = [torch.as_tensor(np.ascontiguousarray(array)) for array in arrays]
        if self.device is not None and torch.device(self.device).type == "cuda":
            return [one.pin_memory().to(self.device, non_blocking=True) for one in tensors]
        return [one.to(self.device) for one in tensors]

    def mean(self, log_p: Tensor) -> Tensor:
        """Mean log-likelihood of an answer or label, by log probabilities (..., n_points, K)."""
        # A zero with a gradient.
        value = log_p[..., :0, :].sum((-2, -1))
        ends, factors, weight, _ = self.pairs
        if len(weight):
            values = pair_values(log_p[..., ends[0], :], log_p[..., ends[1], :], factors.to(log_p.dtype))
            value = value + values @ weight.to(log_p.dtype)
        points, evidence, weight, _ = self.singles
        if len(weight):
            # Equation (2).
            values = torch.logsumexp(log_p[..., points, :] + evidence.to(log_p.dtype), -1)
            value = value + values @ weight.to(log_p.dtype)
        if self.components is not None:
            points, weight, _ = self.others
            value = value + self.components.values(log_p[..., points, :], weight.to(log_p.dtype))
        return value / self.total.clamp(min=1e-30).to(value.dtype)


def _pair_factors(
    graph: AnswerGraph, answers: Indices, model: AnswerModel, n_classes: int, table: ArrayLike | None
) -> tuple[Indices, Array]:
    """Ends of loose pairs, and log probabilities of their answers if classes agree and if they differ."""
    number, pair = np.unique(graph.component[graph.ends[answers, 0]], return_inverse=True)
    ends = np.zeros((len(number), 2), dtype=np.intp)
    ends[pair] = np.sort(graph.ends[answers], axis=1)
    errors = model.errors(graph.annotators)
    factors = log_factors(graph.same, errors, graph.weights).T[answers]
    if table is not None:
        # By both classes, (n_pairs, K, K).
        table = np.asarray(table, dtype=np.float64)
        if table.shape != (n_classes, n_classes) or not ((table >= 0) & (table <= 1)).all():
            raise InputError(f"`answer_table` must hold {n_classes} x {n_classes} probabilities of 'same'.")
        error = errors[answers, None, None]
        same = (1 - error) * table + error * (1 - table)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.where(graph.same[answers, None, None] > 0, same, 1 - same))
        factors = graph.weights[answers, None, None] * log_p
    total = np.zeros((len(ends), *factors.shape[1:]))
    np.add.at(total, pair, factors)
    if np.isneginf(total.max(axis=tuple(range(1, total.ndim)))).any():
        # This raises the error about contradictions.
        model.factor_graph(graph, n_classes)
    return ends, total


def pair_values(first: Tensor, second: Tensor, factors: Tensor) -> Tensor:
    """Equation (1) in logarithms, from log probabilities (..., n_pairs, K) at both ends."""
    if factors.ndim == 3:
        return torch.logsumexp(first[..., :, None] + second[..., None, :] + factors, (-2, -1))
    agree, differ = factors.T
    same = torch.logsumexp(first + second, -1)
    different = torch.logsumexp(first + log_of_others(second), -1)
    return torch.logaddexp(agree + same, differ + different)


def log_of_others(log_p: Tensor) -> Tensor:
    """Logarithms of 1 - p; for the likeliest class by the sum of the others, which does not cancel."""
    likeliest = torch.zeros_like(log_p, dtype=torch.bool).scatter(-1, log_p.argmax(-1, keepdim=True), True)
    others = torch.logsumexp(log_p.masked_fill(likeliest, -torch.inf), -1, keepdim=True)
    return torch.where(likeliest, others, torch.log1p(-log_p.exp().masked_fill(likeliest, 0.0)))


class Components:
    """Components of answers that share points; unless ``exact``, cycles are cut to a tree and single pairs."""

    def __init__(self, factor_graph: FactorGraph, tensors: Callable[..., list[Tensor]], exact: bool) -> None:
        self.factor_graph = factor_graph
        self.propagates = exact and not factor_graph.on_tree.all()
        if self.propagates:
            return
        f = factor_graph
        kept = f.on_tree | _spanning(f.ends, len(f.potentials))
        trees = Network(f.ends[kept], f.agree[kept], f.differ[kept], len(f.potentials))
        roots = np.setdiff1d(np.arange(len(f.potentials)), trees.child)
        self.group, self.swapped, self.potentials = tensors(f.group, f.swapped[:, None], f.potentials)
        self.roots, self.root_component = tensors(roots, f.component[roots])
        self.levels = [
            tensors(trees.parent[k], trees.child[k], trees.agree[e, None], trees.differ[e, None])
            for k, e in ((level, trees.tree_edges[level]) for level, *_ in reversed(trees.levels))
        ]
        factors = np.column_stack([f.agree, f.differ])[~kept]
        self.others = tensors(f.ends[~kept].T, factors, f.component[f.ends[~kept, 0]])

    def values(self, log_p: Tensor, weight: Tensor) -> Tensor:
        """Weighted log-likelihood of the components, from log probabilities (..., n_points, K)."""
        if self.propagates:
            return self._propagated(log_p, weight)
        swapped = torch.where(self.swapped, log_p.flip(-1), log_p)
        start = self.potentials.to(log_p.dtype).expand(*log_p.shape[:-2], -1, -1)
        log_t = start.index_add(-2, self.group, swapped)
        ends, factors, component = self.others
        value = log_p.new_zeros((*log_p.shape[:-2], len(weight)))
        if len(component):
            one, other = torch.log_softmax(log_t[..., ends, :].clamp(min=_LOWEST), -1).unbind(-3)
            value = value.index_add(-1, component, pair_values(one, other, factors.to(log_p.dtype)))
        for up, down, agree, differ in self.levels:
            child = log_t[..., down, :]
            size = torch.logsumexp(child, -1, keepdim=True)
            cavity = (child - size).clamp(min=_LOWEST)
            message = torch.logaddexp(agree.to(cavity) + cavity, differ.to(cavity) + log_of_others(cavity)) + size
            log_t = log_t.index_add(-2, up, message)
        at_roots = torch.logsumexp(log_t[..., self.roots, :], -1)
        return value.index_add(-1, self.root_component, at_roots) @ weight

    def _propagated(self, log_p: Tensor, weight: Tensor) -> Tensor:
        """The same by belief propagation on the CPU, with the gradient by Fisher's identity."""
        flat = log_p.reshape(-1, *log_p.shape[-2:])
        propagated = [self.factor_graph.propagate(one, tol=1e-6) for one in flat.detach().double().cpu().numpy()]
        values = torch.as_tensor(np.array([one.component_values for one in propagated])).to(flat)
        posteriors = torch.as_tensor(np.array([one.posteriors for one in propagated])).to(flat)
        by_point = weight[torch.as_tensor(self.factor_graph.graph.component, device=weight.device)]
        # The second term is 0 and has the gradient.
        change = (posteriors * (flat - flat.detach())).sum(-1) @ by_point
        return (values @ weight + change).reshape(log_p.shape[:-2])


def _spanning(ends: Indices, n_groups: int) -> Mask:
    """Which edges make a spanning forest."""
    matrix = csr_matrix((np.arange(1.0, len(ends) + 1), ends.T), shape=(n_groups, n_groups))
    chosen = np.zeros(len(ends), dtype=bool)
    chosen[minimum_spanning_tree(matrix).data.astype(np.intp) - 1] = True
    return chosen
