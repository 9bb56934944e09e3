"""The displays draw what the model, the counts and the table of results say."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import (
    PairLogisticRegression,
    PairLogisticRegressionCV,
    SDUClassifier,
    stack_pairs,
)
from sdulearn.answers import AnswerModel, Rate
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.metrics import pair_log_likelihood
from sdulearn.plotting import (
    AnnotatorDisplay,
    AnswerMatrixDisplay,
    PairBoundaryDisplay,
    PairLearningCurveDisplay,
    ReliabilityDisplay,
)
from sdulearn.prior import clopper_pearson

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def flat(waveform):
    """A model of two columns of the waveform rows, these, and codes."""
    rows, codes = waveform
    X = rows[:, [6, 14]]
    return PairLogisticRegression().fit(X, codes), X, codes


def test_the_boundary_has_the_response_of_the_model_and_the_pairs(flat, monkeypatch):
    model, X, codes = flat
    display = PairBoundaryDisplay.from_estimator(model, X, codes, resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_allclose(display.response.ravel(), model.predict_proba(grid)[:, 1])
    for values, column in ((display.xx0, X[:, 0]), (display.xx1, X[:, 1])):
        room = 0.05 * np.ptp(column)
        assert (values.min(), values.max()) == pytest.approx((column.min() - room, column.max() + room))
    assert display.level == 0.5
    # The drawn line lies where the linear model is zero, and its colour is the middle one.
    points = np.vstack(display.boundaries_[0].get_paths()[0].vertices)
    np.testing.assert_allclose(model.decision_function(points), 0, atol=0.02)
    assert np.mean(display.surface_.get_clim()) == pytest.approx(0.5)
    for line, sign in zip(display.lines_, (1, -1), strict=True):
        pairs = line.get_xydata().reshape(-1, 3, 2)
        np.testing.assert_array_equal(pairs[:, :2], display.ends[display.similar == (sign > 0)])
        assert len(pairs) == np.sum(sign * codes > 0) // 2
        assert np.isnan(pairs[:, 2]).all()
    for k in (1, 17, 60):
        np.testing.assert_array_equal(display.ends[k - 1], X[np.abs(codes) == k])
    np.testing.assert_array_equal(display.unlabeled, X[codes == 0])
    figure, ax = plt.subplots()
    few = PairBoundaryDisplay.from_estimator(model, X, codes, max_pairs=9, resolution=5, ax=ax)
    assert len(few.ends) == len(few.similar) == 9
    assert (few.ax_, few.figure_) == (ax, figure)
    assert few.plot(cmap="gray").surface_.get_cmap().name == "gray"
    assert few.ax_ is not ax
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"sdulearn\[demo\]"):
        few.plot()
    monkeypatch.undo()
    # Without probabilities the decision is drawn; where it has one sign there is no boundary.
    model = SDUClassifier(loss="double_hinge").fit(X, codes)
    assert PairBoundaryDisplay.from_estimator(model, X, codes, resolution=5).level == 0.0
    model.coef_, model.intercept_ = np.zeros((1, 2)), np.array([2.0])
    assert PairBoundaryDisplay.from_estimator(model, X, codes, resolution=5).boundaries_ == []
    for features, message in (((0, 9), "must be in"), (("a", "b"), "only supported for dataframes"), ((0,), "two")):
        with pytest.raises(ValueError, match=message):
            PairBoundaryDisplay.from_estimator(model, X, codes, features=features)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, sparse.csr_matrix])
def test_other_features_stand_at_their_median_in_every_kind_of_table(waveform, kind):
    rows, codes = waveform
    names = [f"t{k}" for k in range(rows.shape[1])]
    keywords = {pd.DataFrame: {"columns": names}, pl.DataFrame: {"schema": names}}.get(kind, {})
    X = kind(rows, **keywords)
    model = PairLogisticRegression().fit(X, codes)
    features = ("t6", "t14") if keywords else (6, 14)
    display = PairBoundaryDisplay.from_estimator(model, X, codes, features=features, resolution=7)
    at = np.median(rows, axis=0)
    at[6], at[14] = display.xx0[2, 3], display.xx1[2, 3]
    z = at @ model.coef_[0] + model.intercept_[0]
    assert display.response[2, 3] == pytest.approx(1 / (1 + np.exp(-z)))
    assert display.names == (("t6", "t14") if keywords else ("feature 6", "feature 14"))


@pytest.fixture(scope="module")
def drawn():
    X, y = make_waveform(3000, random_state=0)
    return sample_sdu(X, y, n_pairs=150, n_unlabeled=100, prior=0.7, n_test=300, random_state=0)


class _Spy(SDUClassifier):
    """Remembers the codes of every fit."""

    seen: list[np.ndarray]

    def fit(self, X, y, sample_weight=None):
        self.seen.append(np.asarray(y))
        return super().fit(X, y, sample_weight)


@pytest.fixture
def seen():
    """The codes of every fit of a spy in this test."""
    _Spy.seen = []
    return _Spy.seen


def test_the_learning_curve_keeps_the_ratio_nests_and_scores_the_test_points(drawn, seen):
    rows, codes, *test = drawn
    model = make_pipeline(StandardScaler(), _Spy())
    options = {"test": test, "n_repeats": 2, "random_state": 0, "name": "SDDU"}
    display = PairLearningCurveDisplay.from_estimator(model, rows, codes, n_pairs=[30, 150], **options)
    assert display.scores.shape == (2, 2)
    small, whole = seen[:2]
    assert len(np.unique(small[small != 0])) == 30
    assert np.mean(small[small != 0] > 0) == pytest.approx(np.mean(codes[codes != 0] > 0), abs=1 / 60)
    assert np.sum(small == 0) == np.sum(codes == 0)
    assert set(small) <= set(whole) == set(codes)
    np.testing.assert_allclose(display.scores[1], np.mean(model.fit(rows, codes).predict(test[0]) == test[1]))
    assert display.ax_.get_legend_handles_labels()[1] == ["SDDU"]
    for sizes in ([0, 10], [151], []):
        with pytest.raises(ValueError, match="between 1 and 150"):
            PairLearningCurveDisplay.from_estimator(model, rows, codes, n_pairs=sizes, test=test)


def test_the_learning_curve_without_labels_holds_pairs_out(drawn, seen):
    rows, codes, X_test, y_test = drawn
    options = {"scoring": pair_log_likelihood, "n_repeats": 5, "random_state": 0}
    model = _Spy(loss="logistic", prior=0.7)
    display = PairLearningCurveDisplay.from_estimator(model, rows, codes, n_pairs=[119], **options)
    assert [len(np.unique(each[each != 0])) for each in seen] == [119] * 5
    assert (display.scores < 0).all()
    # Rows say which points they show.
    rng = np.random.default_rng(0)
    ends = rng.permutation(300)[np.column_stack([rng.integers(0, 60, 150), rng.integers(60, 120, 150)])]
    shared, y = stack_pairs(X_test, ends, y_test[ends[:, 0]] == y_test[ends[:, 1]])
    PairLearningCurveDisplay.from_estimator(_Spy(prior=0.7), shared, y, n_pairs=[20], n_repeats=3, random_state=0)
    assert [each.shape[1] for each in seen[5:]] == [2, 2, 2]
    # The smallest default size has five of the rarer kind.
    few = codes.copy()
    few[np.isin(codes, codes[codes > 0][40:])] = 0
    seen.clear()
    own = PairLearningCurveDisplay.from_estimator(_Spy(prior=0.7), rows, few, random_state=0)
    assert own.ax_.get_ylabel() == "score of held-out pairs"
    rarer = [len(np.unique(each[each > 0])) for each in seen]
    assert 5 <= min(rarer) <= 7 < max(rarer)


@pytest.fixture(scope="module")
def three_classes():
    """Points of three classes, their classes, rows with what is known of them, and a model."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    X = np.array([(0, 0), (5, 0), (0, 5)])[truth] + rng.normal(size=(300, 2))
    pairs = rng.permutation(300)[:240].reshape(-1, 2)
    rows, y = stack_pairs(X, pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]])
    return X, truth, rows, y, PairLogisticRegressionCV(3, n_classes=3, cv=3).fit(rows, y)


