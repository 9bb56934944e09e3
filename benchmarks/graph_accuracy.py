"""What the likelihood over components gains: shared points, labels, several people, wrong answers.

    SDULEARN_DATA=folder make bench-graph

writes the tables of docs/evidence/labels.md, errors.md and speed.md. Settings are chosen by the estimators from their
training data alone. Classes are named by the larger one on unlabeled rows, at prior 1/2 by the label of the star's
centre. Draws 0 to 19 are the reported ones; `--first 1000` takes others, as development did. What is measured is kept
in `--results`, so that a run can be stopped and taken up again.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from accuracy import supervised
from pages import EVIDENCE, folded, write_section
from paper import BENCHMARKS, load_benchmark
from runs import quietly, run_all
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, stack_pairs

N_UNLABELED = 500
N_TEST = 1000
PEOPLE = (0.05, 0.05, 0.1, 0.2, 0.5)
# Accuracy in percent that the paper of RoLNiP prints for its network, by the share of wrong answers.
PRINTED = {
    "adult": {0.2: 85.5, 0.4: 82.0},
    "phishing": {0.2: 94.7, 0.4: 90.0},
    "w8a": {0.2: 96.7, 0.4: 86.9},
}


class Draw:
    """Points in random order, standardised, with their classes in the ratio of the prior, and test points."""

    def __init__(self, name, n_points, prior, seed):
        X, y = load_benchmark(name)
        X = X.toarray() if hasattr(X, "toarray") else X
        self.rng = np.random.default_rng([seed, n_points, round(100 * prior)])
        parts = []
        used = {1: 0, -1: 0}
        by_class = {label: self.rng.permutation(np.flatnonzero(y == label)) for label in used}
        for count in (n_points + N_UNLABELED, N_TEST):
            wanted = {1: round(count * prior), -1: count - round(count * prior)}
            rows = [by_class[label][used[label] : used[label] + wanted[label]] for label in used]
            used = {label: used[label] + wanted[label] for label in used}
            parts.append(self.rng.permutation(np.concatenate(rows)))
        scaler = StandardScaler().fit(X[parts[0]])
        self.X = scaler.transform(X[parts[0]])
        self.y = y[parts[0]].astype(int)
        self.X_test = scaler.transform(X[parts[1]])
        self.y_test = y[parts[1]].astype(int)

    def fit(self, ends, wrong=None, points=True, **known):
        """An estimator of the answers about these points; without ``points`` it takes them for loose pairs."""
        same = self.y[ends[:, 0]] == self.y[ends[:, 1]]
        if wrong is not None:
            same = same ^ wrong
        rows, y = stack_pairs(self.X, ends, same, **known)
        return PairLogisticRegressionCV().fit(rows, y if points else y[:, 0])

    def accuracy(self, model):
        return 100 * float(np.mean(model.predict(self.X_test) == self.y_test))

    def wrong(self, n, share):
        return self.rng.permutation(np.arange(n) < round(n * share))


def star(name, seed, n=200, prior=0.7):
    """n answers about one point and n others, and n labels."""
    draw = Draw(name, n + 1, prior, seed)
    ends = np.column_stack([np.zeros(n, dtype=int), np.arange(1, n + 1)])
    known = {}
    if prior == 0.5:
        # Nothing else says which class is which.
        known["labels"] = np.where(np.arange(len(draw.y)) == 0, draw.y, np.nan)
    return {"star": draw.accuracy(draw.fit(ends, **known)), "labels": draw.accuracy(supervised(draw.X[:n], draw.y[:n]))}


def shared(name, seed):
    """200 answers over 100 points, by components and as if they were loose."""
    draw = Draw(name, 100, 0.7, seed)
    ends = np.array([draw.rng.choice(100, 2, replace=False) for _ in range(200)])
    return {"components": draw.accuracy(draw.fit(ends)), "loose": draw.accuracy(draw.fit(ends, points=False))}


def labels(name, seed, prior=0.7):
    """20 labels and 100 loose answers, together and apart; the answers alone are named by the labels."""
    draw = Draw(name, 220, prior, seed)
    ends = np.arange(200).reshape(-1, 2)
    known = np.zeros(len(draw.y), dtype=int)
    known[200:220] = draw.y[200:220]
    none = np.empty((0, 2), dtype=int)
    few = draw.y[200:220]
    # Labels of one class alone know that class alone.
    by_labels = 100 * float(np.mean(draw.y_test == few[0]))
    if len(np.unique(few)) == 2:
        by_labels = draw.accuracy(draw.fit(none, labels=known))
    answers = draw.fit(ends)
    if prior == 0.5:
        # Nothing else says which class is which.
        answers = answers.orient(draw.X[200:220], few)
    return {
        "both": draw.accuracy(draw.fit(ends, labels=known)),
        "labels": by_labels,
        "answers": draw.accuracy(answers),
    }


def people(name, seed):
    """The same 100 questions to five people, of whom one guesses."""
    draw = Draw(name, 200, 0.7, seed)
    ends = np.tile(np.arange(200).reshape(-1, 2), (len(PEOPLE), 1))
    wrong = np.concatenate([draw.wrong(100, share) for share in PEOPLE])
    model = draw.fit(ends, wrong, annotators=np.repeat(np.arange(1, len(PEOPLE) + 1), 100))
    rates = list(model.answer_model_.rates.values())
    off = np.abs(np.array(rates) - PEOPLE)
    guesser = int(np.argmax(rates) == len(PEOPLE) - 1 and rates[-1] > 0.35)
    one_voice = draw.fit(ends[:100])
    return {
        "largest miss": float(off.max()),
        "within 0.04": float((off <= 0.04).all()),
        "guesser found": guesser,
        "five people": draw.accuracy(model),
        "one who is never wrong": draw.accuracy(one_voice),
    }


def wrong_answers(name, seed):
    """200 answers, 20 repeats and 20 triangles among them, of which 15% are wrong."""
    draw = Draw(name, 300, 0.7, seed)
    pairs = np.arange(40).reshape(-1, 2)
    corners = np.arange(40, 100).reshape(-1, 3)
    triangles = corners[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2)
    loose = np.arange(100, 300).reshape(-1, 2)
    ends = np.concatenate([pairs, pairs, triangles, loose])
    wrong = draw.wrong(len(ends), 0.15)
    noisy = draw.fit(ends, wrong)
    return {
        "clean": draw.accuracy(draw.fit(ends)),
        "clean, items unknown": draw.accuracy(draw.fit(ends, points=False)),
        "wrong, with error model": draw.accuracy(noisy),
        "wrong, without": draw.accuracy(draw.fit(ends, wrong, points=False)),
        "rate": noisy.answer_model_.error_rate.value,
    }


def everyone(name, seed, share):
    """All training rows in loose pairs, a share of the answers wrong; the sizes of the classes as they are."""
    X, y = load_benchmark(name)
    X = X.toarray() if hasattr(X, "toarray") else X
    rng = np.random.default_rng([seed, round(100 * share)])
    order = rng.permutation(len(y))
    n = int(0.8 * len(y)) // 2 * 2
    scaler = StandardScaler().fit(X[order[:n]])
    train = scaler.transform(X[order[:n]])
    test = scaler.transform(X[order[n:]])
    truth = y[order]
    ends = np.arange(n).reshape(-1, 2)
    wrong = rng.random(len(ends)) < share
    rows, codes = stack_pairs(train, ends, (truth[ends[:, 0]] == truth[ends[:, 1]]) ^ wrong)
    numbers = {"printed": PRINTED[name][share]}
    for called, rate in (("rate given", share), ("rate unknown", "auto")):
        predicted = PairLogisticRegressionCV(error_rate=rate).fit(rows, codes).predict(test)
        # The model calls the larger class +1.
        predicted *= 1 if np.mean(truth > 0) >= 0.5 else -1
        numbers[called] = 100 * float(np.mean(predicted == truth[n:]))
        numbers[f"{called}, balanced"] = 100 * balanced_accuracy_score(truth[n:], predicted)
    numbers["larger class"] = 100 * max(float(np.mean(truth[n:] > 0)), float(np.mean(truth[n:] < 0)))
    return numbers


EXPERIMENTS = {
    "star, prior 0.7, 50": functools.partial(star, n=50),
    "star, prior 0.7, 200": star,
    "star, prior 0.5, 50": functools.partial(star, n=50, prior=0.5),
    "star, prior 0.5, 200": functools.partial(star, prior=0.5),
    "shared": shared,
    "labels, prior 0.7": labels,
    "labels, prior 0.5": functools.partial(labels, prior=0.5),
    "people": people,
    "wrong": wrong_answers,
    "20% wrong": functools.partial(everyone, share=0.2),
    "40% wrong": functools.partial(everyone, share=0.4),
}


@quietly
def run(job):
    """The numbers of one draw of one experiment on one set."""
    experiment, name, seed = job
    return EXPERIMENTS[experiment](name, seed)


def table(found, sets):
    """Means over the draws, one row a set, and their mean."""
    columns = list(next(iter(found.values())))
    lines = [f"| set | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    means = []
    for name in sets:
        rows = [list(numbers.values()) for (_, which, _), numbers in found.items() if which == name]
        means.append(np.mean(rows, axis=0))
        lines.append(f"| {name} | {' | '.join(shown(x) for x in means[-1])} |")
    lines.append(f"| mean | {' | '.join(shown(x) for x in np.mean(means, axis=0))} |")
    return lines, dict(zip(columns, np.transpose(means), strict=True))


def shown(number):
    return f"{number:.1f}" if number > 1.5 else f"{number:.3f}"


def summary(experiment, means):
    """How the figure that counts came out."""
    if experiment.startswith("star"):
        close = means["star"] >= means["labels"] - 0.5
        return f"At most 0.5 percentage points below n labels on {close.sum()} of {len(close)} sets."
    if experiment == "shared":
        gain = means["components"] - means["loose"]
        return f"Mean gain {gain.mean():+.1f} percentage points, smallest {gain.min():+.1f}."
    if experiment.startswith("labels"):
        above = (means["both"] > means["labels"]) & (means["both"] > means["answers"])
        return f"Above both on {above.sum()} of {len(above)} sets."
    if experiment == "people":
        return (
            f"All five rates within 0.04 in {means['within 0.04'].mean():.0%} of the draws, the guesser found in "
            f"{means['guesser found'].mean():.0%}."
        )
    if experiment.endswith("% wrong"):
        above = [int((means[called] >= means["printed"]).sum()) for called in ("rate given", "rate unknown")]
        return f"At or above the published figure on {above[0]} of 3 sets with the rate given, on {above[1]} without."
    lost = (means["clean"] - means["wrong, with error model"]).mean()
    without = (means["clean"] - means["wrong, without"]).mean()
    clean = (means["clean, items unknown"] - means["clean"]).mean()
    return (
        f"15% wrong answers cost {lost:.1f} percentage points with the error model, {without:.1f} without; on clean "
        "answers "
        f"it costs {clean:.1f}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sets", nargs="*", default=list(BENCHMARKS))
    parser.add_argument("--experiments", nargs="*", default=list(EXPERIMENTS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "bench-graph.jsonl")
    parser.add_argument("--print", action="store_true", help="print the tables instead of writing the page")
    parser.add_argument("--time", action="store_true", help="measure how long a star takes, and nothing else")
    options = parser.parse_args()
    if options.time:
        write_section(EVIDENCE / "speed.md", "star-time", measure_time(), "one draw")
        return
    began = time.perf_counter()
    seeds = range(options.first, options.first + options.draws)
    # Draw by draw, so that a run that is stopped has whole draws.
    wanted = [(e, name, seed) for seed in seeds for e in options.experiments for name in sets_of(e, options.sets)]
    found = run_all(run, wanted, options.jobs, options.results)
    for experiment in options.experiments:
        part = {job: numbers for job, numbers in found if job[0] == experiment}
        lines, means = table(part, sets_of(experiment, options.sets))
        lines = [summary(experiment, means), *folded("Per data set", lines)]
        if options.print:
            print(f"\n{experiment}", *lines, sep="\n")
        else:
            page = EVIDENCE / ("errors.md" if experiment == "people" or "wrong" in experiment else "labels.md")
            write_section(page, experiment, lines, f"{options.draws} draws per data set")
    print(f"{time.perf_counter() - began:.0f} s")


def measure_time(n=10_000, width=50):
    """Processor seconds of one fit of a star."""
    rng = np.random.default_rng(0)
    classes = np.where(rng.random(n + 1) < 0.6, 1, -1)
    X = rng.normal(size=(n + 1, width))
    X[:, 0] += classes
    ends = np.column_stack([np.zeros(n, dtype=int), np.arange(1, n + 1)])
    rows, y = stack_pairs(X, ends, classes[0] == classes[1:])
    lines = ["| star of 10,000 answers, 50 columns | CPU time |", "|---|---|"]
    for estimator in (PairLogisticRegression(), PairLogisticRegressionCV()):
        began = time.process_time()
        estimator.fit(rows, y)
        lines.append(f"| {type(estimator).__name__} | {time.process_time() - began:.1f} s |")
    return lines


def sets_of(experiment, sets):
    """Those of the sets that an experiment is about."""
    return [name for name in sets if name in PRINTED] if experiment.endswith("% wrong") else sets


if __name__ == "__main__":
    main()
