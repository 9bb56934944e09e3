"""Train several starts of one network side by side, with stacked parameters and the same batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.joint.data import loose_pairs
from sdulearn.torch.batches import by_unit, pack
from sdulearn.torch.loss import Device, Tensor, TorchLikelihood, log_probabilities, torch, unlabeled_terms
from sdulearn.types import Array, Estimator, Indices

# Rows of one forward pass without a gradient.
ROWS = 8192
# Share of all steps in which the weight of agreement rises from 0: at the start, before the network
# has learned from the answers, agreement makes all predictions equal.
RAMP = 0.4
# Between these shares of the steps the weight of the use of all classes falls to 0, unless their
# shares are given: the classes are found by then, and may have different sizes.
FADE = (0.3, 0.6)
# Share of the steps after which the best start continues alone, with the held-out answers too.
CHOICE = 0.4
# Share of the steps in which the first start is pulled to the linear fit.
GUIDE = 0.1
# Steps before one is recorded on a GPU.
_WARM = 3
Module: TypeAlias = Any
Generator: TypeAlias = Any
State = dict[str, Tensor]


class Starts:
    """Networks of one architecture with different weights, as one function of rows."""

    def __init__(self, modules: list[Module], device: Device) -> None:
        self.base = deepcopy(modules[0]).to(device)
        self.parameters, self.buffers = torch.func.stack_module_state([one.to(device) for one in modules])
        self.size = len(modules)
        # Networks with buffers, such as batch normalisation, which vmap does not support, run one
        # after the other.
        self.stacked = self.size > 1 and not self.buffers

    @property
    def state(self) -> State:
        """All parameters and buffers, the starts along the first axis."""
        return {**self.parameters, **self.buffers}

    def module(self, start: int) -> Module:
        """Return the network of one start."""
        self.base.load_state_dict({name: value[start] for name, value in self.state.items()})
        return self.base

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the logits of each start, (n_starts, n_rows, K)."""

        def forward(one: State) -> Tensor:
            return torch.func.functional_call(self.base, one, (rows,))

        if self.stacked:
            try:
                return torch.vmap(forward, randomness="different")(self.state)
            except (RuntimeError, NotImplementedError):
                self.stacked = False
        return torch.stack([forward({name: value[k] for name, value in self.state.items()}) for k in range(self.size)])

    def evaluate(self, rows: Tensor, points: Tensor) -> Tensor:
        """Return log probabilities in evaluation mode without a gradient; 0 for rows other than ``points``."""
        self.base.eval()
        with torch.no_grad():
            some = torch.cat([log_probabilities(self(rows[part])) for part in points.split(ROWS)], 1)
        self.base.train()
        log_p = some.new_zeros((self.size, len(rows), some.shape[2]))
        log_p[:, points] = some
        return log_p


