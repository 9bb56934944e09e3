"""How many classes does `check` report for simulated crowds, and does the interval contain the true number?

    python benchmarks/number_of_classes.py

Twenty people, who are wrong at different rates. "random" questions are about any two points; of the others half are
about two points of one class, as an asker chooses them.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sdulearn.answers import AnswerGraph
from sdulearn.answers.checks import count_classes
from sdulearn.answers.many_classes import find_groups

N_PEOPLE = 20
# Classes, mean points of a class, answers per point, share of wrong answers, whether the questions are random.
CELLS = (
    (2, 30, 12, 0.10, True), (3, 25, 14, 0.20, True), (5, 20, 15, 0.15, True), (5, 20, 30, 0.15, True),
    (10, 15, 30, 0.10, True), (10, 15, 12, 0.15, False), (20, 12, 12, 0.10, False), (50, 10, 12, 0.10, False),
    (100, 8, 14, 0.10, False), (150, 8, 12, 0.10, False), (150, 10, 20, 0.15, False), (500, 2, 8, 0.10, False),
    (1000, 2, 12, 0.15, False),
)  # fmt: skip


def simulated(seed: int, n_classes: int, size: int, per_point: int, error: float, is_random: bool):
    """Answers as a graph, and the class of each point; classes differ in size, and have two points or more."""
    rng = np.random.default_rng(seed)
    n_points = n_classes * size
    shares = rng.dirichlet(np.full(n_classes, 4.0)) if n_classes > 2 else np.array([0.6, 0.4])
    rest = rng.choice(n_classes, n_points - 2 * n_classes, p=shares)
    classes = rng.permutation(np.concatenate([np.tile(np.arange(n_classes), 2), rest]))
    n_answers = n_points * per_point // 2
    first, second = rng.integers(0, n_points, (2, 3 * n_answers))
    if not is_random:
        members = [np.flatnonzero(classes == k) for k in range(n_classes)]
        chosen = rng.random(3 * n_answers) < 0.5
        second[chosen] = [rng.choice(members[classes[k]]) for k in first[chosen]]
    ends = np.column_stack([first, second])[np.flatnonzero(first != second)[:n_answers]]
    who = rng.integers(0, N_PEOPLE, len(ends))
    rates = np.clip(rng.beta(2, 2 / error - 2, N_PEOPLE), 0, 0.45)
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(len(ends)) < rates[who])
    return AnswerGraph.from_answers(ends, same, annotators=who + 1, n_points=n_points), classes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    arguments = parser.parse_args()
    print("| classes | items | answers | wrong | questions | found (interval) | contain | groups: Rand index | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    warnings.simplefilter("ignore")
    for n_classes, size, per_point, error, is_random in CELLS:
        shown, covers, agreement, began = [], 0, [], time.process_time()
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            graph, classes = simulated(seed, n_classes, size, per_point, error, is_random)
            number = count_classes(graph)
            kind = ", entities" if number.are_entities else ""
            shown.append(f"{number.value} ({number.low} to {number.high}{kind})")
            covers += number.low <= n_classes <= number.high
            agreement.append(adjusted_rand_score(classes, find_groups(graph).group))
        seconds = (time.process_time() - began) / arguments.seeds
        print(
            f"| {n_classes} | {n_classes * size:,} | {graph.n_answers:,} | {error:.0%} "
            f"| {'random' if is_random else 'half of one class'} | {'; '.join(shown)} "
            f"| {covers} of {arguments.seeds} | {np.mean(agreement):.2f} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
