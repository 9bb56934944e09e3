"""PairModelCV: the choice, and the numbers that say why."""

import pickle
import sys

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairBoostingClassifier, PairKFold, PairLogisticRegressionCV, PairModelCV
from sdulearn.boosting.estimators import compare
from sdulearn.errors import InputError, MissingExtraError, OrientationWarning, UselessModelWarning

pytest.importorskip("lightgbm")


# The seed that `random_state=0` gives the folds and the kernel map.
SEED = int(np.random.RandomState(0).randint(2**31 - 1))


def pairs_of(classify, seed=0, n_pairs=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n_pairs + 200, 4))
    y = np.where(classify(X) + 0.3 * rng.normal(size=len(X)) > 0, 1, -1)
    same = y[: 2 * n_pairs : 2] * y[1 : 2 * n_pairs : 2]
    return X, np.append(np.repeat(np.arange(1, n_pairs + 1) * same, 2), np.zeros(200, dtype=int)), y


def line(X):
    return X[:, 0] + 2 * X[:, 1] + 0.8


def step(X):
    """Boxes, which trees fit best."""
    return np.where((X[:, 0] > -0.7) & (X[:, 1] > -0.8), 1.5, -1.5) + 0.3 * X[:, 0]


@pytest.mark.parametrize(("classify", "expected"), [(step, "boosted"), (line, "linear")])
def test_the_right_kind_is_chosen(classify, expected):
    X, codes, y = pairs_of(classify)
    model = PairModelCV(prior=float(np.mean(y > 0)), max_iter=60, cv=3).fit(X, codes)
    assert model.model_ == expected
    results = model.cv_results_
    best = results["model"].index(expected)
    # Of two that are nearly as good the first is kept.
    assert results["mean_test_score"][best] >= max(results["mean_test_score"]) - 1 / 300
    assert np.mean(model.predict(X) == y) > 0.8


def test_candidates_are_those_that_stand_alone():
    X, codes, y = pairs_of(step, seed=1, n_pairs=150)
    prior = float(np.mean(y > 0))
    chosen = PairModelCV(["linear", "boosted"], prior=prior, max_iter=40, cv=3).fit(X, codes)
    alone = PairBoostingClassifier(prior=prior, max_iter=40, cv=3).fit(X, codes)
    place = chosen.cv_results_["model"].index("boosted")
    assert chosen.cv_results_["mean_test_score"][place] == pytest.approx(alone.held_out_log_likelihood_.max())
    np.testing.assert_array_equal(chosen.decision_function(X), alone.decision_function(X))
    line = PairModelCV(["linear"], prior=prior).fit(X, codes)
    folds = PairKFold(5, random_state=SEED)
    plain = PairLogisticRegressionCV(prior=prior, cv=folds).fit((X - X.mean(axis=0)) / X.std(axis=0), codes)
    np.testing.assert_allclose(
        line.decision_function(X), plain.decision_function((X - X.mean(axis=0)) / X.std(axis=0)), atol=1e-6
    )


def test_unknown_candidates_are_refused():
    X, codes, _ = pairs_of(line, n_pairs=20)
    for models in (["linear", "nystroem"], [], ["linear", "linear"], [PairLogisticRegressionCV()]):
        with pytest.raises(InputError, match="`models`"):
            PairModelCV(models).fit(X, codes)


def test_without_lightgbm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    X, codes, _ = pairs_of(line, n_pairs=100)
    for model in (PairBoostingClassifier(), PairModelCV()):
        with pytest.raises(MissingExtraError, match=r"sdulearn\[boosting\]"):
            model.fit(X, codes)
    assert PairModelCV(["linear"], prior=0.6, cv=2).fit(X, codes).boosters_ == []


@pytest.mark.parametrize(
    ("gaps", "errors", "n_components", "expected"),
    [
        ([0.2, 0.0], [0.81, 0.0], 100, 0),  # a quarter of a standard error
        ([0.2, 0.0], [0.79, 0.0], 100, 1),
        ([0.009, 0.0], [0.0, 0.0], 2, 0),  # 0.9 of log likelihood in all, without a standard error
        ([0.011, 0.0], [0.0, 0.0], 2, 1),
        ([0.5, 0.001, 0.0], [0.1, 0.1, 0.0], 100, 1),
    ],
)
def test_of_candidates_that_are_hardly_worse_the_first_is_kept(gaps, errors, n_components, expected):
    """Components of 100 answers whose likelihoods differ from the best one's by these means and errors."""
    turns = np.sqrt(n_components) * np.tile([-1, 1], n_components // 2)
    values = [100 / n_components * (-20 - gap - error * turns) for gap, error in zip(gaps, errors, strict=True)]
    best, table = compare(list("abc")[: len(gaps)], values, 100)
    assert best == expected
    np.testing.assert_allclose(table["mean_test_score"], [np.sum(value) / 100 for value in values])
    assert table["rank_test_score"].tolist() == (1 + np.argsort(np.argsort(gaps))).tolist()
    np.testing.assert_allclose(table["gap_to_best"], gaps, atol=1e-12)
    np.testing.assert_allclose(table["gap_error"], errors if n_components > 2 else np.nan, atol=1e-12)


@pytest.mark.parametrize("models", [["linear"], ["boosted"]])
def test_the_models_of_folds_decide_about_points_that_they_saw_no_answer_about(models):
    X, codes, y = pairs_of(step, n_pairs=100)
    weight = np.where(np.abs(codes) == 3, 0.0, 1.0)
    model = PairModelCV(models, prior=float(np.mean(y > 0)), cv=3).fit(X, codes, weight)
    rows = np.concatenate([rows for rows, _ in model.fold_models_])
    np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(weight))
    for its_rows, fold in model.fold_models_:
        inside = np.isin(codes, codes[its_rows][codes[its_rows] != 0])
        assert set(np.flatnonzero(inside)) <= set(its_rows)
        np.testing.assert_allclose(fold.decision_function(X[its_rows]), model.held_out_decisions_[its_rows], atol=1e-9)
    left_out = np.flatnonzero(weight == 0)
    np.testing.assert_allclose(
        model.held_out_decisions_[left_out], model.fold_models_[0][1].decision_function(X[left_out])
    )
    mean = np.mean([fold.decision_function(X) for _, fold in model.fold_models_], axis=0)
    assert np.corrcoef(mean, model.decision_function(X))[0, 1] > 0.9


