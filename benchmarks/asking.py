"""How many answers it takes when the questions are chosen: the linked design against labels and random pairs.

    python benchmarks/asking.py two wrong more speed --draws 20

Each part measures what is not in the file of results yet, and the tables of docs/asking.md are written from all of
it. Points: 2,000 of a set (two thirds, if it is smaller), accuracy on up to 2,000 others. Two classes are named the
better way (those of labels, too), more than two by the majority of the points known to be in each, as a person would
name them. SDULEARN_DATA names a folder with the benchmark sets (NAME.svm.bz2), in its folder multi those with more
classes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from pages import table, write_between
from paper import load_benchmark
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_svmlight_file
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sdulearn.asking import Asker, ask
from sdulearn.errors import NothingToAskError

mpl.use("Agg")
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "asking.md"
PICTURE = ROOT / "docs" / "_static" / "asking.svg"
RESULTS = ROOT / "benchmarks" / "asking.jsonl"
TWO = ("adult", "banana", "codrna", "ijcnn1", "magic", "phishing", "phoneme", "spambase", "w8a", "waveform")
MORE = ("digits", "satimage", "segment", "penbased", "texture", "vowel")
PRIORS = (0.5, 0.7)
SIZES = (25, 50, 100, 200)
REPORTED = (50, 200)
MORE_SIZES = (100, 300, 1000)
N_POINTS = 2000
WRONG = 0.1
RIVAL_SETS = (*MORE, "iris")
RIVAL_SIZES = (50, 100, 200, 400)
RIVAL_POINTS = 600
RIVAL_SECONDS = 120


def load(name):
    """Rows and classes of a set."""
    if name in ("digits", "iris"):
        return {"digits": load_digits, "iris": load_iris}[name](return_X_y=True)
    if name in MORE:
        X, y = load_svmlight_file(str(Path(os.environ["SDULEARN_DATA"]) / "multi" / f"{name}.svm.bz2"))
    else:
        X, y = load_benchmark(name)
    return (X.toarray() if sparse.issparse(X) else np.asarray(X)), np.asarray(y).astype(int)


def split_by_prior(y, prior, rng):
    """Points and test points, a share ``prior`` of each in class +1."""
    positive = rng.permutation(np.flatnonzero(y == 1))
    negative = rng.permutation(np.flatnonzero(y == -1))
    n = min(N_POINTS, int(len(positive) / prior / 2), int(len(negative) / (1 - prior) / 2))
    n_positive = round(prior * n)
    parts = []
    for k in range(2):
        ours = positive[k * n_positive : (k + 1) * n_positive]
        theirs = negative[k * (n - n_positive) : (k + 1) * (n - n_positive)]
        parts.append(rng.permutation(np.concatenate([ours, theirs])))
    return parts


def label_accuracy(X, y, X_test, y_test, n, rng, wrong=0.0):
    """Accuracy from n random labels."""
    chosen = rng.permutation(len(X))[:n]
    labels = y[chosen].copy()
    if wrong:
        labels = np.where(rng.random(n) < wrong, -labels, labels)
    scaler = StandardScaler().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegressionCV(cv=5 if len(set(y)) == 2 else 3, max_iter=1000)
        try:
            model.fit(scaler.transform(X[chosen]), labels)
        except ValueError:
            # One class alone, among all labels or in a fold: the more frequent one is all that is known.
            values, counts = np.unique(labels, return_counts=True)
            return float(np.mean(y_test == values[np.argmax(counts)]))
        return float(np.mean(model.predict(scaler.transform(X_test)) == y_test))


def better_way(model, X_test, y_test):
    """Accuracy of two classes, named the better way."""
    right = float(np.mean(model.predict(X_test) == y_test))
    return max(right, 1 - right)


def two_classes(name, prior, seed, wrong=0.0):
    """Accuracy against the number of answers, of linked questions, random pairs and labels."""
    X, y = load(name)
    rng = np.random.default_rng(seed)
    points, test = split_by_prior(y, prior, rng)
    X_test, y_test = X[test], y[test]
    X, y = X[points], y[points]
    found = {"part": "wrong" if wrong else "two", "name": name, "prior": prior, "seed": seed}
    for n in SIZES:
        right = label_accuracy(X, y, X_test, y_test, n, rng, wrong)
        found[f"labels {n}"] = max(right, 1 - right)
    asker = Asker(X, random_state=seed)
    for n in range(1, max(SIZES) + 1):
        question = asker.next()
        asker.tell(question, bool((y[question.left] == y[question.right]) != (rng.random() < wrong)))
        if n in SIZES:
            found[f"linked {n}"] = better_way(asker.model(), X_test, y_test)
            estimate = asker.accuracy()
            found[f"interval {n}"] = [estimate.value, estimate.low, estimate.high]
            found[f"gain {n}"] = asker.advice().expected_gain
    if not wrong:
        for n in REPORTED:
            pairs = ask(X, lambda a, b: y[a] == y[b], 2 * n, design="random", repeat_share=0, random_state=seed)
            found[f"pairs {n}"] = better_way(pairs.model(), X_test, y_test)
    return found


def match(y, left, choices, wrong, rng):
    """The answer to a match question of somebody who knows the classes, and errs now and then."""
    like = [k for k, point in enumerate(choices) if y[point] == y[left]]
    right = like[0] if like else "none"
    others = [one for one in (*range(len(choices)), "none") if one != right]
    return others[rng.integers(len(others))] if rng.random() < wrong else right


def more_classes(name, seed, wrong=0.0):
    """Accuracy and number of classes by match questions, with the number of classes to be found, and by labels."""
    X, y = load(name)
    y = np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    n_points = min(N_POINTS, 2 * len(X) // 3)
    test = order[n_points : n_points + N_POINTS]
    X_test, y_test = X[test], y[test]
    X, y = X[order[:n_points]], y[order[:n_points]]
    n_classes = len(set(y.tolist()))
    found = {"part": "match wrong" if wrong else "match", "name": name, "seed": seed, "true": n_classes}
    spoiled = np.where(rng.random(len(y)) < wrong, (y + rng.integers(1, n_classes, len(y))) % n_classes, y)
    for n in MORE_SIZES:
        chosen = rng.permutation(n_points)[:n]
        found[f"labels {n}"] = label_accuracy(X[chosen], spoiled[chosen], X_test, y_test, n, rng)
    asker = Asker(X, n_classes="auto", random_state=seed)
    for n in range(1, max(MORE_SIZES) + 1):
        with contextlib.suppress(NothingToAskError):
            question = asker.next()
            asker.tell(question, match(y, question.left, question.choices, wrong, rng))
        if n in MORE_SIZES:
            names = {one.number: np.bincount(y[list(one.examples)]).argmax() for one in asker.classes()}
            # Two classes are called -1 and +1.
            names |= {-1: names[2]} if len(names) == 2 else {}
            predicted = asker.model().predict(X_test)
            found[f"match {n}"] = float(np.mean([names[k] == c for k, c in zip(predicted, y_test, strict=True)]))
            found[f"classes {n}"] = len(names) - (-1 in names)
            estimate = asker.accuracy()
            found[f"interval {n}"] = [estimate.value, estimate.low, estimate.high]
    return found


def rival_data(name, seed):
    """Standardised points of a set and their classes."""
    X, y = load(name)
    chosen = np.random.default_rng(seed).permutation(len(X))[:RIVAL_POINTS]
    return StandardScaler().fit_transform(X[chosen]), y[chosen]


def transduced(name, seed):
    """Adjusted Rand index of all points after some numbers of questions."""
    X, y = rival_data(name, seed)
    found = {"part": "transduced", "name": name, "seed": seed}
    asker = Asker(X, n_classes="auto", random_state=seed)
    for n in range(1, max(RIVAL_SIZES) + 1):
        # Of a small set the classes of all points may be known before the last question.
        with contextlib.suppress(NothingToAskError):
            question = asker.next()
            asker.tell(question, match(y, question.left, question.choices, 0.0, np.random.default_rng(n)))
        if n in RIVAL_SIZES:
            found[f"linked {n}"] = float(adjusted_rand_score(y, asker.labels()))
    return found


def rivals(name, seed, python):
    """The same of clusterings that ask; what is not there in time, or fails, is left out, with the reason."""
    X, y = rival_data(name, seed)
    found = {"part": "rivals", "name": name, "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=X, y=y)
        script = Path(__file__).with_name("asking_rivals.py")
        for method in ("cobras", "npu"):
            command = [python, script, file, method, *map(str, RIVAL_SIZES)]
            try:
                done = subprocess.run(command, capture_output=True, check=False, timeout=RIVAL_SECONDS)
                out = done.stdout
                if done.returncode:
                    found[f"{method} error"] = done.stderr.decode().splitlines()[-1]
            except subprocess.TimeoutExpired as late:
                out = late.stdout or b""
                found[f"{method} error"] = f"not done after {RIVAL_SECONDS} s"
            # The last line may have been cut off.
            for n, labels in map(json.loads, out.decode().split("\n")[:-1]):
                found[f"{method} {n}"] = float(adjusted_rand_score(y, labels))
    return found


def speed(n_points, seed, n_features=50, n_questions=200):
    """Milliseconds until the next question is there, after both answers to the last one were worked out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, n_features))
    y = X @ rng.normal(size=n_features) + rng.normal(size=n_points) > 0
    asker = Asker(X, random_state=seed)
    waits = []
    works = []
    for _ in range(n_questions):
        began = time.perf_counter()
        question = asker.next()
        waits.append(time.perf_counter() - began)
        began = time.perf_counter()
        asker.prepare(question)
        works.append(time.perf_counter() - began)
        asker.tell(question, bool(y[question.left] == y[question.right]))
    found = {"part": "speed", "name": f"{n_points:,}", "seed": seed}
    return found | {
        "wait": 1000 * float(np.quantile(waits, 0.99)),
        "work": 1000 * float(np.median(works)),
        "slowest": 1000 * max(works),
    }


