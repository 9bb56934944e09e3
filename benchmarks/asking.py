"""How many answers it takes when the questions are chosen: the linked design against labels and random pairs.

    python benchmarks/asking.py two wrong match match-wrong interval sort sort-wrong speed --draws 20

Each part measures what is not in the file of results yet, and the tables of docs/evidence/asking.md are written from
all of it. Points: 2,000 of a set (two thirds, if it is smaller), accuracy on up to 2,000 others. Two classes are
named the better way (those of labels, too), more than two by the majority of the points known to be in each, as a
person would name them. SDULEARN_DATA names a folder with the benchmark sets (NAME.svm.bz2), in its folder multi those
with more classes, in its folder text clinc150.csv.bz2 (columns text and domain), and mnist10k.npz (X and y).
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
import pandas as pd
from joblib import Parallel, delayed
from pages import EVIDENCE, folded, table, write_section
from paper import load_benchmark
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_svmlight_file
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sdulearn.asking import Asker, ask
from sdulearn.errors import NothingToAskError, UndeterminedError
from sdulearn.tables.features import TextFeatures

mpl.use("Agg")
ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "_static" / "asking.svg"
RESULTS = ROOT / "benchmarks" / "asking.jsonl"
TWO = ("adult", "banana", "codrna", "ijcnn1", "magic", "phishing", "phoneme", "spambase", "w8a", "waveform")
MULTI = ("satimage", "segment", "penbased", "texture", "vowel")
MATCH = ("clinc150", "mnist", "digits", *MULTI)
PRIORS = (0.5, 0.7)
SIZES = (25, 50, 100, 200)
REPORTED = (50, 200)
MATCH_SIZES = (100, 300, 1000)
INTERVAL_SETS = ("digits", "satimage", "segment", "penbased", "vowel")
INTERVAL_SIZES = (60, 100, 200)
N_POINTS = 2000
WRONG = 0.1
# Seconds that people take to compare some items; for each further one as long as for the fifth.
SECONDS = {2: 6.0, 3: 9.5, 4: 14.0, 5: 18.0}
SORT_SETS = ("digits", "penbased", "clinc150", "segment")
SORT_DESIGNS = ("match", "match flat", "sort 3", "sort 4", "sort 5")
SORT_BUDGETS = (300, 600, 1200, 2400)
RIVAL_SETS = ("digits", *MULTI, "iris")
RIVAL_SIZES = (50, 100, 200, 400)
RIVAL_POINTS = 600
RIVAL_SECONDS = 120


def load(name):
    """Rows, or texts, and classes of a set."""
    folder = Path(os.environ["SDULEARN_DATA"])
    if name in ("digits", "iris"):
        return {"digits": load_digits, "iris": load_iris}[name](return_X_y=True)
    if name == "clinc150":
        table = pd.read_csv(folder / "text" / "clinc150.csv.bz2")
        return table["text"].to_numpy(), table["domain"].to_numpy()
    if name == "mnist":
        with np.load(folder / "mnist10k.npz") as file:
            return file["X"].astype(float), file["y"]
    if name in MULTI:
        X, y = load_svmlight_file(str(folder / "multi" / f"{name}.svm.bz2"))
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


def fit_labels(X, y, cv):
    """A softmax of standardised columns, with two classes or more, by cross-validation; None of one class alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return LogisticRegressionCV(cv=cv, max_iter=1000, use_legacy_attributes=False).fit(X, y)
        except ValueError:
            # One class alone, among all labels or in a fold.
            return None


def label_accuracy(X, y, X_test, y_test, n, rng, wrong=0.0):
    """Accuracy from n random labels of two classes."""
    chosen = rng.permutation(len(X))[:n]
    labels = y[chosen].copy()
    if wrong:
        labels = np.where(rng.random(n) < wrong, -labels, labels)
    scaler = StandardScaler().fit(X)
    model = fit_labels(scaler.transform(X[chosen]), labels, 5)
    if model is None:
        return most_frequent(labels, y_test)
    return float(np.mean(model.predict(scaler.transform(X_test)) == y_test))


def most_frequent(labels, y_test):
    """Accuracy of the most frequent class: all that is known from labels of one class."""
    values, counts = np.unique(labels, return_counts=True)
    return float(np.mean(y_test == values[np.argmax(counts)]))


def softmax_accuracy(X, y, X_test, y_test, n, rng):
    """Accuracy from n random labels of many classes, of columns standardised or as given, by cross-validation.

    Match questions choose between the same two.
    """
    chosen = rng.permutation(len(X))[:n]
    scalers = [StandardScaler(), StandardScaler(with_std=False)]
    best = (-1.0, most_frequent(y[chosen], y_test))
    for scaler in scalers:
        Z = scaler.fit_transform(X)
        size = Z.std()
        model = fit_labels(Z[chosen] / size, y[chosen], 3)
        if model is not None:
            right = float(np.mean(model.predict(scaler.transform(X_test) / size) == y_test))
            best = max(best, (float(np.max(model.scores_.mean(axis=0))), right))
    return best[1]


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
            # Ten random points are not yet there after 25 answers.
            with contextlib.suppress(UndeterminedError):
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


