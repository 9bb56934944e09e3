"""PairBoostingClassifier: what it learns, what it accepts, and what its predictions depend on."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OrdinalEncoder

from sdulearn import PairBoostingClassifier, PairKFold, PairLogisticRegressionCV, PairModelCV, stack_pairs
from sdulearn.boosting.estimators import mean_contributions
from sdulearn.errors import InputError

pytest.importorskip("lightgbm")


def two_moons(n, seed):
    """Two classes that no line separates well, 65% of them +1, and a column of noise."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.65, 1, -1)
    angle = np.pi * rng.random(n)
    X = np.column_stack([np.cos(angle), np.sin(angle), rng.normal(size=n)])
    X[y < 0] = [1, 0.4, 0] + X[y < 0] * [-1, -1, 1]
    X[:, :2] += 0.15 * rng.normal(size=(n, 2))
    return X, y


def loose_pairs(n_pairs, n_unlabeled=300, seed=0):
    X, y = two_moons(2 * n_pairs + n_unlabeled, seed)
    same = y[: 2 * n_pairs : 2] * y[1 : 2 * n_pairs : 2]
    return X, np.append(np.repeat(np.arange(1, n_pairs + 1) * same, 2), np.zeros(n_unlabeled, dtype=int)), y


@pytest.fixture(scope="module")
def data():
    return loose_pairs(400)


@pytest.fixture(scope="module")
def model(data):
    return PairBoostingClassifier().fit(data[0], data[1])


def test_bends_where_a_line_cannot(model, data):
    X, y = two_moons(1000, 99)
    line = PairLogisticRegressionCV().fit(data[0], data[1])
    assert np.mean(model.predict(X) == y) > np.mean(line.predict(X) == y) + 0.04
    curve = model.held_out_log_likelihood_
    assert model.n_rounds_ == np.argmax(curve) > 0
    assert len(curve) == model.n_rounds_ + 1 + 30
    # Trees that were tried and did not help are gone.
    assert [booster.num_trees() for booster in model.boosters_] == [model.n_rounds_] * 5
    # The last column is noise.
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[2] < 0.1
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.decision_function(data[0]), model.decision_function(data[0]))


def test_held_out_likelihood_of_the_start_is_cross_validated_by_hand(model, data):
    """The first entry of the curve, computed again from the models of folds of the linear start."""
    X, codes, _ = data
    A = (X - X.mean(axis=0)) / X.std(axis=0)
    total = 0.0
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    linear = PairLogisticRegressionCV(cv=PairKFold(5, random_state=seed)).fit(A, codes)
    error = linear.answer_model_.error_rate.value
    for test, fold in linear.fold_models_:
        p = fold.predict_proba(A[test])[:, 1]
        for k in np.unique(np.abs(codes[test])):
            if k:
                a, b = p[np.abs(codes[test]) == k]
                same = error + (1 - 2 * error) * (a * b + (1 - a) * (1 - b))
                total += np.log(same if (codes[test] == k).any() else 1 - same)
    assert model.held_out_log_likelihood_[0] == pytest.approx(total / 400, abs=1e-6)


def test_what_the_trees_depend_on(data):
    """The seed, but neither names nor, but for the centre of the start, sparse rows."""
    X, codes, _ = data
    model = PairBoostingClassifier(max_iter=5, cv=3).fit(X, codes)
    assert clone(model).fit(X, codes).trees_ == model.trees_
    assert clone(model).set_params(random_state=1).fit(X, codes).trees_ != model.trees_
    framed = clone(model).fit(pd.DataFrame(X, columns=["a", "b", "c"]), codes)
    assert framed.trees_ == model.trees_
    assert list(framed.feature_names_in_) == ["a", "b", "c"]
    scattered = clone(model).fit(sparse.csr_matrix(X), codes)
    assert np.mean(scattered.predict(X) == model.predict(X)) > 0.95


def test_labels_name_the_classes():
    X, codes, y = loose_pairs(200, seed=6)
    labels = np.zeros(len(y), dtype=int)
    labels[-20:] = -y[-20:]
    # No warning that the names are arbitrary: labels say what they are.
    table = np.column_stack([codes, np.arange(len(y)), np.zeros_like(y), labels])
    model = PairBoostingClassifier(max_iter=20).fit(X, table)
    assert np.mean(model.predict(X) == -y) > 0.8


def test_missing_values_and_categories():
    """Categories are encoded first; in which order does not matter."""
    X, codes, y = loose_pairs(400, seed=7)
    rng = np.random.default_rng(0)
    kind = 2 * rng.integers(0, 6, len(y)) + (np.where(rng.random(len(y)) < 0.9, y, -y) > 0)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.array(list("abcdefghijkl"))[kind]})
    frame.loc[rng.random(len(y)) < 0.2, "a"] = np.nan
    frame.loc[rng.random(len(y)) < 0.1, "kind"] = None
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    encode = make_column_transformer((encoder, ["kind"]), remainder="passthrough").fit(frame)
    rows = encode.transform(frame)
    model = PairBoostingClassifier(max_iter=10, categorical_features=[0]).fit(rows, codes)
    assert np.mean(model.predict(rows) == y) > 0.9
    assert model.n_rounds_ > 0
    assert model.feature_importances_[0] > 0.2
    unseen, missing = (encode.transform(frame.head(3).assign(kind=kind)) for kind in ("neither", None))
    np.testing.assert_array_equal(model.decision_function(unseen), model.decision_function(missing))
    renumbered = rows.copy()
    renumbered[:, 0] = np.append(rng.permutation(12), np.nan)[np.nan_to_num(rows[:, 0], nan=12).astype(int)]
    again = clone(model).fit(renumbered, codes)
    np.testing.assert_allclose(again.decision_function(renumbered), model.decision_function(rows), atol=1e-6)


