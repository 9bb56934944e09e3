"""Pairs that were chosen by their features: noticed where they are, and nowhere else (fault S3)."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from sdulearn import PairLogisticRegression, fit_table, stack_pairs
from sdulearn.diagnostics import check_assumptions
from sdulearn.errors import ChosenPairsWarning
from sdulearn.metrics import cross_val_accuracy

N = 300


def draw(seed=0):
    """Rows of two overlapping classes in five columns, of very different units."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    return (rng.normal(size=(N, 5)) + 0.6 * y[:, None]) * 10.0 ** np.arange(5), y, rng


def questions(kind, X, rng):
    """What each of the first 80 rows is compared with."""
    if kind == "nearest":
        return NearestNeighbors(n_neighbors=1).fit(X / X.std(axis=0)).kneighbors(return_distance=False)[:80, 0]
    if kind == "group":
        group = np.searchsorted(np.quantile(X[:, 2], [0.2, 0.4, 0.6, 0.8]), X[:, 2])
        return np.array([rng.choice(np.flatnonzero(group == group[k])) for k in range(80)])
    if kind == "far":
        return np.array([np.argmax(np.abs(X[:, 0] - X[k, 0])) for k in range(80)])
    return np.full(80, N - 1) if kind == "star" else rng.permutation(np.arange(80, 160))


def pairs_of(kind, seed=0):
    X, y, rng = draw(seed)
    ends = np.column_stack([np.arange(80), questions(kind, X, rng)])
    ends = ends[ends[:, 0] != ends[:, 1]]
    return X, ends, y[ends[:, 0]] == y[ends[:, 1]]


def codes(findings):
    return {finding.code for finding in findings}


@pytest.mark.parametrize("kind", ["nearest", "group", "far", "random", "star"])
def test_chosen_pairs_are_noticed_and_the_accuracy_says_what_it_is(kind):
    X, ends, same = pairs_of(kind)
    table = pd.DataFrame(X, columns=list("abcde")).assign(id=[f"r{k}" for k in range(N)])
    names = np.array(table["id"])
    answers = pd.DataFrame({"id_a": names[ends[:, 0]], "id_b": names[ends[:, 1]], "label": same.astype(int)})
    model = fit_table(table, answers, model="linear")
    is_chosen = kind not in ("random", "star")
    assert ("pairs_by_features" in codes(model.report.findings)) == is_chosen
    assert model.report.accuracy.basis == ("chosen pairs" if is_chosen else "held-out answers")
    # The sentences say that the accuracy on new rows is unknown, and what to do.
    assert ("new rows is unknown" in model.summary()) == is_chosen
    if kind == "group":
        (finding,) = [one for one in model.report.findings if one.code == "pairs_by_features"]
        assert finding.features[0] == "c"


@pytest.mark.parametrize("kind", ["nearest", "random"])
def test_estimators_of_python_are_warned_too(kind):
    X, ends, same = pairs_of(kind)
    rows, y = stack_pairs(X / X.std(axis=0), ends, same)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        accuracy = cross_val_accuracy(PairLogisticRegression(), rows, y, cv=3)
    is_chosen = kind == "nearest"
    assert (ChosenPairsWarning in {warning.category for warning in caught}) == is_chosen
    assert (accuracy.basis == "chosen pairs") == is_chosen
    for X_rows in (rows, sparse.csr_matrix(rows)):
        assert ("pairs_by_features" in codes(check_assumptions(X_rows, y))) == is_chosen


def test_neither_units_nor_order_matter():
    X, ends, same = pairs_of("group")
    for columns in (X, np.exp(X / X.std(axis=0)), X[:, ::-1]):
        rows, y = stack_pairs(columns, ends[::-1, ::-1], same[::-1])
        assert "pairs_by_features" in codes(check_assumptions(rows, y))


def test_false_alarms_are_rare():
    """At a level of one in a thousand, 150 draws have more than two with probability 0.001."""
    alarms = 0
    for seed in range(150):
        X, ends, same = pairs_of("random" if seed % 2 else "star", seed)
        alarms += "pairs_by_features" in codes(check_assumptions(*stack_pairs(X, ends, same)))
    assert alarms <= 2