def jobs_of(parts, draws, seed, python):
    """All measurements of some parts, as functions and arguments."""
    seeds = range(seed, seed + draws)
    if "two" in parts:
        yield from ((two_classes, (name, prior, s)) for s in seeds for name in TWO for prior in PRIORS)
    if "wrong" in parts:
        yield from ((two_classes, (name, prior, s, WRONG)) for s in seeds for name in TWO for prior in PRIORS)
    if "more" in parts:
        yield from ((more_classes, (name, s)) for s in seeds for name in MORE)
        yield from ((more_classes, (name, s, WRONG)) for s in seeds for name in MORE)
    if python is not None:
        yield from ((rivals, (name, s, python)) for s in seeds for name in RIVAL_SETS)
        yield from ((transduced, (name, s)) for s in seeds for name in RIVAL_SETS)
    if "speed" in parts:
        yield from ((speed, (n, seed)) for n in (100_000, 1_000_000))


def key_of(row):
    return row["part"], row["name"], row.get("prior"), row["seed"]


def job_key(function, arguments):
    if function is two_classes:
        return "wrong" if len(arguments) == 4 else "two", *arguments[:3]
    if function is more_classes:
        return "match wrong" if len(arguments) == 3 else "match", arguments[0], None, arguments[1]
    if function is not speed:
        part = {rivals: "rivals", transduced: "transduced"}[function]
        return part, arguments[0], None, arguments[1]
    return "speed", f"{arguments[0]:,}", None, arguments[1]


