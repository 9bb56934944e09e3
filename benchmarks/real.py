"""How right sdulearn is about real people: 9,000 answers of 300 people about pictures of birds, and simulated crowds.

    SDULEARN_DATA=folder make bench-real

reads ``real/birds_*`` in that folder and writes the tables of docs/evidence/errors.md. The model was developed on
simulated answers and on the people with an even number; the others, and all, are the report. The pictures of the sixth
group are of several species, so there are 5 species and 6 groups.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from classes import matched_accuracy
from coverage import KINDS, crowd_answers, scattered
from pages import EVIDENCE, write_section
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, stack_pairs
from sdulearn.answers import AnswerGraph, AnswerModel

N_SPECIES = 5
# Of logistic regression on true labels, the best of some for it.
LABEL_PENALTY = 0.01
# Bins of the calibration error.
N_BINS = 10


class Crowd(NamedTuple):
    X: np.ndarray  # (n_points, n_features)
    classes: np.ndarray  # (n_points,), from 0
    ends: np.ndarray  # (n_answers, 2)
    same: np.ndarray  # (n_answers,)
    who: np.ndarray  # (n_answers,), from 0

    @property
    def wrong(self):
        return self.same != (self.classes[self.ends[:, 0]] == self.classes[self.ends[:, 1]])

    def answers_of(self, kept) -> Crowd:
        """Some of the answers; their points, numbered anew."""
        points, ends = np.unique(self.ends[kept], return_inverse=True)
        who = np.unique(self.who[kept], return_inverse=True)[1]
        return Crowd(self.X[points], self.classes[points], ends.reshape(-1, 2), self.same[kept], who)


def load_birds(species: bool, people: Callable[[np.ndarray], np.ndarray]) -> Crowd:
    """Answers of some of the people, about five species or about all six groups."""
    folder = Path(os.environ["SDULEARN_DATA"]) / "real"
    answers = pd.read_csv(folder / "birds_answers.csv")
    truth = pd.read_csv(folder / "birds_truth.csv").set_index("id")["label"]
    number = answers["annotator"].str[1:].astype(int).to_numpy()
    ends = answers[["id_a", "id_b"]].to_numpy()
    classes = truth.sort_index().to_numpy()
    X = StandardScaler().fit_transform(np.load(folder / "birds_X.npy"))
    whole = Crowd(X, classes, ends, (answers["label"] == "similar").to_numpy(), number)
    kept = people(number)
    if species:
        kept &= (classes[ends] < N_SPECIES).all(axis=1)
    return whole.answers_of(kept)


def fitted(crowd: Crowd, n_classes: int, **options):
    """The model, its rows and what is known of them, and processor seconds of the fit."""
    rows, known = stack_pairs(crowd.X, crowd.ends, crowd.same, annotators=crowd.who + 1, unlabeled=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = PairLogisticRegressionCV(n_classes=n_classes, **options).fit(rows, known)
    return model, rows, known, time.process_time() - began


def named(probabilities, classes):
    """Whether the likeliest class of each point is right, under the best names."""
    found = probabilities.argmax(axis=1)
    size = max(probabilities.shape[1], classes.max() + 1)
    counts = np.zeros((size, size))
    np.add.at(counts, (found, classes), 1)
    return linear_sum_assignment(-counts)[1][found] == classes


def calibration_error(probabilities, right):
    """Mean distance between probability and share of right ones, over bins of the probability."""
    sure = probabilities.max(axis=1)
    place = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
    return sum(abs(np.sum(right[place == k]) - np.sum(sure[place == k])) for k in range(N_BINS)) / len(sure)


def calibration_by_chance(probabilities, n_draws=1000):
    """The same of a perfect model that gives these probabilities, on average."""
    rng = np.random.default_rng(0)
    sure = probabilities.max(axis=1)
    return np.mean([calibration_error(probabilities, rng.random(len(sure)) < sure) for _ in range(n_draws)])


def by_point(values, known):
    return values[np.unique(known[:, 1], return_index=True)[1]]


def people_found(crowd: Crowd, model: AnswerModel):
    """Correlation of estimated and true error of the people, and the area under the curve for the worst tenth."""
    true = np.bincount(crowd.who, crowd.wrong) / np.bincount(crowd.who)
    found = np.array([rate.value for rate in model.by_annotator.values()])
    worst = true >= np.quantile(true, 0.9)
    return np.corrcoef(true, found)[0, 1], roc_auc_score(worst, found)


def new_points(crowd: Crowd, n_classes: int, n_draws: int):
    """Accuracy on the fifth of the points that no answer of the fit is about: by answers, and by labels of others."""
    found = []
    for seed in range(n_draws):
        shown = np.random.default_rng(10_000 + seed).random(len(crowd.X)) < 0.8
        part = crowd.answers_of(shown[crowd.ends].all(axis=1))
        model = fitted(part, n_classes)[0]
        labels = LogisticRegression(C=LABEL_PENALTY, max_iter=500).fit(crowd.X[shown], crowd.classes[shown])
        test = ~shown
        by_answers = named(model.predict_proba(crowd.X[test]), crowd.classes[test]).mean()
        found.append((by_answers, np.mean(labels.predict(crowd.X[test]) == crowd.classes[test])))
    return np.array(found)


def interval(rate):
    return f"{rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})"


def birds_rows(n_draws: int) -> list[str]:
    """The fit of all answers, and of those of the people with an odd number."""
    lines = [
        "| people | classes | answers | wrong | estimated | asked items right | mean probability | calibration error "
        "| by chance | people: correlation | worst tenth (AUC) | new items | by labels | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups = {
        "all": lambda number: number >= 0,
        "odd": lambda number: number % 2 == 1,
        "even (development)": lambda number: number % 2 == 0,
    }
    for name, people in groups.items():
        for n_classes in (N_SPECIES, N_SPECIES + 1):
            crowd = load_birds(n_classes == N_SPECIES, people)
            model, rows, known, seconds = fitted(crowd, n_classes)
            probabilities = by_point(model.posterior(rows, known), known)
            right = named(probabilities, crowd.classes)
            correlation, area = people_found(crowd, model.answer_model_)
            fresh = new_points(crowd, n_classes, n_draws)
            error = fresh.std(axis=0, ddof=1) / np.sqrt(n_draws)
            lines.append(
                f"| {name} | {n_classes} | {len(crowd.same):,} | {crowd.wrong.mean():.3f} "
                f"| {interval(model.answer_model_.error_rate)} | {right.mean():.1%} "
                f"| {probabilities.max(axis=1).mean():.1%} | {calibration_error(probabilities, right):.3f} "
                f"| {calibration_by_chance(probabilities):.3f} | {correlation:.2f} | {area:.2f} "
                f"| {fresh[:, 0].mean():.1%} ± {error[0]:.1%} "
                f"| {fresh[:, 1].mean():.1%} | {seconds:.1f} |"
            )
            print(lines[-1], flush=True)
    return lines


def subset_rows(n_draws: int) -> list[str]:
    """Does the interval of the error hold the truth, for fewer people?"""
    lines = ["| people | draws | covers | mean estimate less truth | mean width |", "|---|---|---|---|---|"]
    for n_people in (30, 100, 300):
        found = []
        for seed in range(n_draws):
            rng = np.random.default_rng(10_000 + seed)
            drawn = rng.choice(300, n_people, replace=n_people == 300)
            crowd = load_birds(True, lambda number, drawn=drawn: np.isin(number, drawn))
            rate = fitted(crowd, N_SPECIES)[0].answer_model_.error_rate
            true = crowd.wrong.mean()
            found.append((rate.low <= true <= rate.high, rate.value - true, rate.high - rate.low))
        covers, bias, width = np.array(found).T
        drawn = f"{n_people}, drawn with replacement" if n_people == 300 else str(n_people)
        lines.append(f"| {drawn} | {n_draws} | {int(covers.sum())} | {bias.mean():+.3f} | {width.mean():.3f} |")
        print(lines[-1], flush=True)
    return lines


def simulated_crowd(seed: int, kind: str, n_classes: int, n_points: int, n_answers: int):
    """Digits, the first of them asked about; with the rows of the others."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.flatnonzero(y < n_classes))
    X = StandardScaler().fit_transform(X[chosen])
    classes = y[chosen]
    ends, who = scattered(rng, 40, n_answers, n_points)
    if kind in KINDS:
        same = crowd_answers(rng, classes, ends, who, kind)
    else:
        rates = np.full(40, 0.0 if kind == "none" else 0.15)
        if kind == "a rate for each person":
            rates = rng.beta(1, 5, 40)
        same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(n_answers) < rates[who])
    return Crowd(X[:n_points], classes[:n_points], ends, same, who), X[n_points:], classes[n_points:]


