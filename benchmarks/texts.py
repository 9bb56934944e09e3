"""How far do match questions get on texts, with a model of sentence embeddings, and how long does a question take?

    HF_HUB_OFFLINE=1 SDULEARN_DATA=folder python benchmarks/texts.py domains|intents|speed [--model NAME] [--draws 5]

reads ``text/clinc150.csv.bz2`` in that folder as ``sdulearn ask --text text --text-model NAME`` does. "domains": 10
classes, 100 and 300 match answers, 2,000 rows to ask about and 2,000 others to judge by; "intents": 150 classes, 1,500
answers, 20,000 rows and the 2,500 others; beside as many true labels of random rows. "speed": the time of 600 questions
about 150 classes among 20,000 rows, and where it goes. Vectors are kept in ``--cache``.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import os
import pstats
import time
from pathlib import Path

import numpy as np
import pandas as pd
from asking import match, softmax_accuracy
from runs import quietly

from sdulearn import Reading
from sdulearn.asking import Asker
from sdulearn.errors import NothingToAskError
from sdulearn.workflow.data import draw_rows

ID = "row"
NO_ERRORS = np.random.default_rng(0)
SETS = {"domains": ("domain", 2000, 2000, (100, 300)), "intents": ("intent", 20_000, 2500, (600, 1500))}


def vectors(model, cache):
    """Standardised vectors of all texts, as they are read to be asked about, and the table."""
    table = pd.read_csv(Path(os.environ["SDULEARN_DATA"]) / "text" / "clinc150.csv.bz2")
    if not cache.exists():
        known = table[["text"]].assign(**{ID: [f"t{k}" for k in range(len(table))]})
        began = time.perf_counter()
        drawn = draw_rows(known, len(known), Reading(id_column=ID, text=("text",), text_model=model))
        print(f"{len(known):,} texts encoded in {time.perf_counter() - began:.0f} s")
        X = np.empty_like(drawn.X)
        X[[int(name[1:]) for name in drawn.ids]] = drawn.columns.scaled(drawn.X)
        np.save(cache, X.astype(np.float32))
    return np.load(cache).astype(np.float64), table


def by_questions(X, y, X_test, y_test, sizes, seed):
    """Accuracy on other rows under the best names, number of classes found, and seconds of each question."""
    asker = Asker(X, n_classes="auto", random_state=seed)
    seconds, found = [], []
    for n in range(1, max(sizes) + 1):
        began = time.perf_counter()
        with contextlib.suppress(NothingToAskError):
            question = asker.next()
            asker.tell(question, match(y, question.left, question.choices, 0.0, NO_ERRORS))
        seconds.append(time.perf_counter() - began)
        if n in sizes:
            names = {one.number: np.bincount(y[list(one.examples)]).argmax() for one in asker.classes()}
            predicted = np.array([names.get(number, -1) for number in asker.model().predict(X_test).tolist()])
            found.append((n, float(np.mean(predicted == y_test)), len(names)))
    return found, np.array(seconds)


@quietly
def measure(part, X, labels, draws):
    column, n_rows, n_test, sizes = SETS[part]
    y = np.unique(labels[column], return_inverse=True)[1]
    print(f"{part}: {len(set(y.tolist()))} classes; answers: accuracy, classes found; accuracy by labels", flush=True)
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(X))
        rows, test = order[:n_rows], order[n_rows : n_rows + n_test]
        found, seconds = by_questions(X[rows], y[rows], X[test], y[test], sizes, seed)
        for n, accuracy, n_found in found:
            labelled = softmax_accuracy(X[rows], y[rows], X[test], y[test], n, rng)
            print(f"  draw {seed}, {n:>5} answers: {accuracy:.3f}, {n_found}; {labelled:.3f}", flush=True)
        print(f"  a question: median {np.median(seconds):.3f} s, p99 {np.quantile(seconds, 0.99):.3f} s", flush=True)


@quietly
def speed(X, labels, n_questions=600):
    y = np.unique(labels["intent"], return_inverse=True)[1]
    profile = cProfile.Profile()
    began = time.process_time()
    profile.enable()
    found, seconds = by_questions(X[:20_000], y[:20_000], X[20_000:], y[20_000:], (n_questions,), 0)
    profile.disable()
    print(f"{n_questions} questions: {time.process_time() - began:.0f} CPU s, {found[0][2]} classes")
    print(
        f"p50 {np.median(seconds):.3f} s, p99 {np.quantile(seconds, 0.99):.3f} s, last 50 {seconds[-50:].mean():.3f} s"
    )
    pstats.Stats(profile).sort_stats("tottime").print_stats(20)
    pstats.Stats(profile).sort_stats("cumtime").print_stats("sdulearn", 40)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=(*SETS, "speed"))
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/sdulearn-clinc150.npy"))
    arguments = parser.parse_args()
    X, labels = vectors(arguments.model, arguments.cache)
    if arguments.part == "speed":
        # In random order: the file is sorted by class.
        order = np.random.default_rng(0).permutation(len(X))
        speed(X[order], labels.iloc[order].reset_index(drop=True))
    else:
        measure(arguments.part, X, labels, arguments.draws)


if __name__ == "__main__":
    main()
