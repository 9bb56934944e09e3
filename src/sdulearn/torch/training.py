"""Several starts of one network, trained side by side: their parameters are stacked, and each batch serves all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.joint.data import labelled_components, loose_pairs, subgraph
from sdulearn.torch.loss import Tensor, TorchLikelihood, log_probabilities, torch, unlabeled_terms
from sdulearn.types import Array, Indices, Mask

# Rows of one forward pass without a gradient.
_ROWS = 8192
Module = Any
State = dict[str, Tensor]


class Starts:
    """Networks of one form with different weights, as one function of rows."""

    def __init__(self, modules: list[Module], device: Any) -> None:
        self.base = deepcopy(modules[0]).to(device)
        self.parameters = {
            name: torch.stack([dict(one.named_parameters())[name].detach().to(device) for one in modules])
            for name, _ in modules[0].named_parameters()
        }
        for parameter in self.parameters.values():
            parameter.requires_grad_()
        self.buffers = {
            name: torch.stack([dict(one.named_buffers())[name].to(device) for one in modules])
            for name, _ in modules[0].named_buffers()
        }
        self.size = len(modules)
        # Layers that vmap does not know, such as batch normalisation, run one start after the other.
        self.stacked = self.size > 1 and not self.buffers

    def __call__(self, rows: Tensor, state: State | None = None) -> Tensor:
        """Logits of each start, (n_starts, n_rows, K)."""
        values = {**self.parameters, **self.buffers} if state is None else state

        def forward(one: State) -> Tensor:
            return torch.func.functional_call(self.base, one, (rows,))

        if self.stacked:
            try:
                return torch.vmap(forward, randomness="different")(values)
            except (RuntimeError, NotImplementedError):
                self.stacked = False
        return torch.stack([forward({name: value[k] for name, value in values.items()}) for k in range(self.size)])

    def evaluate(self, rows: Tensor) -> Tensor:
        """Log probabilities without a gradient, as they are after training."""
        self.base.eval()
        with torch.no_grad():
            found = torch.cat([log_probabilities(self(part)) for part in rows.split(_ROWS)], 1)
        self.base.train()
        return found

    def state(self) -> State:
        """A copy of all weights."""
        return {name: value.detach().clone() for name, value in {**self.parameters, **self.buffers}.items()}


class KnownPoints:
    """What is known of the points, in batches: loose pairs and labels by number, other components in fixed groups."""

    def __init__(
        self, graph: AnswerGraph, n_classes: int, model: AnswerModel, batch_size: int, device: Any, generator: Any
    ) -> None:
        self.generator = generator
        self.device = device
        graph, self.origin = _cut(graph, batch_size, model)
        simple = loose_pairs(graph) | ((graph.component_sizes == 1) & labelled_components(graph))
        if model.names_classes(graph):
            simple[:] = True
        simple = simple[graph.component]
        known = (graph.degree > 0) | (graph.labels != 0)
        self.simple = self._part(graph, np.flatnonzero(simple & known), n_classes, model)
        self.groups = [
            self._part(graph, points, n_classes, model) for points in _grouped(graph, ~simple & known, batch_size)
        ]
        totals = np.array([float(part.total) for _, part in (self.simple, *self.groups)])
        self.total = float(totals.sum())
        # A part counts by what is known in it; one group comes at a time.
        self.shares = (totals[0] / max(self.total, 1e-300), totals[1:].sum() / max(self.total, 1e-300))
        n_pairs, n_singles = len(self.simple[1].pairs[2]), len(self.simple[1].singles[2])
        room = batch_size / max(2 * n_pairs + n_singles, 1)
        self.picks = [int(np.ceil(min(room, 1.0) * n)) for n in (n_pairs, n_singles)]
        self.order: list[Tensor] = []
        self.n_steps = 0

    def _part(self, graph: AnswerGraph, points: Indices, n_classes: int, model: AnswerModel) -> Any:
        part = TorchLikelihood(subgraph(graph, points), n_classes, model, device=self.device)
        return torch.as_tensor(self.origin[points], device=self.device), part

    def draw(self) -> list[tuple[Tensor, TorchLikelihood, float]]:
        """Points, their likelihood, and its share in the whole."""
        drawn = []
        if self.shares[0] > 0:
            points, part = self.simple
            chosen, small = part.pick(*(self._next(k, n) for k, n in enumerate(self.picks)))
            drawn.append((points[chosen], small, self.shares[0]))
        if self.groups:
            drawn.append((*self.groups[self.n_steps % len(self.groups)], self.shares[1]))
        self.n_steps += 1
        return drawn

    def _next(self, kind: int, size: int) -> Tensor:
        """The next numbers of loose pairs, or of single points, in passes of random order."""
        n = len((self.simple[1].pairs, self.simple[1].singles)[kind][2])
        while len(self.order) <= kind:
            self.order.append(torch.zeros(0, dtype=torch.long, device=self.device))
        if len(self.order[kind]) < size:
            fresh = torch.randperm(n, generator=self.generator, device=self.device)
            self.order[kind] = torch.cat([self.order[kind], fresh])
        chosen, self.order[kind] = self.order[kind][:size], self.order[kind][size:]
        return chosen


def _cut(graph: AnswerGraph, most: int, model: AnswerModel) -> tuple[AnswerGraph, Indices]:
    """Components of too many points as their answers, each by itself; and which point each point of them is."""
    origin = np.arange(graph.n_points)
    large = graph.component_sizes > most
    if not large.any() or model.names_classes(graph):
        return graph, origin
    cut = np.flatnonzero(large[graph.component[graph.ends[:, 0]]])
    ends = graph.ends.copy()
    ends[cut] = graph.n_points + np.arange(2 * len(cut)).reshape(-1, 2)
    origin = np.concatenate([origin, graph.ends[cut].ravel()])
    extra = 2 * len(cut)
    return replace(
        graph,
        n_points=len(origin),
        ends=ends,
        labels=np.concatenate([graph.labels, np.zeros(extra, dtype=np.int64)]),
        row_point=np.arange(len(origin)),
        points=np.arange(len(origin)),
        point_weights=graph.point_weights[origin],
    ), origin


def _grouped(graph: AnswerGraph, chosen: Mask, most: int) -> list[Indices]:
    """Points of whole components, as many as fit together."""
    points = np.flatnonzero(chosen)
    if not len(points):
        return []
    points = points[np.argsort(graph.component[points], kind="stable")]
    numbers, first, sizes = np.unique(graph.component[points], return_index=True, return_counts=True)
    group = np.zeros(len(numbers), dtype=np.intp)
    filled = 0
    for k, size in enumerate(sizes):
        fits = filled + size <= most
        group[k] = group[k - 1] + (not fits) if k else 0
        filled = filled + size if fits else size
    starts = first[np.flatnonzero(np.diff(group, prepend=-1))]
    return np.split(points, starts[1:])


class Training:
    """The objective of all starts and its descent."""

    def __init__(self, parameters: Any, rows: Tensor, known: KnownPoints, starts: Starts, generator: Any) -> None:
        self.parameters = parameters
        self.rows = rows
        self.known = known
        self.starts = starts
        self.generator = generator

    def losses(self, distort: Callable[[Tensor, Any], Tensor], shares: Any) -> Tensor:
        """The objective of each start on one batch, (n_starts,)."""
        p = self.parameters
        drawn = self.known.draw()
        size = (min(p.batch_size, len(self.rows)),)
        free = self.rows[torch.randint(len(self.rows), size, generator=self.generator, device=self.rows.device)]
        parts = [self.rows[points] for points, _, _ in drawn]
        log_p = log_probabilities(self.starts(torch.cat([free, distort(free, self.generator), *parts])))
        plain, distorted, *known = log_p.split([len(free), len(free), *map(len, parts)], 1)
        agrees, used = unlabeled_terms(plain, distorted, shares, p.temperature)
        value = p.agreement * agrees + p.use * used
        for part, (_, likelihood, share) in zip(known, drawn, strict=True):
            value = value - share * likelihood.mean(part)
        return value

    def run(
        self,
        distort: Callable[[Tensor, Any], Tensor],
        shares: Any,
        held_out: Callable[[Starts], Tensor],
        steps: Iterable[int],
    ) -> tuple[State, Array, Indices]:
        """Descend. The weights of each start where held-out answers were likeliest, all checks, and their steps."""
        p = self.parameters
        optimiser = torch.optim.Adam(list(self.starts.parameters.values()), lr=p.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, p.max_iter)
        every = max(1, p.max_iter // 20)
        best = self.starts.state()
        checks: list[Array] = []
        numbers: list[int] = []
        self.starts.base.train()
        for step in steps:
            optimiser.zero_grad()
            self.losses(distort, shares).sum().backward()
            optimiser.step()
            schedule.step()
            if (step + 1) % every == 0 or step + 1 == p.max_iter:
                now = held_out(self.starts).cpu().numpy()
                checks.append(now)
                numbers.append(step + 1)
                better = torch.as_tensor(now >= np.max(checks, axis=0), device=self.rows.device)
                best = {
                    name: torch.where(better.reshape(-1, *[1] * (value.ndim - 1)), value, best[name])
                    for name, value in self.starts.state().items()
                }
                if len(checks) - 1 - int(np.max(np.argmax(checks, axis=0))) >= p.n_iter_no_change:
                    break
        return best, np.array(checks), np.array(numbers)