def test_the_boundary_of_a_class_is_where_it_ceases_to_lead(three_classes):
    _, _, rows, y, model = three_classes
    display = PairBoundaryDisplay.from_estimator(model, rows, y, resolution=40)
    assert display.response.shape == (40, 40, 3)
    assert len(display.boundaries_) == 3
    for line in display.boundaries_:
        points = np.vstack([path.vertices for path in line.get_paths()])
        top = np.sort(model.predict_proba(points), axis=1)
        np.testing.assert_allclose(top[:, -1], top[:, -2], atol=0.1)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    shown = np.asarray(display.surface_.get_array()).ravel()
    np.testing.assert_array_equal(shown + 1, model.predict(grid))


def test_answers_are_counted_by_the_held_out_classes_of_their_points(three_classes, waveform):
    _, _, rows, y, model = three_classes
    display = AnswerMatrixDisplay.from_estimator(model, rows, y, cv=3)
    same, different = np.array([display.counts.same, display.counts.different])
    assert np.triu(same + different).sum() == 120
    assert np.trace(same) + np.triu(different, 1).sum() > 108
    assert display.texts_[0].get_text() == f"{same[0, 0]:g} / {different[0, 0]:g}"
    np.testing.assert_allclose(display.image_.get_array()[2, 1], same[2, 1] / (same + different)[2, 1])
    # Models that cannot be held out have a matrix of new answers.
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(waveform[0], np.sign(waveform[1]))
    with pytest.raises(ValueError, match=r"LogisticRegression.*no orient.*`cv=None`"):
        AnswerMatrixDisplay.from_estimator(model, *waveform)
    assert AnswerMatrixDisplay.from_estimator(model, *waveform, cv=None).names == ("-1", "0", "1")