def split(name, rng):
    """Points and test points of a set, with classes from 0; texts are described as `ask --text` does it."""
    X, y = load(name)
    y = np.unique(y, return_inverse=True)[1]
    order = rng.permutation(len(y))
    n_points = min(N_POINTS, 2 * len(y) // 3)
    points = order[:n_points]
    test = order[n_points : n_points + N_POINTS]
    if name != "clinc150":
        return X[points], y[points], X[test], y[test]
    features, described = TextFeatures.fit("text", X[points].tolist())
    return described, y[points], features.transform(X[test].tolist())[0], y[test]


def match_questions(part, name, seed):
    """Accuracy and number of classes by match questions, with the number of classes to be found, and by labels."""
    wrong = WRONG if part == "match wrong" else 0.0
    sizes = INTERVAL_SIZES if part == "interval" else MATCH_SIZES
    rng = np.random.default_rng(seed)
    X, y, X_test, y_test = split(name, rng)
    n_classes = len(set(y.tolist()))
    found = {"part": part, "name": name, "seed": seed, "true": n_classes}
    spoiled = np.where(rng.random(len(y)) < wrong, (y + rng.integers(1, n_classes, len(y))) % n_classes, y)
    for n in sizes if part != "interval" else ():
        found[f"labels {n}"] = softmax_accuracy(X, spoiled, X_test, y_test, n, rng)
    asker = Asker(X, n_classes="auto", random_state=seed)
    for n in range(1, max(sizes) + 1):
        with contextlib.suppress(NothingToAskError):
            question = asker.next()
            asker.tell(question, match(y, question.left, question.choices, wrong, rng))
        if n in sizes:
            names = {one.number: np.bincount(y[list(one.examples)]).argmax() for one in asker.classes()}
            # Two classes are called -1 and +1.
            names |= {-1: names[2]} if len(names) == 2 else {}
            predicted = asker.model().predict(X_test)
            found[f"match {n}"] = float(np.mean([names[k] == c for k, c in zip(predicted, y_test, strict=True)]))
            found[f"classes {n}"] = len(names) - (-1 in names)
            estimate = asker.accuracy()
            found[f"interval {n}"] = [estimate.value, estimate.low, estimate.high]
    return found


def seconds_of(question, flat=False):
    """How long a person takes; flat: as for a pair, because the examples of a match question are known by heart."""
    n = 2 if flat else len(question.items)
    return SECONDS.get(n, SECONDS[5] + (n - 5) * (SECONDS[5] - SECONDS[4]))


def sort_reply(y, items, wrong, rng):
    """The groups of somebody who knows the classes; now and then they are careless about the whole question."""
    return rng.integers(0, len(items), len(items)).tolist() if rng.random() < wrong else y[list(items)].tolist()


def sort_questions(part, name, seed):
    """Accuracy by the time that people spend: sorting three to five items, and match questions."""
    wrong = WRONG if part == "sort wrong" else 0.0
    found = {"part": part, "name": name, "seed": seed}
    X, y, X_test, y_test = split(name, np.random.default_rng(seed))
    for design in SORT_DESIGNS:
        rng = np.random.default_rng([seed, 1])
        options = {"design": "sort", "n_items": int(design[-1])} if "sort" in design else {"design": "match"}
        asker = Asker(X, n_classes="auto", random_state=seed, **options)
        spent, budgets = 0.0, list(SORT_BUDGETS)
        while budgets:
            question = asker.next()
            spent += seconds_of(question, design == "match flat")
            if spent > budgets[0]:
                found[f"{design} {budgets.pop(0)}"] = named_accuracy(asker, y, X_test, y_test)
            if question.form == "sort":
                asker.tell(question, sort_reply(y, question.items, wrong, rng))
            else:
                asker.tell(question, match(y, question.left, question.choices, wrong, rng))
    return found


def named_accuracy(asker, y, X_test, y_test):
    """Accuracy, each class named by its examples; 0 before there are two."""
    try:
        predicted = asker.model().predict(X_test)
    except UndeterminedError:
        return 0.0
    names = {one.number: np.bincount(y[list(one.examples)]).argmax() for one in asker.classes()}
    names |= {-1: names[2]} if len(names) == 2 else {}
    return float(np.mean([names[k] == c for k, c in zip(predicted, y_test, strict=True)]))


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


def speed(n_classes, seed, n_points=100_000, n_features=50, n_questions=200):
    """Milliseconds of processor time until the next question is there, without working ahead."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, n_features))
    logits = X @ rng.normal(size=(n_features, n_classes)) + rng.gumbel(size=(n_points, n_classes))
    y = logits.argmax(axis=1)
    asker = Asker(X, n_classes=n_classes, random_state=seed)
    waits = []
    for _ in range(n_questions):
        began = time.process_time()
        question = asker.next()
        waits.append(1000 * (time.process_time() - began))
        said = match(y, question.left, question.choices, 0.0, rng)
        asker.tell(question, said if n_classes > 2 else said == 0)
    found = {"part": "speed", "name": f"{n_classes} classes", "seed": seed}
    return found | {"median": float(np.median(waits)), "p99": float(np.quantile(waits, 0.99)), "slowest": max(waits)}


def jobs_of(parts, draws, seed, python):
    """All measurements of some parts, as functions and arguments."""
    seeds = range(seed, seed + draws)
    if "two" in parts:
        yield from ((two_classes, (name, prior, s)) for s in seeds for name in TWO for prior in PRIORS)
    if "wrong" in parts:
        yield from ((two_classes, (name, prior, s, WRONG)) for s in seeds for name in TWO for prior in PRIORS)
    for part in ("sort", "sort wrong"):
        if part.replace(" ", "-") in parts:
            yield from ((sort_questions, (part, name, s)) for s in seeds for name in SORT_SETS)
    for part, names in (("match", MATCH), ("match wrong", MATCH), ("interval", INTERVAL_SETS)):
        if part.replace(" ", "-") in parts:
            yield from ((match_questions, (part, name, s)) for s in seeds for name in names)
    if python is not None:
        yield from ((rivals, (name, s, python)) for s in seeds for name in RIVAL_SETS)
        yield from ((transduced, (name, s)) for s in seeds for name in RIVAL_SETS)
    if "speed" in parts:
        yield from ((speed, (n, s)) for s in seeds for n in (2, 10))


def key_of(row):
    return row["part"], row["name"], row.get("prior"), row["seed"]


def job_key(function, arguments):
    if function is two_classes:
        return "wrong" if len(arguments) == 4 else "two", *arguments[:3]
    if function in (match_questions, sort_questions):
        part, name, seed = arguments
        return part, name, None, seed
    if function is not speed:
        part = {rivals: "rivals", transduced: "transduced"}[function]
        return part, arguments[0], None, arguments[1]
    return "speed", f"{arguments[0]} classes", None, arguments[1]


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
    rows = [row for row in rows if f"interval {n}" in row]
    return [row[f"interval {n}"][1] <= row[f"{truth} {n}"] <= row[f"interval {n}"][2] for row in rows]


def section(title, words, head, rows):
    """Lines of a part of the page: a heading, what was found, and the table, folded."""
    return ["", f"## {title}", "", words, *folded("All rows", table(head, rows))]


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
    by_size = ", ".join(f"{np.mean(hits[n]):.0%} after {n}" for n in SIZES if hits[n])
    draws = min(len(found) for found in groups.values())
    summary = (
        f"{draws} or more draws per row. Compared with the same number of labels, linked questions gain "
        f"{np.mean(gains):+.1f} percentage points on average and are at most 0.5 below in "
        f"{sum(g >= -0.5 for g in gains)} of {len(gains)} rows. They match or beat twice as many random pairs in "
        f"{ahead} of {len(gains)} rows. The 95% confidence interval for the accuracy, from the random share alone, "
        f"contains the true accuracy in {np.mean(every):.1%} of {len(every)} estimates ({by_size} answers)."
    )
    head = ["set, prior", "answers n", "n linked", "n labels", "2 n random pairs"]
    return section("Two classes", summary, head, rows)


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
    words = f"With {WRONG:.0%} of all answers and labels wrong, mean over the same sets and priors ({draws} draws):"
    return ["", words, "", *table(head, rows)]


def match_lines(results):
    """Many classes, whose number is to be found, beside as many labels."""
    lines = []
    head = ["set", "answers n", "n match", "n labels", "difference", "classes", "found, by draw"]
    for part, title in (
        ("match", "More classes"),
        ("match wrong", f"More classes, {WRONG:.0%} of answers and labels wrong"),
    ):
        rows = []
        gains = []
        right = 0
        groups = by_row(results, part)
        for (name, _), found in groups.items():
            for n in MATCH_SIZES:
                differences = [100 * (row[f"match {n}"] - row[f"labels {n}"]) for row in found]
                gains.append(np.mean(differences))
                numbers = [row[f"classes {n}"] for row in found]
                right += all(number == found[0]["true"] for number in numbers)
                error = np.std(differences, ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
                cells = [f"{mean(found, f'match {n}'):.1f}", f"{mean(found, f'labels {n}'):.1f}"]
                cells += [f"{gains[-1]:+.1f} ± {error:.1f}", str(found[0]["true"]), ", ".join(map(str, numbers))]
                rows.append([name, str(n), *cells])
        if not rows:
            continue
        draws = min(len(found) for found in groups.values())
        every = [row for found in groups.values() for row in found]
        held = ", ".join(f"{np.mean(covered(every, n, 'match')):.0%} after {n}" for n in MATCH_SIZES)
        words = (
            f"{draws} or more draws per row. Compared with the same number of labels, match questions gain "
            f"{np.mean(gains):+.1f} percentage points on average and are at most 1 below in "
            f"{sum(gain >= -1 for gain in gains)} of {len(gains)} rows. In {right} rows all draws found exactly the "
            f"true classes. The 95% confidence interval for the accuracy contains the true accuracy in {held} answers."
        )
        lines += section(title, words, head, rows)
    return lines


def interval_lines(results):
    """How often the interval of the accuracy holds the true one, of many classes."""
    groups = by_row(results, "interval")
    every = [row for found in groups.values() for row in found]
    if not every:
        return []
    rows = []
    for name, found in [*((name, found) for (name, _), found in groups.items()), ("all", every)]:
        cells = []
        for n in INTERVAL_SIZES:
            bias = 100 * np.mean([row[f"interval {n}"][0] - row[f"match {n}"] for row in found])
            width = 100 * np.mean([row[f"interval {n}"][2] - row[f"interval {n}"][1] for row in found])
            cells.append(f"{np.mean(covered(found, n, 'match')):.0%} ({bias:+.1f}, {width:.0f})")
        rows.append([name, str(len(found)), *cells])
    head = ["set", "draws", *(f"{n} answers" for n in INTERVAL_SIZES)]
    words = "Share of the draws in which the 95% interval contains the accuracy (bias and width in percentage points):"
    return ["", "## Confidence intervals, more classes", "", words, "", *table(head, rows)]


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
    draws = min(int(row[1]) for row in rows)
    words = (
        f"Adjusted Rand index of all rows, {RIVAL_POINTS} of each set, mean after "
        f"{', '.join(map(str, RIVAL_SIZES))} answers. NPU with MPCK-means is given the number of classes, and "
        f"{RIVAL_SECONDS} s per set; if it did not finish, the mean ends earlier, as noted. After the same number of "
        f"answers, linked questions match or beat all that finished in time on {ahead} of {len(rows)} sets, with "
        f"{draws} draw{'s' * (draws > 1)} per set{', too few to test a difference' * (draws < 5)}."
    )
    return section("Clusterings that ask", words, ["set", "draws", "linked", "COBRAS", "NPU + MPCK-means"], rows)


def speed_lines(results):
    rows = [
        [
            name,
            str(len(found)),
            *(f"{np.median([row[kind] for row in found]):.0f}" for kind in ("median", "p99", "slowest")),
        ]
        for (name, _), found in by_row(results, "speed").items()
    ]
    words = "CPU time to the next question in ms, over 200 questions, computed on demand (100,000 rows x 50 features):"
    head = ["", "draws", "median", "p99", "slowest"]
    return ["", "## Time to the next question", "", words, "", *table(head, rows)] if rows else []


def sort_lines(results):
    """Sorting beside match questions, by the time that people spend."""
    lines = []
    for part, title, words in (
        (
            "sort",
            "Sorting",
            "Accuracy by the seconds that a person spends (simulated: 6 for two items, 9.5, 14, 18 for five, 4 for "
            "each further one; match flat: 6 for each question, if the examples are known by heart).",
        ),
        ("sort wrong", "Sorting, careless answers", f"The same, {WRONG:.0%} of the answers careless."),
    ):
        rows = []
        for (name, _), found in by_row(results, part).items():
            for seconds in SORT_BUDGETS:
                cells = [f"{mean(found, f'{design} {seconds}'):.1f}" for design in SORT_DESIGNS]
                rows.append([name, str(len(found)), str(seconds), *cells])
        if rows:
            lines += section(title, words, ["set", "draws", "seconds", *SORT_DESIGNS], rows)
    return lines


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
    lines = [*two_lines(results), *wrong_lines(results), *match_lines(results), *interval_lines(results)]
    lines += [*sort_lines(results), *rival_lines(results), *speed_lines(results)]
    write_section(EVIDENCE / "asking.md", "asking", lines, "draws as stated")
    if by_row(results, "two"):
        draw_curves(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="two, wrong, match, match-wrong, interval, sort, sort-wrong, speed"
    )
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