class KnownPoints:
    """Batches of answers and labels: a random draw of loose pairs and single points, and fixed groups of components."""

    def __init__(self, graph: AnswerGraph, parameters: Estimator, device: Device, generator: Generator) -> None:
        """Cut components with more points than a batch into their answers."""
        self.generator = generator
        self.device = device
        model = parameters.answer_model_
        size = parameters.batch_size
        graph, origin = cut(graph, size, model)

        def part(points: Indices) -> tuple[Tensor, TorchLikelihood]:
            known = graph.subgraph(points)
            likelihood = TorchLikelihood(known, parameters.n_classes, model, device=device, exact=False)
            return torch.as_tensor(origin[points], device=device), likelihood

        simple = loose_pairs(graph) | (graph.component_sizes == 1) | (model.crowd_of(graph) is not None)
        known = (graph.degree > 0) | (graph.labels != 0)
        groups = pack(by_unit(np.flatnonzero(known & ~simple[graph.component]), graph.component), size)
        self.parts = [part(np.flatnonzero(known & simple[graph.component])), *map(part, groups)]
        self.points = torch.cat([points for points, _ in self.parts]).unique()
        self.totals = [float(likelihood.total) for _, likelihood in self.parts]
        self.total = sum(self.totals)
        likelihood = self.parts[0][1]
        counts = [len(likelihood.pairs[-1]), len(likelihood.singles[-1])]
        room = min(1.0, size / max(2 * counts[0] + counts[1], 1))
        # Numbers of loose pairs and of single points: in all, and in a batch.
        self.counts = [(n, int(np.ceil(room * n))) for n in counts]
        # Batches take the groups in turn.
        self.n_turns = max(len(groups), 1)

    def draw(self, turn: int) -> list[tuple[Tensor, TorchLikelihood, float]]:
        """Draw a batch: points, their likelihood, and its weight, of the simple part and of one group."""
        batch = []
        (points, likelihood), *groups = self.parts
        if self.totals[0] > 0:
            chosen, small = likelihood.pick(*(self._draw_some(n, size) for n, size in self.counts))
            batch.append((points[chosen], small, self.totals[0] / self.total))
        if groups:
            batch.append((*groups[turn], sum(self.totals[1:]) / self.total))
        return batch

    def _draw_some(self, n: int, size: int) -> Tensor:
        if size == n:
            return torch.arange(n, device=self.device)
        return torch.randint(n, (size,), generator=self.generator, device=self.device)

    def values(self, log_p: Tensor) -> Array:
        """Return the mean log-likelihood of all, by log probabilities of points (n_starts, n_points, K)."""
        parts = zip(self.totals, self.parts, strict=True)
        values = [total * likelihood.mean(log_p[:, points]) for total, (points, likelihood) in parts]
        return np.asarray((sum(values) / max(self.total, 1e-300)).double().cpu())


def cut(graph: AnswerGraph, most: int, model: AnswerModel) -> tuple[AnswerGraph, Indices]:
    """Cut components with too many points into their answers; return the original number of each point, too."""
    origin = np.arange(graph.n_points)
    large = graph.component_sizes > most
    if not large.any() or model.crowd_of(graph) is not None:
        return graph, origin
    cut = np.flatnonzero(large[graph.component[graph.ends[:, 0]]])
    row_point = graph.row_point.copy()
    row_point[graph.end_rows[cut]] = graph.n_points + np.arange(2 * len(cut)).reshape(-1, 2)
    origin = np.concatenate([origin, graph.ends[cut].ravel()])
    extra = 2 * len(cut)
    return replace(
        graph,
        labels=np.concatenate([graph.labels, np.zeros(extra, dtype=np.int64)]),
        row_point=row_point,
        points=np.arange(len(origin)),
        point_weights=graph.point_weights[origin],
    ), origin


