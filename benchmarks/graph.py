"""What a graph of answers and its likelihood cost, as multiples of sorting as many numbers in the same run.

python benchmarks/graph.py [N_ANSWERS]

Processor seconds of one run on one core stand beside them. Cycles with errors get five rounds of messages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.special import log_softmax

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import FactorGraph


def seconds(task: Callable[[], object], repeats: int = 2) -> float:
    """Least processor time of a task."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        found.append(time.process_time() - start)
    return min(found)


def shapes(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Ends of n answers: loose pairs, a star, as many points as answers, and trees."""
    numbers = np.arange(n)
    shared = rng.integers(0, n, size=(n, 2))
    shared[:, 1] += shared[:, 0] == shared[:, 1]
    return {
        "loose pairs": np.column_stack([2 * numbers, 2 * numbers + 1]),
        "star": np.column_stack([np.zeros(n, dtype=int), numbers + 1]),
        "random tree": np.column_stack([(rng.random(n) * (numbers + 1)).astype(int), numbers + 1]),
        "as many points": shared,
    }


def structure(y: np.ndarray) -> AnswerGraph:
    """Everything that a graph knows, from y."""
    graph = AnswerGraph.from_y(y)
    _ = graph.component_sizes, graph.sides, graph.contradictory, graph.votes, graph.cycles, graph.hubs()
    return graph


def pair_codes(ends: np.ndarray, same: np.ndarray) -> np.ndarray:
    codes = np.repeat(np.where(same, 1, -1) * np.arange(1, len(ends) + 1), 2)
    return np.column_stack([codes, ends.ravel()])


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    rng = np.random.default_rng(0)
    keys = rng.integers(0, n, size=2 * n)
    unit = seconds(lambda: np.sort(keys))
    print(f"{n:,} answers; unit: sorting {2 * n:,} numbers, {unit:.2f} s")
    print(f"{'answers':>16} {'task':>28} {'units':>7} {'s':>7}")
    for name, ends in shapes(n, rng).items():
        classes = rng.integers(0, 2, size=int(ends.max()) + 1)
        same = classes[ends[:, 0]] == classes[ends[:, 1]]
        y = pair_codes(ends, same)
        graph = structure(y)
        tasks: dict[str, Callable[[], object]] = {
            "from_y": lambda y=y: AnswerGraph.from_y(y),
            "from_y and all structure": lambda y=y: structure(y),
        }
        for n_classes, error in ((2, 0.0), (2, 0.1), (5, 0.1)):
            log_p = log_softmax(rng.normal(size=(graph.n_points, n_classes)), axis=1)
            factors = FactorGraph.from_answers(graph, n_classes, error)
            title = f"K={n_classes}, error {error:g}"
            tasks[f"factor graph, {title}"] = lambda g=graph, k=n_classes, e=error: FactorGraph.from_answers(g, k, e)
            tasks[f"propagate, {title}"] = lambda f=factors, p=log_p: f.propagate(p, max_iter=5)
        for task, run in tasks.items():
            taken = seconds(run, 1)
            print(f"{name:>16} {task:>28} {taken / unit:7.1f} {taken:7.2f}", flush=True)


if __name__ == "__main__":
    main()
