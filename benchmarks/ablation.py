"""What each part of the joint estimator is worth, and what was tried and left out: paired differences.

    SDULEARN_DATA=folder make bench-ablation

writes docs/ablation.md.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from accuracy import SIZES, Draw
from paper import BENCHMARKS
from runs import quietly, run_all
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, SDUClassifierCV
from sdulearn.pairs import read_pairs

PARAMETERS = {
    "plain ridge only (covariance_powers=(0,))": {"covariance_powers": (0,)},
    "one power only (covariance_powers=(1,))": {"covariance_powers": (1,)},
    "prior of no weight (prior_strength=0)": {"prior_strength": 0},
    "less weight (prior_strength=1)": {"prior_strength": 1},
    "more weight (prior_strength=10)": {"prior_strength": 10},
    "start from the pair moment only": {"init": "moment"},
    "16 alphas": {"alphas": 16},
    "10 folds": {"cv": 10},
}


def bagging(draw, model):
    """The mean decision of ten bootstrap draws of the pairs, at the chosen setting."""
    pairs = read_pairs(draw.codes)
    total = np.zeros(len(draw.X_test))
    for _ in range(10):
        chosen = draw.rng.integers(len(pairs.ends), size=len(pairs.ends))
        weight = np.ones(len(draw.codes))
        weight[pairs.ends] = np.bincount(chosen, minlength=len(pairs.ends))[:, None]
        one = PairLogisticRegression(model.alpha_, covariance_power=model.covariance_power_).fit(
            draw.X, draw.codes, sample_weight=weight
        )
        total += one.decision_function(draw.X_test)
    return total


def self_training(draw, model):
    """EM over all unknown labels: the ends of pairs given their answer, and the unlabeled rows at a tenth."""
    pairs = read_pairs(draw.codes)
    first, second = pairs.ends.T
    sign = np.where(pairs.similar, 1.0, -1.0)
    z = model.decision_function(draw.X)
    rows = np.concatenate([first, second, pairs.unlabeled])
    known = np.r_[np.ones(2 * len(first)), np.full(len(pairs.unlabeled), 0.1)]
    for _ in range(10):
        # P(y = +1 | answer): the other end speaks through the answer.
        chance = [expit(z[a] + np.log((expit(s_z) + 1e-12) / (expit(-s_z) + 1e-12)))
                  for a, s_z in ((first, sign * z[second]), (second, sign * z[first]))]  # fmt: skip
        q = np.concatenate([*chance, expit(z[pairs.unlabeled])])
        stacked, labels = np.vstack([draw.X[rows]] * 2), np.repeat([1, -1], len(rows))
        fit = LogisticRegression(C=1 / (model.alpha_ * len(first)), max_iter=500)
        fit.fit(stacked, labels, sample_weight=np.r_[q * known, (1 - q) * known])
        z = fit.decision_function(draw.X)
    return fit.decision_function(draw.X_test)


def blend(draw, model):
    """The mean of the joint and the SDDU decision, each divided by its spread on the training rows."""
    sdu = SDUClassifierCV().fit(draw.X, draw.codes)
    spread = [m.decision_function(draw.X).std() for m in (model, sdu)]
    return model.decision_function(draw.X_test) / spread[0] + sdu.decision_function(draw.X_test) / spread[1]


POST = {
    "bagging over 10 bootstrap draws of pairs": bagging,
    "self-training: EM over unknown labels": self_training,
    "blend with SDDU": blend,
}


@quietly
def run_cell(cell):
    draw = Draw(*cell)
    model = PairLogisticRegressionCV().fit(draw.X, draw.codes)
    base = draw.accuracy(model)
    gaps = {}
    for name, parameters in PARAMETERS.items():
        gaps[name] = draw.accuracy(PairLogisticRegressionCV(**parameters).fit(draw.X, draw.codes)) - base
    for name, decide in POST.items():
        gaps[name] = float(np.mean(np.where(decide(draw, model) > 0, 1, -1) == draw.y_test)) - base
    return gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "ablation.md")
    arguments = parser.parse_args()
    seeds = range(2000, 2000 + arguments.trials)
    cells = [(name, n, 0.7, seed) for name in BENCHMARKS for n in SIZES for seed in seeds]
    results = run_all(run_cell, cells, arguments.jobs)
    lines = ["| instead of the default | 50 pairs | 200 pairs | best set | worst set |", "|---|---|---|---|---|"]
    for variant in (*PARAMETERS, *POST):
        columns = []
        for n in SIZES:
            gaps = 100 * np.array([g[variant] for cell, g in results if cell[1] == n])
            columns.append(f"{gaps.mean():+.2f} ({gaps.std(ddof=1) / np.sqrt(len(gaps)):.2f})")
        by_set = {name: 100 * np.mean([g[variant] for cell, g in results if cell[0] == name]) for name in BENCHMARKS}
        best, worst = max(by_set, key=by_set.get), min(by_set, key=by_set.get)
        lines.append(
            f"| {variant} | {' | '.join(columns)} | {best} {by_set[best]:+.1f} | {worst} {by_set[worst]:+.1f} |"
        )
    text = [
        "# Ablation of the joint estimator",
        f"Written by `make bench-ablation` (`benchmarks/ablation.py --trials {arguments.trials}`). Accuracy in points "
        "above (+) or below (-) the default `PairLogisticRegressionCV()` on the same draws, prior 0.7, mean over the "
        f"ten sets and {arguments.trials} draws each, standard error in brackets; then the sets with the largest gain "
        "and the largest loss.",
        "\n".join(lines),
    ]
    arguments.out.write_text("\n\n".join(text) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
