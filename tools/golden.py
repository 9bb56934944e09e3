"""Golden numbers: what must not change while the code is redesigned.

    python tools/golden.py FILE            # write
    python tools/golden.py FILE --check    # compare with what is written

Estimators of the paper (6 risks x 3 losses x 3 draws: dense, sparse, weighted; and their CV forms), folds of
PairKFold on 60 random ``y``, accuracy, prior, error rates of several people, and the gradient of trees. Data are
generated or come with scikit-learn. Numbers agree if they differ by less than 1e-6 of the largest of their list.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, SDUClassifier, SDUClassifierCV, estimate_prior, stack_pairs
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.boosting import pair_objective
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.metrics import pair_accuracy

RISKS = ("su", "du", "sd", "sdsu", "sddu", "sudu")
LOSSES = ("squared", "double_hinge", "logistic")
TOLERANCE = 1e-6


def draws():
    """Rows, codes and weights: dense, sparse and weighted."""
    X, y = make_waveform(3000, random_state=1)
    yield "dense", *sample_sdu(X, y, n_pairs=150, n_unlabeled=300, prior=0.7, random_state=1), None
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rows, codes = sample_sdu(
        np.where(X > 0.5, X, 0), 2 * y - 1, n_pairs=80, n_unlabeled=200, prior=0.65, random_state=2
    )
    yield "sparse", sparse.csr_matrix(rows), codes, None
    rows, codes = sample_sdu(X, 2 * y - 1, n_pairs=80, n_unlabeled=200, prior=0.65, random_state=3)
    by_pair = np.random.default_rng(3).uniform(0.5, 2, size=81)
    weight = np.where(codes == 0, np.random.default_rng(4).uniform(0.5, 2, len(codes)), by_pair[np.abs(codes)])
    yield "weighted", rows, codes, weight


def paper():
    """Coefficients of every risk and loss."""
    for name, rows, codes, weight in draws():
        for loss in LOSSES:
            for risk in RISKS:
                model = SDUClassifier(risk, loss).fit(rows, codes, weight)
                yield f"SDUClassifier {name} {risk} {loss}", [*model.coef_[0], *model.intercept_]
            model = SDUClassifierCV("sddu", loss).fit(rows, codes, weight)
            choice = [model.alpha_, model.gamma_]
            yield f"SDUClassifierCV {name} sddu {loss}", [*choice, *model.coef_[0], *model.intercept_]


def random_y(seed):
    """Answers about few or many points, with a hub now and then, labels and unlabeled rows."""
    rng = np.random.default_rng(seed)
    n_points, n_answers = int(rng.integers(12, 60)), int(rng.integers(10, 80))
    ends = np.array([rng.choice(n_points, 2, replace=False) for _ in range(n_answers)])
    if seed % 3 == 0:
        ends[: n_answers // 2] = [(0, k) for k in rng.integers(1, n_points, n_answers // 2)]
    truth = rng.integers(0, 2, n_points)
    same = (truth[ends[:, 0]] == truth[ends[:, 1]]) ^ (rng.random(n_answers) < 0.1)
    X = rng.normal(size=(n_points, 2)) + truth[:, None]
    labels = np.where(rng.random(n_points) < 0.1, 2 * truth - 1, np.nan) if seed % 4 == 0 else None
    people = rng.integers(1, 4, n_answers)
    return (*stack_pairs(X, ends, same, labels=labels, annotators=people), people)


def estimates():
    """Folds, accuracy, prior and rates."""
    for seed in range(60):
        rows, y, _ = random_y(seed)
        fold = np.zeros(len(y))
        for k, (_, test) in enumerate(PairKFold(3, random_state=seed).split(rows, y)):
            fold[test] = k + 1
        yield f"PairKFold {seed}", fold.tolist()
        if seed % 6 == 1:
            accuracy = pair_accuracy(rows.sum(axis=1) - 1, y, error_rate=0.1)
            yield f"pair_accuracy {seed}", [accuracy.value, accuracy.low, accuracy.high]
            prior = estimate_prior(y=y, error_rate=0.1)
            yield f"estimate_prior {seed}", [prior.value, prior.low, prior.high]
    prior = estimate_prior(58, 42)
    yield "estimate_prior 58 42", [prior.value, prior.low, prior.high]


def rates():
    """Error rates of three people who answer the same 60 questions."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, 40)
    asked = np.array([rng.choice(40, 2, replace=False) for _ in range(60)])
    ends = np.tile(asked, (3, 1))
    people = np.repeat([1, 2, 3], 60)
    wrong = rng.random(180) < np.array([0, 0.05, 0.1, 0.3])[people]
    same = (truth[ends[:, 0]] == truth[ends[:, 1]]) ^ wrong
    for n_classes in (2, 3):
        graph = AnswerGraph.from_answers(ends, same, annotators=people)
        model = AnswerModel.estimate(graph, n_classes)
        for person, rate in model.by_annotator.items():
            yield f"rate {n_classes} {person}", [rate.value, rate.low, rate.high]


def trees():
    """Gradient and curvature of loose pairs, shared points and labels."""
    for seed in (1, 4, 8):
        rows, y, _ = random_y(seed)
        gradient, curvature = pair_objective(y, error_rate=0.1)(rows.sum(axis=1) - 1)
        yield f"pair_objective {seed}", [*gradient, *curvature]


def numbers():
    """All golden numbers by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: np.asarray(values, dtype=float).tolist()
            for part in (paper, estimates, rates, trees)
            for name, values in part()
        }


def differences(old, new):
    """Names whose numbers differ, with the largest relative difference."""
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            yield name, "missing" if name in old else "new"
            continue
        a, b = np.asarray(old[name]), np.asarray(new[name])
        gap = np.abs(a - b).max() / max(np.abs(a).max(), 1e-300) if a.shape == b.shape else np.inf
        if gap > TOLERANCE:
            yield name, f"{gap:.2g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    new = numbers()
    if not arguments.check:
        arguments.file.write_text(json.dumps(new))
        print(f"{len(new)} lists of numbers")
        return
    changed = list(differences(json.loads(arguments.file.read_text()), new))
    print(*(f"{name}: {gap}" for name, gap in changed), f"{len(changed)} of {len(new)} differ", sep="\n")
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
