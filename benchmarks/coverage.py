"""Do the 95% intervals of priors and accuracies hold the true number in 95% of the draws?

    python benchmarks/coverage.py                   # 250 draws a cell, hours; writes docs/evidence/intervals.md
    python benchmarks/coverage.py --cells trees     # the cells with this in their names; the others keep their numbers
    python benchmarks/coverage.py --quick           # ten draws a cell, nothing written

A cell is a name and a function of a seed that draws data and returns the true number, its estimate and the two ends of
the interval. All data are simulated. Seeds from 10,000 are for the page; development used lower ones.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from pages import EVIDENCE, folded, write_section
from sklearn.datasets import load_breast_cancer, make_circles, make_classification, make_moons

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, estimate_prior, fit_table, stack_pairs
from sdulearn.cli.main import main as command
from sdulearn.datasets import make_waveform
from sdulearn.metrics import cross_val_accuracy, pair_accuracy

RESULTS = Path(__file__).with_suffix(".json")
N_ROWS = 4000
# Rows of a table; the others tell the truth.
N_TABLE = 600

Draw = tuple[float, float, float, float]


def loose(rng, n):
    """Every point in one answer."""
    return np.arange(2 * n).reshape(-1, 2)


def repeated(rng, n, times):
    """Every question several times."""
    return np.repeat(loose(rng, n), times, axis=0)


def partly_repeated(rng, n, n_again, times):
    """Every point in one question; some of the questions several times."""
    return np.concatenate([loose(rng, n), np.tile(loose(rng, n_again), (times - 1, 1))])


def dense(rng, n, n_points):
    """Random pairs of few points."""
    ends = rng.integers(0, n_points, (4 * n, 2))
    return ends[ends[:, 0] != ends[:, 1]][:n]


def stars(rng, n_hubs, size):
    """Answers that each compare a new point with one of some hubs."""
    hubs = np.repeat(np.arange(n_hubs), size)
    return np.column_stack([hubs, n_hubs + np.arange(n_hubs * size)])


DESIGNS = {
    "60 loose pairs": partial(loose, n=60),
    "star of 200": partial(stars, n_hubs=1, size=200),
    "2 hubs of 20": partial(stars, n_hubs=2, size=20),
    "5 hubs of 20": partial(stars, n_hubs=5, size=20),
    "25 questions asked 3 times": partial(repeated, n=25, times=3),
    "60 pairs, 10 asked 3 times": partial(partly_repeated, n=60, n_again=10, times=3),
    "100 answers, 25 items": partial(dense, n=100, n_points=25),
    "200 answers, 50 items": partial(dense, n=200, n_points=50),
}


def answered(classes, ends, wrong, rng):
    """Answers, some of them wrong."""
    same = classes[ends[:, 0]] == classes[ends[:, 1]]
    return same ^ (rng.random(len(ends)) < wrong)


def prior_of_answers(seed: int, design: str, prior: float, wrong: float = 0.0) -> Draw:
    """``estimate_prior``: the share of the larger class."""
    rng = np.random.default_rng(seed)
    ends = DESIGNS[design](rng)
    classes = np.where(rng.random(ends.max() + 1) < prior, 1, -1)
    _, known = stack_pairs(classes[:, None], ends, answered(classes, ends, wrong, rng))
    found = estimate_prior(y=known)
    return prior, found.value, found.low, found.high


def accuracy_of_decisions(seed: int, design: str, accuracy: float, wrong: float = 0.0) -> Draw:
    """``pair_accuracy``: decisions of which this share is right."""
    rng = np.random.default_rng(seed)
    ends = DESIGNS[design](rng)
    classes = np.where(rng.random(ends.max() + 1) < 0.6, 1, -1)
    decisions = np.where(rng.random(len(classes)) < accuracy, classes, -classes)
    rows, known = stack_pairs(decisions[:, None], ends, answered(classes, ends, wrong, rng))
    found = pair_accuracy(rows[:, 0], known)
    return accuracy, found.value, found.low, found.high


def waveform(rng):
    return make_waveform(N_ROWS, random_state=rng.integers(2**31))


def circles(rng):
    """Two rings, and two columns of noise."""
    X, y = make_circles(N_ROWS, noise=0.15, factor=0.5, random_state=rng.integers(2**31))
    return np.hstack([X, rng.normal(size=(N_ROWS, 2))]), y


def moons(rng):
    """Two half-moons, and four columns of noise."""
    X, y = make_moons(N_ROWS, noise=0.2, random_state=rng.integers(2**31))
    return np.hstack([X, rng.normal(size=(N_ROWS, 4))]), y


def clusters(rng):
    """Three clusters a class in five columns, and five columns of noise; always the same clusters."""
    X, y = make_classification(
        12_000, 10, n_informative=5, n_redundant=0, n_clusters_per_class=3, class_sep=1.5, random_state=1
    )
    drawn = rng.choice(len(y), N_ROWS, replace=False)
    return X[drawn], y[drawn]


def drawn_answers(population, ends_of, wrong, seed):
    """Rows and classes of a population, and answers about the first rows."""
    rng = np.random.default_rng(seed)
    X, y = population(rng)
    classes = np.where(y > 0, 1, -1)
    ends = ends_of(rng)
    return X, classes, ends, answered(classes, ends, wrong, rng)


def better_naming(right):
    return max(np.mean(right), 1 - np.mean(right))


def accuracy_of_folds(seed: int, ends_of) -> Draw:
    """``cross_val_accuracy``."""
    X, classes, ends, same = drawn_answers(waveform, ends_of, 0.0, seed)
    rows, known = stack_pairs(X[:N_TABLE], ends, same, unlabeled="all")
    model = PairLogisticRegression().fit(rows, known)
    found = cross_val_accuracy(PairLogisticRegression(), rows, known)
    return better_naming(model.predict(X[N_TABLE:]) == classes[N_TABLE:]), found.value, found.low, found.high


def accuracy_of_table(seed: int, population, ends_of, model: str, wrong: float = 0.0) -> Draw:
    """``fit_table``: the accuracy in its report."""
    X, classes, ends, same = drawn_answers(population, ends_of, wrong, seed)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(id=np.arange(len(X)))
    answers = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": same.astype(int)})
    fitted = fit_table(frame[: max(N_TABLE, ends.max() + 1)], answers, model=model, id_column="id")
    rest = slice(max(N_TABLE, ends.max() + 1), None)
    right = fitted.predict(frame[rest]).astype(int) == classes[rest]
    found = fitted.report.accuracy
    return better_naming(right), found.value, found.low, found.high


def numbers_of_a_log(seed: int, n_answers: int, n_rows: int) -> list[Draw]:
    """``fit_table`` of a log of ``sdulearn ask``: accuracy and prior, where most questions were chosen."""
    X, y = waveform(np.random.default_rng(seed))
    frame = pd.DataFrame(X).rename(columns=lambda j: f"x{j}").assign(id=np.arange(len(X)))
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        table, log = f"{folder}/table.csv", f"{folder}/log.jsonl"
        frame[:n_rows].assign(kind=y[:n_rows]).to_csv(table, index=False)
        questions = ["--oracle", "kind", "--questions", str(n_answers), "--seed", str(seed)]
        command(["ask", table, "-o", log, "--id-column", "id", "--drop", "kind", *questions])
        fitted = fit_table(frame[:n_rows], log, model="linear", id_column="id")
    right = better_naming(fitted.predict(frame[n_rows:]).astype(int) == np.where(y[n_rows:] > 0, 1, -1))
    accuracy, prior = fitted.report.accuracy, fitted.report.prior
    larger = better_naming(y > 0)
    return [
        (right, accuracy.value, accuracy.low, accuracy.high),
        (larger, max(prior.value, 1 - prior.value), *sorted((prior.low, prior.high))),
    ]


def several(rng, n_people, n_common, n_own):
    """Questions that all people answer, and some that each answers alone: the two ends, and who answers."""
    common = np.tile(loose(rng, n_common), (n_people, 1))
    own = 2 * n_common + loose(rng, n_people * n_own)
    who = np.concatenate([np.repeat(np.arange(n_people), n_common), np.arange(n_people * n_own) % n_people])
    return np.concatenate([common, own]), who


def scattered(rng, n_people, n, n_points):
    """Random pairs of few points, each answered by somebody."""
    return dense(rng, n, n_points), rng.integers(0, n_people, n)


def asked_again(rng, n, n_again, times):
    """Loose pairs of one person, some of them several times."""
    ends = partly_repeated(rng, n, n_again, times)
    return ends, np.zeros(len(ends), dtype=int)


def rates_of_annotators(seed: int, people, rates: tuple[float, ...]) -> list[Draw]:
    """``answer_model_``: how often the first of the annotators and the last are wrong."""
    rng = np.random.default_rng(seed)
    X, y = waveform(rng)
    ends, who = people(rng)
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(len(ends)) < np.array(rates)[who])
    n_rows = max(N_TABLE, ends.max() + 1)
    rows, known = stack_pairs((X[:n_rows] - X.mean(0)) / X.std(0), ends, same, annotators=who + 1)
    found = PairLogisticRegression().fit(rows, known).answer_model_.by_annotator
    return [(rates[k], found[k + 1].value, found[k + 1].low, found[k + 1].high) for k in first_and_last(rates)]


def first_and_last(rates) -> list[int]:
    """The most careful of the annotators and the most careless."""
    return [0] if rates[0] == rates[-1] else [0, len(rates) - 1]


def accuracy_after_a_slip(seed: int, n_repeats: int) -> Draw:
    """``fit_table``: 100 loose answers about breast cancer; some asked again, the first with the other answer."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    ends = rng.permutation(len(X))[:200].reshape(-1, 2)
    same = y[ends[:, 0]] == y[ends[:, 1]]
    rest = np.setdiff1d(np.arange(len(X)), ends)
    again = same[:n_repeats] ^ (np.arange(n_repeats) == 0)
    frame = pd.DataFrame(X).rename(columns=str).assign(id=np.arange(len(X)))
    ends = np.concatenate([ends, ends[:n_repeats]])
    answers = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": np.append(same, again).astype(int)})
    fitted = fit_table(frame, answers, model="linear", id_column="id")
    right = better_naming(fitted.predict(frame.iloc[rest]).astype(int) == 2 * y[rest] - 1)
    found = fitted.report.accuracy
    return right, found.value, found.low, found.high