def read_results():
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


def by_row(results, part):
    """Results of a part by set and prior."""
    found = defaultdict(list)
    for row in results:
        if row["part"] == part:
            found[row["name"], row.get("prior")].append(row)
    return dict(sorted(found.items(), key=lambda item: (item[0][1] or 0, item[0][0])))


def mean(rows, name):
    return 100 * float(np.mean([row[name] for row in rows]))


def covered(rows, n, truth="linked"):
    """In how many rows the interval holds the true accuracy."""
    return [row[f"interval {n}"][1] <= row[f"{truth} {n}"] <= row[f"interval {n}"][2] for row in rows]


def two_lines(results):
    """Accuracy with two classes, beside labels and twice as many random pairs."""
    groups = by_row(results, "two")
    rows = []
    gains = []
    ahead = 0
    for n in REPORTED:
        for (name, prior), found in groups.items():
            linked, labels, pairs = (mean(found, f"{kind} {n}") for kind in ("linked", "labels", "pairs"))
            gains.append(linked - labels)
            ahead += linked >= pairs
            rows.append([f"{name}, {prior:g}", str(n), f"{linked:.1f}", f"{labels:.1f}", f"{pairs:.1f}"])
    if not rows:
        return []
    hits = {n: [hit for found in groups.values() for hit in covered(found, n)] for n in SIZES}
    every = np.concatenate(list(hits.values()))
    by_size = ", ".join(f"{np.mean(hits[n]):.0%} after {n}" for n in SIZES)
    draws = min(len(found) for found in groups.values())
    summary = (
        f"Two classes, draws a row: {draws} or more. Linked questions are above as many labels by "
        f"{np.mean(gains):+.1f} points on average, not below by more than 0.5 in {sum(g >= -0.5 for g in gains)} of "
        f"{len(gains)} rows, and at or above twice as many random pairs in {ahead} of {len(gains)}. The 95% "
        f"interval of the accuracy, from the random share alone, holds the true accuracy in {np.mean(every):.1%} of "
        f"{len(every)} estimates ({by_size} answers)."
    )
    head = ["set, prior", "answers n", "n linked", "n labels", "2 n random pairs"]
    return [summary, "", *table(head, rows)]


def wrong_lines(results):
    """The same with wrong answers and labels."""
    groups = by_row(results, "wrong")
    if not groups:
        return []
    rows = []
    for n in REPORTED:
        linked = [mean(found, f"linked {n}") for found in groups.values()]
        labels = [mean(found, f"labels {n}") for found in groups.values()]
        rows.append([str(n), f"{np.mean(linked):.1f}", f"{np.mean(labels):.1f}"])
    draws = min(len(found) for found in groups.values())
    head = ["answers n", "n linked", "n labels"]
    words = f"With {WRONG:.0%} of all answers and labels wrong, mean over the same rows (draws: {draws}):"
    return ["", words, "", *table(head, rows)]


