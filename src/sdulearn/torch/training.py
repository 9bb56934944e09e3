"""Several starts of one network, trained side by side: their parameters are stacked, and each batch serves all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from sdulearn.answers.answer_model import AnswerModel, crowd_of
from sdulearn.answers.graph import AnswerGraph
from sdulearn.joint.data import labelled_components, loose_pairs, subgraph
from sdulearn.torch.loss import Tensor, TorchLikelihood, log_probabilities, torch, unlabeled_terms
from sdulearn.types import Array, Indices, Mask

# Rows of one forward pass without a gradient.
_ROWS = 8192
# Share of all steps in which the weight of agreement rises from 0: before the answers have said anything, agreement
# makes all rows alike.
RAMP = 0.4
# What is left of the weight of the use of all classes after 0.6 of the steps, where their shares are not known.
LAST_USE = 0.3
# Steps between two estimates of error rates.
_RATE_STEPS = 50
# Steps before one is recorded on a GPU.
_WARM = 3
RECORD = True
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
        self, graph: AnswerGraph, n_classes: int, model: AnswerModel, size: int, most: int, rows: Tensor, generator: Any
    ) -> None:
        """``size`` points a batch; components of more than ``most`` points are cut into their answers."""
        self.generator = generator
        self.device = rows.device
        self.n_classes = n_classes
        self.model = model
        self.graph = graph
        graph, self.origin = cut(graph, most, model)
        simple = loose_pairs(graph) | ((graph.component_sizes == 1) & labelled_components(graph))
        simple = (simple | (crowd_of(model, graph) is not None))[graph.component]
        known = (graph.degree > 0) | (graph.labels != 0)
        self.simple = self._part(graph, np.flatnonzero(simple & known))
        self.groups = [self._part(graph, points) for points in _grouped(graph, ~simple & known, size)]
        totals = np.array([float(part.total) for _, part in (self.simple, *self.groups)])
        self.total = float(totals.sum())
        # A part counts by what is known in it; one group comes at a time.
        self.shares = (totals[0] / max(self.total, 1e-300), totals[1:].sum() / max(self.total, 1e-300))
        self.counts = [len(one[2]) for one in (self.simple[1].pairs, self.simple[1].singles)]
        room = min(1.0, size / max(2 * self.counts[0] + self.counts[1], 1))
        self.picks = [int(np.ceil(room * n)) for n in self.counts]
        self.n_steps = 0

    def _part(self, graph: AnswerGraph, points: Indices) -> tuple[Tensor, TorchLikelihood]:
        part = TorchLikelihood(subgraph(graph, points), self.n_classes, self.model, device=self.device, exact=False)
        return torch.as_tensor(self.origin[points], device=self.device), part

    def draw(self) -> list[tuple[Tensor, TorchLikelihood, float]]:
        """Points, their likelihood, and its share in the whole."""
        drawn = []
        if self.shares[0] > 0:
            points, part = self.simple
            chosen, small = part.pick(*(self._some(n, k) for n, k in zip(self.counts, self.picks, strict=True)))
            drawn.append((points[chosen], small, self.shares[0]))
        if self.groups:
            drawn.append((*self.groups[self.n_steps % len(self.groups)], self.shares[1]))
        self.n_steps += 1
        return drawn

    def _some(self, n: int, size: int) -> Tensor:
        if size == n:
            return torch.arange(n, device=self.device)
        return torch.randint(n, (size,), generator=self.generator, device=self.device)

    def values(self, log_p: Tensor, rates: Tensor) -> Tensor:
        """Mean log-likelihood of all that is known, by log probabilities of all points (n_starts, n_points, K)."""
        total = log_p[:, :0].sum((-2, -1))
        for k, (points, part) in enumerate((self.simple, *self.groups)):
            if float(part.total):
                total = total + float(part.total) * part.mean(log_p[:, points], None if k else rates)
        return total / max(self.total, 1e-300)

    def wrong_share(self, log_p: Tensor, rates: Tensor) -> Tensor:
        """Share of the loose answers that are wrong, by log probabilities of all points and rates: a step of EM."""
        points, part = self.simple
        right, wrong = part.answer_values(log_p[:, points])
        return torch.sigmoid(torch.logit(rates)[:, None] + wrong - right).mean(-1)


def cut(graph: AnswerGraph, most: int, model: AnswerModel) -> tuple[AnswerGraph, Indices]:
    """Components of too many points as their answers, each by itself; and which point each point of them is."""
    origin = np.arange(graph.n_points)
    large = graph.component_sizes > most
    if not large.any() or crowd_of(model, graph) is not None:
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

    def __init__(
        self, parameters: Any, rows: Tensor, starts: Starts, distort: Callable[..., Tensor], shares: Any, generator: Any
    ) -> None:
        self.parameters = parameters
        self.rows = rows
        self.starts = starts
        self.distort = distort
        self.generator = generator
        self.shares = None if shares is None else torch.as_tensor(shares, dtype=rows.dtype, device=rows.device)
        # Error rates of the starts where they are estimated.
        self.rates: Tensor = None
        on_gpu = rows.device.type == "cuda"
        # On a GPU everything that changes from step to step is computed there, so that a step can be recorded.
        self.step = torch.zeros((), device=rows.device)
        self.rate = torch.tensor(parameters.learning_rate, device=rows.device) if on_gpu else parameters.learning_rate
        weights = list(starts.parameters.values())
        self.optimiser = torch.optim.Adam(weights, lr=self.rate, capturable=on_gpu, fused=on_gpu or None)
        self.graph: Any = None
        self.may_record = on_gpu and RECORD

    def losses(self, known: KnownPoints) -> Tensor:
        """The objective of each start on one batch, (n_starts,)."""
        p = self.parameters
        drawn = known.draw()
        size = (min(p.batch_size, len(self.rows)),)
        free = self.rows[torch.randint(len(self.rows), size, generator=self.generator, device=self.rows.device)]
        parts = [self.rows[points] for points, *_ in drawn]
        changed = self.distort(torch.cat([free, *parts]), self.generator)
        log_p = log_probabilities(self.starts(torch.cat([free, changed])))
        plain, distorted, *answered = log_p.split([len(free), len(free), *map(len, parts)], 1)
        agrees, used = unlabeled_terms(plain, distorted, self.shares, p.temperature)
        done = self.step / p.max_iter
        agreement = p.agreement * ((done / RAMP).clamp(max=1.0) if RAMP else 1.0)
        fallen = ((done - 0.3) / 0.3).clamp(0.0, 1.0) if self.shares is None else 0.0
        value = agreement * agrees + p.use * (1 - (1 - LAST_USE) * fallen) * used
        for part, (_, likelihood, share) in zip(answered, drawn, strict=True):
            loose = len(likelihood.pairs[2]) > 0
            value = value - share * likelihood.mean(part, self.rates if loose else None)
        return value

    def advance(self, known: KnownPoints) -> None:
        """One step of Adam, its rate on a cosine."""
        if self.graph is not None:
            self.graph.replay()
            return
        rate = self.parameters.learning_rate * (1 + torch.cos(np.pi * self.step / self.parameters.max_iter)) / 2
        if self.rows.device.type == "cuda":
            self.rate.copy_(rate)
        else:
            self.optimiser.param_groups[0]["lr"] = float(rate)
        self.optimiser.zero_grad(set_to_none=True)
        self.losses(known).sum().backward()
        self.optimiser.step()
        self.step.add_(1)

    def record(self, known: KnownPoints) -> None:
        """Record a step, to be run again without the cost of starting its many kernels one by one."""
        self.may_record = False
        if len(known.groups) > 1:
            return
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph):
                self.advance(known)
            self.graph = graph
        except (RuntimeError, AttributeError):
            # A network or a distortion that cannot be recorded is run step by step.
            torch.cuda.synchronize()

    def warm_up(self, known: KnownPoints, n_steps: int) -> None:
        """First steps on a stream of their own, as recording asks for."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(n_steps):
                self.advance(known)
        torch.cuda.current_stream().wait_stream(side)

    def run(self, known: KnownPoints, held: KnownPoints, steps: Iterable[int]) -> tuple[State, Array, Indices]:
        """Descend. The weights of each start, the likelihood of held-out answers at all checks, and their steps."""
        p = self.parameters
        every = max(1, p.max_iter // 20)
        best = self.starts.state()
        checks: list[Array] = []
        numbers: list[int] = []
        self.starts.base.train()
        for step in steps:
            if step == _WARM and self.may_record:
                self.record(known)
            if step < _WARM and self.may_record:
                self.warm_up(known, 1)
            else:
                self.advance(known)
            if self.rates is not None and (step + 1) % _RATE_STEPS == 0:
                found = held.wrong_share(self.log_p(held), self.rates)
                self.rates[1::2] = ((self.rates + found) / 2).clamp(1e-3, 0.45)[1::2]
            if (step + 1) % every == 0 or step + 1 == p.max_iter:
                checks.append(held.values(self.log_p(held), self.rates).double().cpu().numpy())
                numbers.append(step + 1)
                better = p.n_iter_no_change is None or checks[-1] >= np.max(checks, axis=0)
                better = torch.as_tensor(better, device=self.rows.device)
                best = {
                    name: torch.where(better.reshape(-1, *[1] * (value.ndim - 1)), value, best[name])
                    for name, value in self.starts.state().items()
                }
                if len(checks) - 1 - int(np.max(np.argmax(checks, axis=0))) >= (p.n_iter_no_change or len(checks)):
                    break
        return best, np.array(checks), np.array(numbers)

    def log_p(self, held: KnownPoints) -> Tensor:
        """Log probabilities of all points, computed where something is known of them."""
        points = torch.cat([points for points, _ in (held.simple, *held.groups)]).unique()
        some = self.starts.evaluate(self.rows[points])
        found = some.new_zeros((some.shape[0], len(self.rows), some.shape[2]))
        found[:, points] = some
        return found
