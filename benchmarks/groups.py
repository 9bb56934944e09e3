"""Do answers alone sort pictures of birds into their classes, where people sorted two to five pictures at a time?

    SDULEARN_DATA=folder python benchmarks/groups.py

reads ``real/groups`` and ``real/birds_truth.csv`` in that folder and writes the share of the images that are in the
class of their species into docs/evidence/errors.md, under the best names: the mean over random orders of the pictures
and the people, which are the random seeds of the sampler.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pages
import pandas as pd
from pages import EVIDENCE, write_section
from real import N_SPECIES, named

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.answer_model import posteriors

# Shares of the pictures of each species that are kept where the sizes of the classes differ.
UNEQUAL = (1.0, 0.35, 1.0, 0.25, 0.6)
# The file, and how many of the 300 people.
CROWDS = {
    "fives": ("sd-rq-wp-5-birds5.csv", (180, 300)),
    "fours": ("sd-rq-wp-4-birds5.csv", (150, 300)),
    "threes": ("sd-rq-wp-3-birds5.csv", (200, 300)),
    "pairs": ("sd-rq-wp-2-birds5.csv", (300,)),
}


def load(name: str, n_people: int, unequal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Answers about the five species (two pictures, same, person, question), and the species of each picture."""
    folder = Path(os.environ["SDULEARN_DATA"]) / "real"
    truth = pd.read_csv(folder / "birds_truth.csv").set_index("id")["label"]
    kept = truth < N_SPECIES
    if unequal:
        shares = np.array([*UNEQUAL, 0.0])[np.minimum(truth, N_SPECIES)]
        kept &= np.random.default_rng(5).random(len(truth)) <= shares
    answers = []
    for number, line in enumerate(pd.read_csv(folder / "groups" / name).itertuples(), 1):
        person = int(line.annotator[1:])
        pile = {int(item): k for k, group in enumerate(line.groups.split("|")) for item in group.split(";")}
        for first, second in combinations([int(item) for item in line.items.split(";")], 2):
            if person < n_people and kept[first] and kept[second]:
                answers.append((first, second, pile[first] == pile[second], person + 1, number))
    table = np.array(answers)
    points, ends = np.unique(table[:, :2], return_inverse=True)
    table[:, :2] = ends.reshape(-1, 2)
    return table, truth[points].to_numpy()


def share_right(table: np.ndarray, classes: np.ndarray, seed: int) -> tuple[float, float]:
    """The share of the pictures in the right class, and the mean probability of their classes."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(len(classes))
    person = 1 + rng.permutation(table[:, 3].max() + 1)
    table = rng.permutation(table)
    graph = AnswerGraph.from_answers(
        place[table[:, :2]], table[:, 2] > 0, annotators=person[table[:, 3]], questions=table[:, 4]
    )
    model = AnswerModel.estimate(graph, N_SPECIES)
    probabilities = posteriors(model, graph, np.full((graph.n_points, N_SPECIES), -np.log(N_SPECIES)))[place]
    return named(probabilities, classes).mean(), probabilities.max(axis=1).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--crowds", nargs="+", default=list(CROWDS))
    parser.add_argument("--unequal", action="store_true", help="three species thinned out, 300 people")
    arguments = parser.parse_args()
    lines = []
    for crowd in arguments.crowds:
        file, sizes = CROWDS[crowd]
        for n_people in sizes[-1:] if arguments.unequal else sizes:
            table, classes = load(file, n_people, arguments.unequal)
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                right, sure = np.transpose([share_right(table, classes, seed) for seed in range(arguments.seeds)])
            seconds = (time.process_time() - began) / arguments.seeds
            cells = [crowd, str(n_people), f"{len(table):,}", str(len(classes)), f"{right.mean():.1%}"]
            lines.append([*cells, f"{right.std():.1%}", f"{sure.mean():.1%}", f"{seconds:.1f}"])
            print(*lines[-1], flush=True)
    if not arguments.unequal:
        head = ["sorted", "annotators", "answers", "images", "in the right class", "standard deviation"]
        head += ["mean probability of the class", "CPU s"]
        write_section(EVIDENCE / "errors.md", "groups", pages.table(head, lines), f"{arguments.seeds} random orders")


if __name__ == "__main__":
    main()