KINDS = ("errors by class pair", "careless people", "hard questions")


def crowd_answers(rng, classes, ends, who, kind: str):
    """Answers of a crowd, a sixth to a fourth of them wrong in one of three ways, beside a rate of 10%."""
    agree = classes[ends[:, 0]] == classes[ends[:, 1]]
    wrong = np.full(len(ends), 0.1)
    if kind == "errors by class pair":
        names, place = np.unique(classes, return_inverse=True)
        table = np.triu(rng.beta(1, 5, (len(names), len(names))))
        table = table + np.triu(table, 1).T
        wrong = table[place[ends[:, 0]], place[ends[:, 1]]]
    if kind == "hard questions":
        _, question = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
        wrong = 1 / (1 + np.exp(2.2 - 1.5 * rng.normal(size=question.max() + 1)[question.ravel()]))
    same = agree ^ (rng.random(len(ends)) < wrong)
    if kind == "careless people":
        careless = rng.beta(0.4, 1.6, who.max() + 1)
        guesses = rng.random(len(ends)) < rng.beta(2, 2, who.max() + 1)[who]
        same = np.where(rng.random(len(ends)) < careless[who], guesses, same)
    return same


def numbers_of_a_crowd(seed: int, kind: str) -> list[Draw]:
    """Two classes: the share of wrong answers, the prior and the accuracy that ``fit_table`` reports."""
    rng = np.random.default_rng(seed)
    X, y = waveform(rng)
    classes = np.where(y > 0, 1, -1)
    ends, who = scattered(rng, 20, 400, 120)
    same = crowd_answers(rng, classes, ends, who, kind)
    frame = pd.DataFrame(X).rename(columns=lambda j: f"x{j}").assign(id=np.arange(len(X)))
    answers = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": same.astype(int), "annotator": who})
    fitted = fit_table(frame[:N_TABLE], answers, model="linear", id_column="id")
    right = better_naming(fitted.predict(frame[N_TABLE:]).astype(int) == classes[N_TABLE:])
    wrong = float(np.mean(same != (classes[ends[:, 0]] == classes[ends[:, 1]])))
    error = fitted.estimator.answer_model_.error_rate
    accuracy, prior = fitted.report.accuracy, fitted.report.prior
    return [
        (wrong, error.value, error.low, error.high),
        (better_naming(y > 0), max(prior.value, 1 - prior.value), *sorted((prior.low, prior.high))),
        (right, accuracy.value, accuracy.low, accuracy.high),
    ]


