"""Answers about more than two classes: how much they are worth, and whether their number is found.

    python benchmarks/classes.py --draws 20 --part loose linked number support time

SDULEARN_DATA names a folder with multi/NAME.svm.bz2. Writes the table of each part into docs/evidence/learners.md.

- loose: random questions about the training points, 400 and 2,000; against logistic regression on 0.3 times as many
  labels and PCK-means on the same answers. Models and clusters are named by the best matching on the test points.
- linked: 300 questions, each about a new point and an example of its likeliest class, the next likeliest after a
  "different"; the model asks about the points that it is least sure of. Against 300 labels.
- number: n_classes="auto" on 400 such answers, whose asker did not know the number.
- support: n_classes="auto" on 100, 300 and 1,000 random answers: classes, their interval, and what a fit with the true
  number is worth.
- time: K = 10, 2,000 questions, 64 columns.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from pages import EVIDENCE, write_section
from paper import KMeansBaseline, PCKMeans, load_multiclass
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, stack_pairs
from sdulearn.errors import ClassNumberWarning

SETS = ("wine", "vehicle", "satimage", "segment", "penbased", "digits")
N_TRAIN, N_TEST = 2500, 1000
# The asker's model is fitted again after so many answers, with this penalty.
REFIT, ALPHA = 20, 0.003


def draw(name, seed):
    """Standardised training and test points."""
    X, y = load_multiclass(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    n_test = min(N_TEST, len(X) // 3)
    test = order[:n_test]
    train = order[n_test:][:N_TRAIN]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test], rng


def random_questions(y, n, rng):
    ends = rng.integers(0, len(y), (2 * n, 2))
    ends = ends[ends[:, 0] != ends[:, 1]][:n]
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def matched_accuracy(predicted, y):
    """Accuracy under the best names: for models and clusters alike, which no answer names."""
    names, column = np.unique(predicted, return_inverse=True)
    counts = np.zeros((len(names), int(y.max())))
    np.add.at(counts, (column, y - 1), 1)
    rows, columns = linear_sum_assignment(-counts)
    return counts[rows, columns].sum() / len(y)


def labels_accuracy(X, y, X_test, y_test, n, rng):
    """Logistic regression on n labels, its penalty chosen by the same number of folds where classes allow it."""
    chosen = rng.permutation(len(X))[:n]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegressionCV(Cs=10, cv=StratifiedKFold(3), max_iter=2000).fit(X[chosen], y[chosen])
    return model.score(X_test, y_test)


def measure_loose(name, n, seed):
    X, y, X_test, y_test, rng = draw(name, seed)
    K = int(y.max())
    rows, table = stack_pairs(X, *random_questions(y, n, rng))
    model = PairLogisticRegressionCV(n_classes=K).fit(rows, table)
    pck = PCKMeans(K, random_state=0).fit(rows, table)
    plain = KMeansBaseline(K, random_state=0).fit(rows, table)
    found = [matched_accuracy(one.predict(X_test), y_test) for one in (model, pck, plain)]
    return [found[0], labels_accuracy(X, y, X_test, y_test, int(0.3 * n), rng), *found[1:]]


class Asker:
    """Questions about new points, each against the example of its likeliest class."""

    def __init__(self, X, y, rng, uncertain=1.0, refit=REFIT):
        self.X = X
        self.y = y
        self.rng = rng
        self.uncertain = uncertain
        self.refit = refit
        self.ends = []
        self.same = []
        self.groups = []
        self.new = list(rng.permutation(len(X)))
        self.P = None

    def ask(self, n):
        """The first n answers; classes are found on the way."""
        spread = KMeans(20, n_init=1, random_state=0).fit(self.X).transform(self.X)
        first = [int(i) for i in dict.fromkeys(spread.argmin(axis=0).tolist())]
        fitted = 0
        while len(self.ends) < n and self.new:
            point = first.pop(0) if first else self.next_point()
            if point in self.new:
                self.new.remove(point)
                self.place(point, n)
            if len(self.groups) > 2 and len(self.ends) >= fitted + self.refit:
                fitted = len(self.ends)
                self.fit()
        return np.array(self.ends), np.array(self.same)

    def next_point(self):
        """The point of which the model is least sure, or any."""
        if self.P is None or self.rng.random() > self.uncertain:
            return self.new[0]
        some = self.new[:400]
        top = np.sort(self.P[some], axis=1)
        return some[int(np.argmin(top[:, -1] - top[:, -2]))]

    def place(self, point, n):
        """Ask about a point until its class is found, or is a new one."""
        for group in sorted(self.groups, key=lambda group: -self.likeness(point, group)):
            if len(self.ends) >= n:
                return
            self.ends.append((group[0], point))
            self.same.append(bool(self.y[group[0]] == self.y[point]))
            if self.same[-1]:
                group.append(point)
                return
        self.groups.append([point])

    def likeness(self, point, group):
        if self.P is None:
            return -float(np.sum((self.X[point] - self.X[group].mean(axis=0)) ** 2))
        logs = np.log(np.maximum(self.P[group], 1e-12)).sum(axis=0)
        q = np.exp(logs - logs.max())
        return float(self.P[point] @ q / q.sum())

    def fit(self):
        rows, table = stack_pairs(self.X, np.array(self.ends), np.array(self.same))
        model = PairLogisticRegression(ALPHA, covariance_power=0, n_classes=len(self.groups), tol=1e-2)
        self.P = model.fit(rows, table).predict_proba(self.X)


def measure_linked(name, seed):
    X, y, X_test, y_test, rng = draw(name, seed)
    K = int(y.max())
    rows, table = stack_pairs(X, *Asker(X, y, rng).ask(300))
    model = PairLogisticRegressionCV(n_classes=K).fit(rows, table)
    return [matched_accuracy(model.predict(X_test), y_test), labels_accuracy(X, y, X_test, y_test, 300, rng)]


def measure_number(name, seed):
    X, y, _, _, rng = draw(name, seed)
    rows, table = stack_pairs(X, *Asker(X, y, rng, uncertain=0.5).ask(400))
    model = PairLogisticRegressionCV(alphas=3, covariance_power=0, n_classes="auto", cv=5).fit(rows, table)
    return len(model.classes_), int(y.max())


def measure_support(name, n, seed):
    X, y, X_test, y_test, rng = draw(name, seed)
    K = int(y.max())
    rows, table = stack_pairs(X, *random_questions(y, n, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClassNumberWarning)
        found = PairLogisticRegressionCV(n_classes="auto").fit(rows, table)
        given = PairLogisticRegressionCV(n_classes=K).fit(rows, table)
    accuracies = [matched_accuracy(model.predict(X_test), y_test) for model in (found, given)]
    n_same = int(np.sum(table[:, 0] > 0)) // 2
    return [K, *found.n_classes_interval_, len(np.unique(given.predict(rows))), *accuracies, n_same / K]


def table_of(head, lines):
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]


def seeds(arguments, text):
    return tqdm(range(arguments.seed, arguments.seed + arguments.draws), desc=text, leave=False)


def show_loose(arguments):
    lines = []
    within = above = 0
    for n in (400, 2000):
        for name in SETS:
            found = np.array([measure_loose(name, n, seed) for seed in seeds(arguments, f"{name} {n}")])
            ours, labels, pck, plain = 100 * found.mean(axis=0)
            within += ours >= labels - 3
            above += ours > pck
            lines.append(f"| {name} | {n:,} | {ours:.1f} | {labels:.1f} | {pck:.1f} | {plain:.1f} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        f"Within 3 percentage points of the labels in {within} of {2 * len(SETS)} rows; above PCK-means in {above}.",
    ]
    return table_of(["set", "answers", "model", "0.3 n labels", "PCK-means", "k-means"], lines)


def show_linked(arguments):
    lines = []
    for name in ("digits", "penbased"):
        found = 100 * np.array([measure_linked(name, seed) for seed in seeds(arguments, name)])
        ours, labels = found.mean(axis=0)
        error = (found[:, 0] - found[:, 1]).std() / np.sqrt(len(found))
        lines.append(f"| {name} | {ours:.1f} | {labels:.1f} | {ours - labels:+.1f} ± {error:.1f} |")
        print(lines[-1], flush=True)
    return table_of(["set", "300 answers", "300 labels", "difference"], lines)


def show_number(arguments):
    lines = []
    total = n_draws = 0
    for name in SETS:
        found = [measure_number(name, seed) for seed in seeds(arguments, name)]
        right = sum(number == K for number, K in found)
        total += right
        n_draws += len(found)
        others = sorted(number for number, K in found if number != K)
        lines.append(f"| {name} | {found[0][1]} | {right} of {len(found)} | {', '.join(map(str, others)) or '-'} |")
        print(lines[-1], flush=True)
    lines += ["", f"Right in {total} of {n_draws} draws."]
    return table_of(["set", "classes", "found", "otherwise"], lines)


def show_support(arguments):
    lines = []
    covered = n_draws = 0
    for name in arguments.sets:
        for n in arguments.answers:
            found = np.array([measure_support(name, n, seed) for seed in seeds(arguments, f"{name} {n}")])
            K, low, high, used, *_ = found.T
            holds = int(np.sum((low <= K) & (high >= K)))
            covered += holds
            n_draws += len(found)
            intervals = ", ".join(f"{a:.0f} to {b:.0f}" for a, b in zip(low, high, strict=True))
            auto, given = 100 * found[:, 4:6].mean(axis=0)
            lines.append(
                f"| {name}, {K[0]:.0f} | {n:,} | {found[:, 6].mean():.1f} | {intervals} | {holds} of {len(found)} | "
                f"{auto:.1f} | {used.mean():.1f} | {given:.1f} |"
            )
            print(lines[-1], flush=True)
    lines += ["", f"The interval contains the true number in {covered} of {n_draws} draws."]
    head = [
        "set, classes",
        "answers",
        '"same" answers per class',
        "estimate - upper limit",
        "interval contains K",
        "accuracy",
        "classes in use",
        "accuracy with K",
    ]
    return table_of(head, lines)


def show_time(arguments):
    X, y, _, _, rng = draw("digits", arguments.seed)
    rows, table = stack_pairs(X, *random_questions(y, 2000, rng))
    lines = []
    for model in (PairLogisticRegression(n_classes=10), PairLogisticRegressionCV(n_classes=10)):
        begin = time.process_time()
        model.fit(rows, table)
        lines.append(f"| {type(model).__name__} | {time.process_time() - begin:.1f} s |")
        print(lines[-1], flush=True)
    return table_of(["K = 10, 2,000 answers, 64 columns", "CPU time"], lines)


PARTS = {"loose": show_loose, "linked": show_linked, "number": show_number, "support": show_support, "time": show_time}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="first of the draws; development used 1000 and above")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="of the part support")
    parser.add_argument("--answers", type=int, nargs="+", default=[100, 300, 1000], help="of the part support")
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--dry", action="store_true", help="print only")
    arguments = parser.parse_args()
    for part in arguments.part:
        lines = PARTS[part](arguments)
        if not arguments.dry:
            draws = "one draw" if part == "time" else f"{arguments.draws} draws per row"
            write_section(EVIDENCE / "learners.md", part, lines, draws)


if __name__ == "__main__":
    main()