def simulated_rows(n_draws: int) -> list[str]:
    """Each kind of error on digits: accuracy beside that of models with one known rate, and the error."""
    lines = [
        "| answers of 40 people | errors | accuracy: default | one rate, known | difference | wrong "
        "| mean error (estimate - truth) | interval contains it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    kinds = ("none", "one rate", "a rate for each person", *KINDS)
    for n_classes, n_points, n_answers in ((5, 100, 800), (10, 200, 2000)):
        for kind in kinds:
            found = []
            for seed in range(10_000, 10_000 + n_draws):
                crowd, X, classes = simulated_crowd(seed, kind, n_classes, n_points, n_answers)
                true = crowd.wrong.mean()
                model = fitted(crowd, n_classes)[0]
                rate = model.answer_model_.error_rate
                scores = [matched_accuracy(model.predict(X), classes + 1), np.nan]
                if kind in kinds[:2]:
                    # Sums round cycles make it slow.
                    plain = fitted(crowd, n_classes, error_rate=float(true))[0]
                    scores[1] = matched_accuracy(plain.predict(X), classes + 1)
                found.append((*scores, true, rate.value - true, rate.low <= true <= rate.high))
            rich, plain, true, bias, covers = np.array(found, dtype=float).T
            error = (rich - plain).std(ddof=1) / np.sqrt(n_draws)
            compared = f"{plain.mean():.1%} | {100 * (rich - plain).mean():+.1f} ± {100 * error:.1f}"
            lines.append(
                f"| {n_answers:,} about {n_points} digits of {n_classes} | {kind} | {rich.mean():.1%} "
                f"| {compared if kind in kinds[:2] else ' | '} | {true.mean():.1%} | {100 * bias.mean():+.1f} "
                f"| {int(covers.sum())} of {n_draws} |"
            )
            print(lines[-1], flush=True)
    return lines


def wrong_number() -> list[str]:
    """What two classes say to five species."""
    crowd = load_birds(True, lambda number: number >= 0)
    graph = AnswerGraph.from_answers(crowd.ends, crowd.same, annotators=crowd.who + 1)
    try:
        AnswerModel.estimate(graph)
    except ValueError as error:
        return [f"> {error}"]
    return ["> nothing"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--parts", nargs="+", default=["birds", "subsets", "simulated", "number"])
    parser.add_argument("--quick", action="store_true", help="two draws, nothing written")
    arguments = parser.parse_args()
    n_draws = 2 if arguments.quick else arguments.draws
    parts = {
        "birds": lambda: birds_rows(n_draws),
        "subsets": lambda: subset_rows(n_draws),
        "simulated": lambda: simulated_rows(n_draws),
        "number": wrong_number,
    }
    for name in arguments.parts:
        lines = parts[name]()
        if not arguments.quick:
            write_section(EVIDENCE / "errors.md", name, lines, f"{n_draws} draws")


if __name__ == "__main__":
    main()