def numbers_of_many_classes(seed: int, kind: str) -> list[Draw]:
    """Four classes in twenty columns: the share of wrong answers."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 4, 150)
    X = 1.2 * np.random.default_rng(1).normal(size=(4, 20))[classes] + rng.normal(size=(150, 20)) * 2
    ends, who = scattered(rng, 40, 1200, 150)
    same = crowd_answers(rng, classes, ends, who, kind)
    rows, known = stack_pairs(X, ends, same, annotators=who + 1, unlabeled="all")
    model = PairLogisticRegressionCV(n_classes=4).fit(rows, known)
    error = model.answer_model_.error_rate
    wrong = float(np.mean(same != (classes[ends[:, 0]] == classes[ends[:, 1]])))
    return [(wrong, error.value, error.low, error.high)]


# A function that gives several draws measures as many cells: their names are joined by " + ".
CELLS: dict[str, Callable[[int], Draw | list[Draw]]] = {}
for _design, _prior in {
    "60 loose pairs": 0.7,
    "star of 200": 0.7,
    "2 hubs of 20": 0.95,
    "5 hubs of 20": 0.95,
    "25 questions asked 3 times": 0.95,
    "100 answers, 25 items": 0.9,
    "200 answers, 50 items": 0.95,
}.items():
    CELLS[f"prior: {_design}"] = partial(prior_of_answers, design=_design, prior=_prior)
    CELLS[f"accuracy of decisions: {_design}"] = partial(accuracy_of_decisions, design=_design, accuracy=0.92)
for _design in (
    "25 questions asked 3 times",
    "60 pairs, 10 asked 3 times",
    "100 answers, 25 items",
    "200 answers, 50 items",
):
    for _wrong in (0.05, 0.15):
        _name = f"{_design}, {100 * _wrong:g}% wrong"
        CELLS[f"prior: {_name}"] = partial(prior_of_answers, design=_design, prior=0.9, wrong=_wrong)
        CELLS[f"accuracy of decisions: {_name}"] = partial(
            accuracy_of_decisions, design=_design, accuracy=0.92, wrong=_wrong
        )
for _design in ("60 loose pairs", "star of 200", "100 answers, 25 items"):
    CELLS[f"linear model by folds: {_design}"] = partial(accuracy_of_folds, ends_of=DESIGNS[_design])
CELLS["trees of a table: clusters, 200 loose pairs"] = partial(
    accuracy_of_table, population=clusters, ends_of=partial(loose, n=200), model="boosted"
)
CELLS["trees of a table: circles, 150 loose pairs"] = partial(
    accuracy_of_table, population=circles, ends_of=partial(loose, n=150), model="boosted"
)
CELLS["trees of a table: half-moons, 100 loose pairs"] = partial(
    accuracy_of_table, population=moons, ends_of=partial(loose, n=100), model="boosted"
)
CELLS["trees of a table: half-moons, star of 100"] = partial(
    accuracy_of_table, population=moons, ends_of=partial(stars, n_hubs=1, size=100), model="boosted"
)
for _name, (_people, _rates) in {
    "150 loose pairs each of 2 people": (partial(several, n_people=2, n_common=0, n_own=150), (0.05, 0.2)),
    "80 loose pairs each of 3 people": (partial(several, n_people=3, n_common=0, n_own=80), (0.1, 0.1, 0.1)),
    "40 questions of 2 people, 80 each alone": (partial(several, n_people=2, n_common=40, n_own=80), (0.05, 0.2)),
    "50 questions of 5 people": (partial(several, n_people=5, n_common=50, n_own=0), (0.05, 0.05, 0.1, 0.2, 0.5)),
    "25 questions asked 3 times": (partial(asked_again, n=25, n_again=25, times=3), (0.1,)),
    "100 loose pairs, 10 asked again": (partial(asked_again, n=100, n_again=10, times=2), (0.1,)),
    "200 answers of one person about 50 items": (partial(scattered, n_people=1, n=200, n_points=50), (0.05,)),
    "120 answers of 4 people about 60 items": (
        partial(scattered, n_people=4, n=120, n_points=60),
        (0.02, 0.1, 0.1, 0.3),
    ),
    "400 answers of 12 people about 120 items": (
        partial(scattered, n_people=12, n=400, n_points=120),
        (0.05,) * 6 + (0.1,) * 3 + (0.3,) * 3,
    ),
}.items():
    _names = [f"error rate of {100 * _rates[k]:g}%: {_name}" for k in first_and_last(_rates)]
    CELLS[" + ".join(_names)] = partial(rates_of_annotators, people=_people, rates=_rates)
for _answers, _rows in ((50, 2000), (150, 2000), (150, 300)):
    _name = f"log of {_answers} questions about {_rows} rows"
    CELLS[f"accuracy: {_name} + prior: {_name}"] = partial(numbers_of_a_log, n_answers=_answers, n_rows=_rows)
for _kind in KINDS:
    _cells = (
        f"{number}: 400 answers of 20 people, {_kind}" for number in ("crowd error", "crowd prior", "crowd accuracy")
    )
    CELLS[" + ".join(_cells)] = partial(numbers_of_a_crowd, kind=_kind)
    CELLS[f"crowd error: four classes, 1,200 answers of 40 people, {_kind}"] = partial(
        numbers_of_many_classes, kind=_kind
    )
for _repeats in (0, 1, 2, 3, 5, 10):
    CELLS[f"one slip: 100 answers, {_repeats} asked again"] = partial(accuracy_after_a_slip, n_repeats=_repeats)


def measure(name: str, seed: int) -> list[Draw]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CELLS[name](seed)
    return found if isinstance(found, list) else [found]


def summary(draws: list[Draw]) -> dict[str, float]:
    true, value, low, high = np.array(draws).T
    return {
        "draws": len(draws),
        "true": float(true.mean()),
        "bias": float(np.mean(value - true)),
        "covers": float(np.mean((low <= true) & (true <= high))),
        "above": float(np.mean(low > true)),
        "below": float(np.mean(high < true)),
        "width": float(np.mean(high - low)),
    }


def table_of(results: dict[str, dict[str, float]]) -> list[str]:
    lines = [
        "| cell | draws | true value | mean error (estimate - truth) | interval contains it | interval above it | "
        "interval below it | mean width |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in (cell for names in CELLS for cell in names.split(" + ")):
        if (one := results.get(name)) is not None:
            shares = " | ".join(f"{100 * one[key]:.1f}%" for key in ("covers", "above", "below"))
            true, bias, width = (f"{100 * one[key]:.1f}" for key in ("true", "bias", "width"))
            lines.append(f"| {name} | {one['draws']} | {true} | {bias} | {shares} | {width} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--seed", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", default="", help="only cells with this in their names")
    parser.add_argument("--quick", action="store_true", help="ten draws a cell of development, nothing written")
    arguments = parser.parse_args()
    first = 0 if arguments.quick else arguments.seed
    seeds = range(first, first + (10 if arguments.quick else arguments.draws))
    for name in CELLS:
        if arguments.cells not in name:
            continue
        began = time.perf_counter()
        draws = Parallel(n_jobs=arguments.jobs)(delayed(measure)(name, seed) for seed in seeds)
        found = dict(zip(name.split(" + "), map(summary, zip(*draws, strict=True)), strict=True))
        print("\n".join(table_of(found)[2:]), f"{time.perf_counter() - began:.0f} s", flush=True)
        if not arguments.quick:
            # After every cell, as the whole takes hours; another run may have measured other cells meanwhile.
            results = {**(json.loads(RESULTS.read_text()) if RESULTS.exists() else {}), **found}
            kept = {cell: results[cell] for names in CELLS for cell in names.split(" + ") if cell in results}
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
            draws = f"{arguments.draws} draws per cell"
            write_section(EVIDENCE / "intervals.md", "coverage", folded("All cells", table_of(kept)), draws)


if __name__ == "__main__":
    main()