@pytest.mark.parametrize(
    ("columns", "value"), [(["a"], 0), ([4], 0), ([-1], 0), ([True], 0), ([3], -1), ([3], 0.5), ([3], 1e9), ([3], None)]
)
def test_categorical_features_are_numbers_of_columns_of_whole_numbers(data, columns, value):
    X = np.column_stack([data[0], np.zeros(len(data[0]))])
    X[5, 3] = value or 0
    with pytest.raises(InputError, match="`categorical_features`"):
        PairBoostingClassifier(categorical_features=columns).fit(sparse.csr_matrix(X) if value is None else X, data[1])


def test_few_answers_are_refused():
    with pytest.raises(InputError, match="two pairs"):
        PairBoostingClassifier().fit(np.random.default_rng(0).normal(size=(4, 2)), [1, 1, -2, -2])


def test_many_unlabeled_rows_are_sampled_and_labelled_ones_kept():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    pairs = np.arange(40).reshape(-1, 2)
    labels = np.where(X[:, 0] > 0.2, 1, -1) * np.isin(np.arange(3000), np.arange(100, 150))
    rows, y = stack_pairs(X, pairs, (X[pairs[:, 0], 0] > 0.2) == (X[pairs[:, 1], 0] > 0.2), labels=labels)
    model = PairModelCV(["linear"], cv=2).fit(rows, y)
    used = np.concatenate([its_rows for its_rows, _ in model.fold_models_])
    assert len(used) == 40 + 50 + 2_500
    assert np.isin(np.flatnonzero((y[:, 0] != 0) | (y[:, 3] != 0)), used).all()
    assert np.isfinite(model.held_out_decisions_).all()


def test_the_linear_score_standardises_fills_gaps_and_is_never_certain(data):
    """A constant column, a column of gaps and units change nothing; a gap is the mean; sparse rows are not centred."""
    X, codes, _ = data
    options = {"models": ["linear"], "cv": 2}
    plain = PairModelCV(**options).fit(X, codes)
    more = np.column_stack([X * [1e-3, 5, 100] + [0, 7, 1e4], np.full(len(X), 0.1), np.full(len(X), np.nan)])
    model = PairModelCV(**options).fit(more, codes)
    np.testing.assert_allclose(model.decision_function(more), plain.decision_function(X), atol=1e-5)
    gap, mean = more[:5].copy(), more[:5].copy()
    gap[:, 1] = np.nan
    mean[:, 1] = more[:, 1].mean()
    np.testing.assert_allclose(model.decision_function(gap), model.decision_function(mean))
    size = np.abs(model.best_estimator_.coef_[0] * (more - more.mean(axis=0)))[:, :3].mean(axis=0)
    np.testing.assert_allclose(model.feature_importances_[:3], size / size.sum(), atol=0.05)
    np.testing.assert_allclose(np.abs(plain.decision_function(1e6 * X)), 8)
    scattered = PairModelCV(**options).fit(sparse.csr_matrix(X), codes)
    np.testing.assert_array_equal(scattered.start_.mean, 0)
    np.testing.assert_allclose(scattered.decision_function(sparse.csr_matrix(X)), scattered.decision_function(X))


def test_a_hub_has_the_mean_of_the_folds_and_a_point_the_mean_of_its_rows():
    X, y = two_moons(60, 3)
    rows, codes = stack_pairs(X, [(0, i) for i in range(1, 60)], y[1:] == y[0])
    model = PairModelCV(["linear"], cv=3).fit(rows, codes)
    decisions = np.array([fold.decision_function(X) for _, fold in model.fold_models_])
    hub = codes[:, 1] == 0
    assert not np.isin(np.flatnonzero(hub), np.concatenate([its_rows for its_rows, _ in model.fold_models_])).any()
    np.testing.assert_allclose(model.held_out_decisions_[hub], decisions[:, 0].mean(), atol=1e-9)
    # Rows around the hub: their mean is the hub, whichever comes first.
    around = rows + np.where(hub[:, None], np.cumsum(hub)[:, None] - (1 + hub.sum()) / 2, 0)
    again = PairModelCV(["linear"], cv=3).fit(around, codes)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-6)


def test_trees_count_by_their_mean_over_the_folds(model, data):
    """As in the score: boosters that are all there twice change neither it nor the importances."""
    twice = mean_contributions(model.start_, model.boosters_ * 2, data[0])
    np.testing.assert_allclose(twice, model.feature_importances_)
    single = mean_contributions(model.start_, model.boosters_[:1], data[0])
    assert np.abs(single - twice).max() > 1e-3