class Training:
    """Minimise the objective of all starts by Adam."""

    def __init__(
        self,
        parameters: Estimator,
        rows: Tensor,
        starts: Starts,
        distort: Callable[[Tensor, Generator], Tensor],
        shares: Array | None,
        generator: Generator,
        first: int = 0,
        guide: Array | None = None,
    ) -> None:
        """Begin at step ``first``; ``guide`` are class probabilities that the first start is pulled to."""
        self.parameters = parameters
        self.rows = rows
        self.starts = starts
        self.distort = distort
        self.generator = generator
        self.shares = None if shares is None else torch.as_tensor(shares, dtype=rows.dtype, device=rows.device)
        self.guide = None if guide is None else torch.as_tensor(guide, dtype=rows.dtype, device=rows.device)
        self.guided = torch.eye(starts.size, device=rows.device)[0]
        on_gpu = rows.device.type == "cuda"
        # On a GPU everything that changes from step to step is computed there, so that a step can
        # be recorded.
        self.step = torch.full((), float(first), device=rows.device)
        self.rate = torch.tensor(parameters.learning_rate, device=rows.device) if on_gpu else parameters.learning_rate
        weights = list(starts.parameters.values())
        self.optimiser = torch.optim.Adam(weights, lr=self.rate, capturable=on_gpu, fused=on_gpu or None)
        # Recorded steps by turn.
        self.recorded: dict[int, Any] = {}
        self.may_record = on_gpu

    def losses(self, known: KnownPoints, turn: int) -> Tensor:
        """Return the objective of each start on one batch, (n_starts,)."""
        p = self.parameters
        batch = known.draw(turn)
        size = (min(p.batch_size, len(self.rows)),)
        chosen = torch.randint(len(self.rows), size, generator=self.generator, device=self.rows.device)
        free = self.rows[chosen]
        parts = [self.rows[points] for points, *_ in batch]
        changed = self.distort(torch.cat([free, *parts]), self.generator)
        log_p = log_probabilities(self.starts(torch.cat([free, changed])))
        plain, distorted, *answered = log_p.split([len(free), len(free), *map(len, parts)], 1)
        disagreement, disuse = unlabeled_terms(plain, distorted, self.shares, p.temperature)
        done = self.step / p.max_iter
        agreement = p.agreement * (done / RAMP).clamp(max=1.0)
        fade = ((FADE[1] - done) / (FADE[1] - FADE[0])).clamp(0.0, 1.0) if p.prior is None else 1.0
        value = agreement * disagreement + p.use * fade * disuse
        for part, (_, likelihood, weight) in zip(answered, batch, strict=True):
            value = value - weight * likelihood.mean(part)
        if self.guide is not None:
            distance = -(self.guide[chosen] * (plain + distorted)).sum(-1).mean(-1)
            value = value + self.guided * (1 - done / GUIDE).clamp(min=0.0) * distance
        return value

    def advance(self, known: KnownPoints, turn: int) -> None:
        """Take a step of Adam; its rate follows a cosine."""
        rate = self.parameters.learning_rate * (1 + torch.cos(np.pi * self.step / self.parameters.max_iter)) / 2
        if self.rows.device.type == "cuda":
            self.rate.copy_(rate)
        else:
            self.optimiser.param_groups[0]["lr"] = float(rate)
        self.optimiser.zero_grad(set_to_none=True)
        self.losses(known, turn).sum().backward()
        self.optimiser.step()
        self.step.add_(1)

    def advance_or_replay(self, known: KnownPoints, step: int) -> None:
        """Take a step; on a GPU record one of each turn, which starts all of its kernels at once."""
        turn = step % known.n_turns
        if self.may_record and step >= _WARM and turn not in self.recorded:
            self._record(known, turn)
        if turn in self.recorded:
            self.recorded[turn].replay()
        else:
            self.advance(known, turn)

    def _record(self, known: KnownPoints, turn: int) -> None:
        """Record a step without running it: on an H200 a default step then takes 1 ms instead of 6."""
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph):
                self.advance(known, turn)
            self.recorded[turn] = graph
        except (RuntimeError, AttributeError):
            # A network or a distortion that cannot be recorded is run step by step.
            torch.cuda.synchronize()
            self.may_record = False

    def run(self, known: KnownPoints, steps: Iterable[int], held: KnownPoints | None = None) -> tuple[Array, Indices]:
        """Train to the last weights, or to the best; return held-out likelihoods at checks, and their steps."""
        p = self.parameters
        every = max(1, p.max_iter // 20)
        state = self.starts.state
        best = {name: value.detach().clone() for name, value in state.items()}
        checks: list[Array] = []
        numbers: list[int] = []
        self.starts.base.train()
        for step in steps:
            self.advance_or_replay(known, step)
            if held is None or not ((step + 1) % every == 0 or step + 1 == p.max_iter):
                continue
            checks.append(held.values(self.starts.evaluate(self.rows, held.points)))
            numbers.append(step + 1)
            if p.n_iter_no_change is None:
                continue
            for k in np.flatnonzero(checks[-1] >= np.max(checks, axis=0)):
                for name, value in state.items():
                    best[name][k] = value[k].detach()
            if len(checks) - 1 - int(np.max(np.argmax(checks, axis=0))) >= p.n_iter_no_change:
                break
        if p.n_iter_no_change is not None:
            for name, value in state.items():
                value.data.copy_(best[name])
        return np.array(checks), np.array(numbers)