def test_the_best_estimator_and_its_folds_have_coefficients_of_the_columns():
    """In the user's units, and rows by the user's numbers, though unlabeled rows were sampled."""
    X, codes, y = pairs_of(line, n_pairs=100)
    more = np.random.default_rng(1).normal(size=(2600, 4))
    order = np.random.default_rng(2).permutation(len(X) + len(more))
    X = (np.vstack([X, more]) * [1e-3, 50, 1, 7] + [5, -300, 0, 1])[order]
    codes = np.append(codes, np.zeros(len(more), dtype=int))[order]
    model = PairModelCV(["linear"], prior=float(np.mean(y > 0)), cv=3).fit(X, codes)
    best = model.best_estimator_
    assert isinstance(best, PairLogisticRegressionCV)
    np.testing.assert_allclose(np.clip(best.decision_function(X), -8, 8), model.decision_function(X), atol=1e-9)
    assert len(best.fold_models_) == len(model.fold_models_) == 3
    for (rows, fold), (its_rows, its_fold) in zip(model.fold_models_, best.fold_models_, strict=True):
        np.testing.assert_array_equal(its_rows, rows)
        np.testing.assert_allclose(np.clip(its_fold.decision_function(X), -8, 8), fold.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(("models", "n_classes"), [(["linear"], 2), (["boosted"], 2), (["linear"], 3)])
def test_orient_renames_whatever_a_selection_holds(models, n_classes):
    X, codes, _ = pairs_of(step, n_pairs=100)
    model = PairModelCV(models, n_classes=n_classes, max_iter=5, cv=3).fit(X, codes)
    scores, best, posterior = model.held_out_decisions_, model.best_estimator_, model.posterior(X, codes)
    assert (best is model) == (models == ["boosted"])
    order = np.roll(np.arange(n_classes), 1)
    model.orient(X, model.classes_[np.argsort(order)][np.searchsorted(model.classes_, model.predict(X))])
    renamed = -scores if n_classes == 2 else scores[:, order]
    np.testing.assert_array_equal(model.held_out_decisions_, renamed)
    assert model.best_estimator_ is best
    np.testing.assert_array_equal(best.predict(X), model.predict(X))
    for changed in (best, model):
        np.testing.assert_allclose(changed.posterior(X, codes), posterior[:, order], atol=5e-3)


@pytest.mark.parametrize("model", [PairBoostingClassifier(max_iter=5, cv=2), PairModelCV(max_iter=5, cv=2)], ids=str)
@pytest.mark.parametrize("classify", [line, step])
def test_a_refit_forgets_the_earlier_fit(model, classify):
    X, codes, _ = pairs_of(classify, n_pairs=100)
    sizes = [len(pickle.dumps(model.fit(X, codes))) for _ in range(3)]
    assert sizes[0] == sizes[1] == sizes[2]


def test_trees_begin_at_a_kernel_map_where_a_line_says_nothing():
    """Centred and with classes of one size, so that every line is as good as a coin."""
    X, codes, y = pairs_of(lambda X: 3.4 - (X**2).sum(axis=1), n_pairs=400)
    with pytest.warns(OrientationWarning):
        model = PairBoostingClassifier(max_iter=60, cv=3).fit(X, codes)
    assert model.start_.has_kernel
    right = np.mean(model.predict(X) == y)
    assert max(right, 1 - right) > 0.85
    kernel_map = make_pipeline(
        StandardScaler(), Nystroem(gamma=1 / 8, n_components=150, random_state=SEED), StandardScaler()
    )
    pipeline = make_pipeline(kernel_map, PairLogisticRegressionCV(cv=PairKFold(3, random_state=SEED)))
    with pytest.warns(OrientationWarning):
        pipeline.fit(X, codes)
    np.testing.assert_allclose(model.start_.decide(X)[:, 0], np.clip(pipeline.decision_function(X), -8, 8), atol=1e-6)
    # Contributions are changes of the score where a column has its mean, up to the bounds of the score.
    few = X[:80]
    for j, change in enumerate(model.start_.contributions(few)[:, :, 0].T):
        level = np.where(np.arange(4) == j, few.mean(axis=0), few)
        before, after = (model.start_.decide(rows)[:, 0] for rows in (few, level))
        free = (np.abs(before) < 8) & (np.abs(after) < 8)
        assert free.sum() > 10
        np.testing.assert_allclose(change[free], (before - after)[free], atol=1e-9)
    X, codes, _ = pairs_of(line)
    assert PairBoostingClassifier(max_iter=5, cv=2).fit(X, codes).start_.has_kernel is False


@pytest.mark.parametrize("model", [PairBoostingClassifier(max_iter=40), PairModelCV(max_iter=40)], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_a_model_of_noise_gives_a_warning(model, seed):
    """Answers that have nothing to do with the rows; the other tests, where warnings are errors, have real ones."""
    X, codes, y = pairs_of(step, seed=seed, n_pairs=200)
    with pytest.warns(UselessModelWarning):
        model.set_params(prior=float(np.mean(y > 0))).fit(np.random.default_rng(seed).permutation(X), codes)