def test_classes_without_names_have_no_learning_curve_of_the_accuracy(three_classes):
    X, truth, rows, y, _ = three_classes
    model = PairLogisticRegression(1e-3, covariance_power=0, n_classes=3)
    with pytest.raises(ValueError, match="`test`"):
        PairLearningCurveDisplay.from_estimator(model, rows, y, n_pairs=[60], test=(X, truth + 1), n_repeats=1)


def test_reliability_has_exact_intervals_that_are_wider_with_shared_points():
    same = np.r_[np.arange(20) < 3, np.arange(10) < 6, np.ones(5)]
    P = np.tile([0.0, 1.0], (70, 1))
    # The class of each second end is certain.
    P[::2, 1] = np.repeat([0.15, 0.55, 0.95], [20, 10, 5])
    P[::2, 0] = 1 - P[::2, 1]
    display = ReliabilityDisplay.from_predictions(P, np.repeat(np.where(same, 1, -1) * np.arange(1, 36), 2))
    np.testing.assert_allclose(display.line_.lines[0].get_data(), [[0.15, 0.55, 0.95], [0.15, 0.6, 1.0]])
    for k, (a, n) in enumerate([(3, 20), (6, 10), (5, 5)]):
        exact = binomtest(a, n).proportion_ci(0.95, method="exact")
        assert (display.low[k], display.high[k]) == pytest.approx((exact.low, exact.high))
    bars = np.array(display.line_.lines[2][0].get_segments())
    np.testing.assert_allclose(bars[:, :, 1], np.column_stack([display.low, display.high]))
    assert display.ax_.get_legend_handles_labels()[1] == [f"expected calibration error {0.75 / 35:.3f}"]
    # Six answers about four points are worth two.
    points = [0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3]
    y = np.column_stack([np.repeat([1, 2, 3, 4, 5, -6], 2), points])
    shared = ReliabilityDisplay.from_predictions(np.tile([0.1, 0.9], (12, 1)), y)
    assert shared.table.observed == pytest.approx(5 / 6)
    assert (shared.low[0], shared.high[0]) == pytest.approx(clopper_pearson(5 / 3, 1 / 3, 0.95))
    with pytest.raises(ValueError, match="no predict_proba"):
        ReliabilityDisplay.from_estimator(SDUClassifier(loss="double_hinge"), np.zeros((12, 1)), y)


def crowd_model(n_people, table=None):
    rates = {k: Rate(k / 100, k / 200, k / 50, 9) for k in range(n_people)}
    return AnswerModel(Rate(0.2, 0.1, 0.3, 9 * n_people), rates, table)


def test_the_forest_of_annotators_has_the_highest_rates_first():
    display = AnnotatorDisplay.from_answer_model(crowd_model(4), ["ann", "bob", "cem"])
    assert display.names == ("cem", "bob", "ann", "unknown")
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(display.names)
    line, _, (bars,) = display.points_
    np.testing.assert_allclose(line.get_xdata(), [0.03, 0.02, 0.01, 0])
    np.testing.assert_allclose(bars.get_segments()[0], [[0.015, 0], [0.06, 0]])
    assert display.ax_.yaxis_inverted()
    many = AnnotatorDisplay.from_answer_model(crowd_model(50))
    assert (len(many.rates), many.names[0]) == (40, "49")
    with pytest.raises(ValueError, match="`names` has 2 names, but there is an annotator 3"):
        AnnotatorDisplay.from_answer_model(crowd_model(4), ["ann", "bob"])


def test_the_table_of_answers_is_a_heat_map():
    display = AnswerMatrixDisplay.from_answer_model(crowd_model(2, np.array([[0.9, 0.69], [0.69, 1]])), ["cat", "dog"])
    np.testing.assert_allclose(display.image_.get_array()[1], [0.69, 1])
    assert [text.get_text() for text in display.texts_] == ["90 / 10", "69 / 31", "100 / 0"]
    assert display.names == ("cat", "dog")
    with pytest.raises(ValueError, match="has no table: its errors do not depend on the classes"):
        AnswerMatrixDisplay.from_answer_model(crowd_model(2))