def more_lines(results):
    """More than two classes, whose number is to be found."""
    lines = []
    for part, title in (("match", "Match questions"), ("match wrong", f"The same, {WRONG:.0%} wrong")):
        groups = by_row(results, part)
        rows = [
            [
                name,
                str(n),
                f"{mean(found, f'match {n}'):.1f}",
                f"{mean(found, f'labels {n}'):.1f}",
                str(found[0]["true"]),
                ", ".join(str(row[f"classes {n}"]) for row in found),
                f"{np.mean(covered(found, n, 'match')):.0%}",
            ]
            for (name, _), found in groups.items()
            for n in MORE_SIZES
        ]
        head = ["set", "answers n", "n match", "n labels", "classes", "found, a draw each", "interval covers"]
        lines += ["", f"{title}:", "", *table(head, rows)] if rows else []
    return lines


def area(rows, method, sizes):
    """Mean adjusted Rand index over draws and numbers of questions; None where a draw lacks one."""
    names = [f"{method} {n}" for n in sizes]
    if not rows or any(name not in row for row in rows for name in names):
        return None
    return float(np.mean([row[name] for row in rows for name in names]))


def rival_lines(results):
    """Adjusted Rand index, mean over the numbers of questions that a method was done with in all draws."""
    ours = by_row(results, "transduced")
    rows = []
    ahead = 0
    for key, found in by_row(results, "rivals").items():
        cells = []
        linked = area(ours.get(key, []), "linked", RIVAL_SIZES)
        if linked is None:
            continue
        best = []
        for method in ("cobras", "npu"):
            done = [n for n in RIVAL_SIZES if area(found, method, [n]) is not None]
            value = area(found, method, done) if done else None
            whole = done == list(RIVAL_SIZES)
            cells.append("none in time" if value is None else f"{value:.2f}" + ("" if whole else f" (to {done[-1]})"))
            best += [] if value is None else [area(ours[key], "linked", done) - value]
        ahead += min(best, default=0) >= 0
        rows.append([key[0], str(len(found)), f"{linked:.2f}", *cells])
    if not rows:
        return []
    words = (
        f"Adjusted Rand index of all points, {RIVAL_POINTS} of each set, mean after "
        f"{', '.join(map(str, RIVAL_SIZES))} answers; NPU with MPCK-means is given the number of classes, and has "
        f"{RIVAL_SECONDS} s for a set (where it was not done, the mean ends earlier, as said). Linked questions are "
        f"at or above all that was done in time, after as many answers, on {ahead} of {len(rows)} sets:"
    )
    return ["", words, "", *table(["set", "draws", "linked", "COBRAS", "NPU + MPCK-means"], rows)]


def speed_lines(results):
    groups = by_row(results, "speed")
    rows = [
        [name, *(f"{found[-1][kind]:.0f}" for kind in ("wait", "work", "slowest"))]
        for (name, _), found in groups.items()
    ]
    head = ["points x 50 columns", "wait for the next question, p99", "working ahead, median", "slowest"]
    return ["", "Milliseconds a question, 200 questions:", "", *table(head, rows)] if rows else []


def draw_curves(results):
    """Mean accuracy against the number of answers."""
    import matplotlib.pyplot as plt

    groups = by_row(results, "two")
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    for axis, prior in zip(axes, PRIORS, strict=True):
        chosen = [found for (_, p), found in groups.items() if p == prior]
        for kind, sizes in (("linked", SIZES), ("labels", SIZES)):
            axis.plot(sizes, [np.mean([mean(f, f"{kind} {n}") for f in chosen]) for n in sizes], "o-", label=kind)
        axis.set(title=f"prior {prior:g}", xlabel="answers or labels", xscale="log", xticks=SIZES)
        axis.set_xticks(SIZES, [str(n) for n in SIZES], minor=False)
        axis.set_xticks([], minor=True)
    axes[0].set_ylabel("accuracy in %, mean of ten sets")
    axes[0].legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def write_page(results):
    lines = [*two_lines(results), *wrong_lines(results), *more_lines(results)]
    lines += [*rival_lines(results), *speed_lines(results)]
    write_between(PAGE, "asking", ["", *lines, ""])
    if by_row(results, "two"):
        draw_curves(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="two, wrong, more, speed")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--rivals", metavar="PYTHON", help="a Python with cobras-ts and active-semi-supervised-clustering"
    )
    arguments = parser.parse_args()
    done = {key_of(row) for row in read_results()}
    wanted = jobs_of(arguments.parts, arguments.draws, arguments.seed, arguments.rivals)
    jobs = [job for job in wanted if job_key(*job) not in done]
    run = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    for row in run(delayed(function)(*rest) for function, rest in jobs):
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
    write_page(read_results())


if __name__ == "__main__":
    main()
