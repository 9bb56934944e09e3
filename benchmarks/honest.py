"""Are the accuracy and the prior that answers give the true ones, also where answers share points?

    python benchmarks/honest.py --draws 40 --jobs 2

Ten sets, priors 0.5 and 0.7; 200 answers about 400 points (loose pairs), 200, 100, 60 and 40 points, and a star;
60 loose pairs; and the same features in random order, which say nothing of the classes. A model of
``PairLogisticRegressionCV`` is judged as ``fit_table`` does it; the truth is its accuracy on the rows that were not
drawn. SDULEARN_DATA names a folder with the benchmark sets (NAME.svm.bz2). Writes the section "honest"
of docs/evidence/intervals.md.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from pages import EVIDENCE, folded, write_section
from paper import load_benchmark
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegression, PairLogisticRegressionCV, estimate_prior, stack_pairs
from sdulearn.metrics import folds_over_points, held_out, held_out_accuracy

SETS = ("adult", "banana", "codrna", "ijcnn1", "magic", "phishing", "phoneme", "spambase", "w8a", "waveform")
DESIGNS = ("400", "200", "100", "60", "40", "star", "60 pairs", "no signal")
PRIORS = (0.5, 0.7)
N_ROWS = 1200
N_ANSWERS = 200


@dataclass(frozen=True)
class Draw:
    """What one model is, and what the answers say of it."""

    true: float
    value: float
    low: float
    high: float
    majority: float
    prior_covered: bool
    failures: int


def draw_rows(X, y, prior, rng):
    """Row numbers of a table with this share of class +1, and of all others."""
    n_positive = round(prior * N_ROWS)
    positive = rng.choice(np.flatnonzero(y == 1), n_positive, replace=False)
    negative = rng.choice(np.flatnonzero(y == -1), N_ROWS - n_positive, replace=False)
    chosen = rng.permutation(np.concatenate([positive, negative]))
    return chosen, np.setdiff1d(np.arange(len(y)), chosen)


def draw_ends(design, rng):
    if design == "star":
        return np.column_stack([np.zeros(N_ANSWERS, dtype=int), np.arange(1, N_ANSWERS + 1)])
    if design == "60 pairs":
        return np.arange(120).reshape(-1, 2)
    if design in ("400", "no signal"):
        return np.arange(2 * N_ANSWERS).reshape(-1, 2)
    ends = rng.integers(0, int(design), (4 * N_ANSWERS, 2))
    return ends[ends[:, 0] != ends[:, 1]][:N_ANSWERS]


def true_accuracy(model, X, y, prior):
    """Of the better naming, with the classes in the ratio of the prior."""
    right = model.predict(X) == y
    value = prior * right[y == 1].mean() + (1 - prior) * right[y == -1].mean()
    return max(value, 1 - value)


def measure(X, y, design, prior, seed):
    """One model, with what the answers say of it."""
    # Not the name's own hash, which differs from run to run.
    rng = np.random.default_rng([seed, DESIGNS.index(design), round(10 * prior)])
    chosen, rest = draw_rows(X, y, prior, rng)
    rest = rng.choice(rest, min(len(rest), 4000), replace=False)
    scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(X[chosen])
    table, test = scaler.transform(X[chosen]), scaler.transform(X[rest])
    if design == "no signal":
        table = table[rng.permutation(N_ROWS)]
        test = test[rng.permutation(len(rest))]
    truth = y[chosen]
    ends = draw_ends(design, rng)
    rows, known = stack_pairs(table, ends, truth[ends[:, 0]] == truth[ends[:, 1]], unlabeled="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PairLogisticRegressionCV().fit(rows, known)
        settings = PairLogisticRegression(
            model.alpha_, covariance_power=model.covariance_power_, error_rate=model.answer_model_.rates
        )
        folds = folds_over_points(10, known)
        decision = held_out(settings, rows, known, model.decision_function(rows), cv=folds)
        found = held_out_accuracy(decision, known, n_splits=folds.n_splits)
        failures = count_failures(rows, known) if design == "60 pairs" else 0
    estimate = estimate_prior(y=known)
    larger = max(prior, 1 - prior)
    return Draw(
        true=true_accuracy(model, test, y[rest], prior),
        value=found.value,
        low=found.low,
        high=found.high,
        majority=found.majority,
        prior_covered=estimate.low <= larger <= estimate.high,
        failures=failures,
    )


def count_failures(rows, known):
    """Whether a grid search over folds raises, or a score of it is not a number between 0 and 1."""
    try:
        search = GridSearchCV(PairLogisticRegression(), {"alpha": [0.01, 0.1]}, cv=PairKFold(5, random_state=0))
        scores = search.fit(rows, known).cv_results_["mean_test_score"]
        last = search.best_estimator_.score(rows, known)
    except ValueError:
        return 1
    return int(not (np.isfinite(scores).all() and ((scores >= 0) & (scores <= 1)).all() and 0 <= last <= 1))


def table_of(cells, sets, prior):
    """A row a set, a column a design: true / estimate / coverage."""
    designs = [design for design in DESIGNS if design != "no signal" and (sets[0], design, prior) in cells]
    names = [f"{d} items" if d.isdigit() else d for d in designs]
    lines = [f"| prior {prior:g} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for name in sets:
        shown = []
        for design in designs:
            draws = cells[name, design, prior]
            covered = np.mean([draw.low <= draw.true <= draw.high for draw in draws])
            true = np.mean([draw.true for draw in draws])
            value = np.mean([draw.value for draw in draws])
            shown.append(f"{100 * true:.1f} / {100 * value:.1f} / {100 * covered:.0f}")
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def summary(cells):
    with_signal = {key: draws for key, draws in cells.items() if key[1] != "no signal"}
    coverage = {k: np.mean([d.low <= d.true <= d.high for d in draws]) for k, draws in with_signal.items()}
    bias = {k: np.mean([d.value - d.true for d in draws]) for k, draws in with_signal.items()}
    of_prior = {k: np.mean([d.prior_covered for d in draws]) for k, draws in with_signal.items()}
    worst = min(coverage, key=coverage.get)
    worst_bias = max(bias, key=lambda key: abs(bias[key]))
    worst_prior = min(of_prior, key=of_prior.get)
    failures = sum(d.failures for (_, design, _), draws in cells.items() if design == "60 pairs" for d in draws)
    lines = [
        "| figure | measured |",
        "|---|---|",
        f"| coverage of the 95% accuracy interval, mean over cells | {np.mean(list(coverage.values())):.1%} |",
        f"| the same, worst cell | {coverage[worst]:.0%} ({worst[0]}, {worst[1]}, prior {worst[2]:g}) |",
        f"| bias of the accuracy estimate, mean over cells | {100 * np.mean(list(bias.values())):+.1f} "
        "percentage points |",
        f"| the same, worst cell | {100 * bias[worst_bias]:+.1f} percentage points ({worst_bias[0]}, {worst_bias[1]}, "
        f"prior {worst_bias[2]:g}) |",
        "| cells with a bias of more than 2 percentage points | "
        f"{sum(abs(b) > 0.02 for b in bias.values())} of {len(bias)} |",
        f"| coverage of the 95% prior interval, worst cell | {of_prior[worst_prior]:.0%} ({worst_prior[0]}, "
        f"{worst_prior[1]}, prior {worst_prior[2]:g}) |",
        f"| `score` or `GridSearchCV(cv=PairKFold())` raising, or not between 0 and 1, 60 pairs | {failures} |",
    ]
    for prior in PRIORS:
        silent = [d for (_, design, p), draws in cells.items() if design == "no signal" and p == prior for d in draws]
        alarms = sum(draw.low > draw.majority for draw in silent)
        if silent:
            lines.append(
                f"| features without signal, prior {prior:g}: interval above the majority baseline | "
                f"{alarms / len(silent):.1%} of {len(silent)} |"
            )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--designs", nargs="*", default=DESIGNS)
    arguments = parser.parse_args()
    cells = {}
    for name in arguments.sets:
        began = time.perf_counter()
        X, y = load_benchmark(name)
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        seeds = range(arguments.seed, arguments.seed + arguments.draws)
        jobs = list(itertools.product(arguments.designs, PRIORS, seeds))
        found = Parallel(n_jobs=arguments.jobs)(delayed(measure)(X, y, *job) for job in jobs)
        for (design, prior, _), draw in zip(jobs, found, strict=True):
            cells.setdefault((name, design, prior), []).append(draw)
        print(f"{name}: {time.perf_counter() - began:.0f} s\n{summary(cells)}", flush=True)
        # Written after every set: the whole takes hours.
        write_section(EVIDENCE / "intervals.md", "honest", section(cells), f"{arguments.draws} draws per cell")


def section(cells):
    """Lines of the section."""
    sets = list(dict.fromkeys(name for name, _, _ in cells))
    lines = [
        "The model is `PairLogisticRegressionCV`. The accuracy is estimated as by `fit_table`: ten folds over items, "
        "predictions by models that saw no answer about the item, and the likelihood of all answers.",
        "",
        *summary(cells).splitlines(),
        "",
        "Each cell of the tables: true accuracy on other rows / accuracy estimated from the answers, both in % / share "
        "of the draws, in %, in which the 95% confidence interval contains the true accuracy. 200 answers about the "
        "given number of items.",
    ]
    for prior in PRIORS:
        lines += folded(f"{prior:.0%} in the larger class", table_of(cells, sets, prior).splitlines())
    return lines


if __name__ == "__main__":
    main()
