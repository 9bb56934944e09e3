"""Tables with more than two classes, boosted trees, several annotators and a few labels."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, make_circles

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, PairModelCV, fit_table, load_model, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.cli.inspect import describe_model
from sdulearn.datasets import make_waveform
from sdulearn.errors import InputError, UnseenCategoryWarning
from sdulearn.report.records import ModelChoice
from sdulearn.workflow.judge import why_linear
from tests.reference import refuses

SIZES = (70, 50, 40)
pytestmark = pytest.mark.usefixtures("no_importances")
NAMES = np.array(["red", "green", "blue"])


def ids_of(rows):
    return [f"r{k}" for k in rows]


@pytest.fixture(scope="module")
def blobs(answers_about):
    """160 rows of three classes, two numbers and a text column, 150 answers, and the class of each row."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], SIZES))
    centers = 3.5 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -0.8]])
    frame = pd.DataFrame(20 + 5 * (centers[y] + rng.normal(size=(160, 2))), columns=["u", "v"])
    frame = frame.assign(id=ids_of(np.arange(160)), city=rng.choice(["Oslo", "Rome"], 160))
    ends = rng.integers(0, 160, (200, 2))
    return frame, answers_about(y, ends[ends[:, 0] != ends[:, 1]][:150]), y


@pytest.fixture(scope="module")
def three(blobs):
    table, answers, _ = blobs
    return fit_table(table, answers[:70], classes=3)


def test_three_classes_by_size(three, blobs, tmp_path):
    table, _, y = blobs
    assert three.classes == (1, 2, 3)
    predicted = three.predict(table)
    # Class k is the k-th largest.
    assert np.mean(predicted - 1 == y) > 0.95
    proba = three.predict_proba(table)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (np.array(three.classes)[proba.argmax(axis=1)] == predicted).all()
    scaled = three.columns.scaled(three.features(table))
    np.testing.assert_allclose(three.decision_function(table), three.estimator.decision_function(scaled), atol=1e-10)
    np.testing.assert_allclose(three.report.class_shares, np.array(SIZES) / 160, atol=0.05)
    three.save(tmp_path / "m.sdu")
    back = load_model(tmp_path / "m.sdu")
    assert (back.classes, back.report) == (three.classes, three.report)
    np.testing.assert_array_equal(back.predict_proba(table), proba)
    report = three.report
    assert report.accuracy is report.prior is None
    found = report.agreement
    # Nothing names the classes, so nothing is said of the accuracy.
    assert (found.accuracy, found.basis) == (None, None)
    assert found.agreement.low < found.agreement.value
    assert found.agreement.value > 0.9
    # Points in several answers do not make as many loose pairs.
    assert found.agreement.n <= report.n_points / 2 < 70
    assert not {"too_few_similar", "no_better_than_guessing"} & {one.code for one in report.findings}
    assert report.n_independent <= 70


def test_labels_name_more_than_two_classes_whose_number_is_found(blobs):
    """And trees learn them, where these are asked for."""
    pytest.importorskip("lightgbm")
    table, answers, y = blobs
    few = {f"r{k}": NAMES[y[k]] for k in range(20)}
    model = fit_table(table, answers[:60], labels=few, classes="auto", model="boosted")
    assert model.classes == ("blue", "green", "red")
    assert np.mean(model.predict(table) == NAMES[y]) > 0.95
    report = model.report
    assert (report.n_labels, report.agreement.basis) == (20, "labels")
    assert report.n_classes_interval == (3, 3)
    assert set(report.model_choice.scores) == {"linear", "boosted"}
    assert report.n_labels_right >= 19
    assert report.agreement.accuracy.low < 0.95 <= report.agreement.accuracy.high


def test_two_annotators_who_disagree(answers_about):
    """Bob is wrong in three of ten answers, Ann never; his are the doubtful ones, and they are wrong indeed."""
    X, y = make_waveform(400, random_state=3)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X).add_prefix("x").assign(id=ids_of(np.arange(400)))
    ends = rng.permutation(400)[:240].reshape(-1, 2)
    truth = answers_about(y, ends)
    wrong = rng.random(120) < 0.3
    bob = truth.assign(label=truth["label"] ^ wrong, annotator="Bob")
    report = fit_table(table, pd.concat([truth.assign(annotator="Ann"), bob], ignore_index=True), model="linear").report
    rates = {one.name: one for one in report.annotators}
    assert rates["Ann"].rate < 0.1
    assert rates["Bob"].low < wrong.mean() < rates["Bob"].high
    right = {tuple(ids): same for *ids, same in truth.itertuples(index=False)}
    assert len(report.doubtful) == 10
    probabilities = [one.wrong for one in report.doubtful]
    assert probabilities == sorted(probabilities, reverse=True)
    assert np.mean([right[one.id_a, one.id_b] != one.similar for one in report.doubtful]) >= 0.9
    assert {one.annotator for one in report.doubtful} == {"Bob"}


@pytest.fixture(scope="module")
def three_people(answers_about):
    """Waveforms, and the answers of three people to the same questions; Bob answers at random."""
    X, y = make_waveform(150, random_state=3)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X).add_prefix("x").assign(id=ids_of(np.arange(150)))
    truth = answers_about(y, rng.permutation(150)[:100].reshape(-1, 2))
    bob = truth.assign(label=rng.random(50) < 0.5, annotator="Bob")
    return table, pd.concat([truth.assign(annotator="Ann"), bob, truth.assign(annotator="Cem")], ignore_index=True)


def test_annotators_are_left_out_by_name(three_people):
    table, answers = three_people
    report = fit_table(table, answers, model="linear", exclude_annotators=["Bob"]).report
    first = report.findings[0]
    assert (first.code, list(first.names), first.n_answers) == ("annotators_excluded", ["Bob"], 50)
    assert [one.name for one in report.annotators] == ["Ann", "Cem"]
    assert report.n_similar + report.n_dissimilar == 100
    (_, wrong), (accuracy, wrong_after) = first.before, first.after
    assert wrong > 0.1 > wrong_after
    assert accuracy == report.accuracy.value
    again = fit_table(table, answers[answers["annotator"] != "Bob"], model="linear").report
    assert again.accuracy == report.accuracy


@pytest.mark.parametrize("names", [["Ann", "Dan"], "Dan", ["Ann", "Bob", "Cem"]])
def test_annotators_that_cannot_be_left_out(three_people, names):
    """Whom nobody knows, and all; the risks know no annotators."""
    table, answers = three_people
    with refuses(shows=["Ann, Bob, Cem"]):
        fit_table(table, answers, model="linear", exclude_annotators=names)
    for given, options in ((answers.drop(columns="annotator"), {}), (answers, {"method": "sd"})):
        with pytest.raises(InputError):
            fit_table(table, given, exclude_annotators=["Bob"], **options)


@pytest.fixture(scope="module")
def curved(answers_about):
    """Waveforms with 200 answers, which trees explain better than a linear model."""
    pytest.importorskip("lightgbm")
    X, y = make_waveform(1000, random_state=0)
    ends = np.random.default_rng(1).permutation(1000)[:400].reshape(-1, 2)
    return pd.DataFrame(X).add_prefix("x").assign(id=ids_of(np.arange(1000))), answers_about(y, ends), y


@pytest.fixture(scope="module")
def rings(answers_about):
    """400 points on two rings, which trees find and a linear model does not, and 120 answers."""
    pytest.importorskip("lightgbm")
    X, y = make_circles(2000, noise=0.15, factor=0.5, random_state=4)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(id=ids_of(np.arange(2000)))
    answers = answers_about(y, np.arange(240).reshape(-1, 2))
    return table, answers, 2 * y - 1, fit_table(table[:400], answers)


def test_trees_where_held_out_answers_are_for_them(rings, tmp_path):
    table, _, y, model = rings
    choice = model.report.model_choice
    assert choice.name == "boosted"
    assert isinstance(model.estimator, PairModelCV)
    assert choice.scores["boosted"] > choice.scores["linear"]
    assert choice.gap_error > 0
    # They judge the accuracy, too: with five, each would know four fifths of the answers.
    assert len(model.estimator.fold_models_) == 10
    assert model.report.settings == {"n_rounds": model.estimator.n_rounds_}
    assert len(model.report.doubtful) == 10
    assert len(model.report.importances) == len(model.report.dependences) == 2
    assert "Strongest features, share of the decision:" in describe_model(model, 1)
    model.save(tmp_path / "m.sdu")
    back = load_model(tmp_path / "m.sdu")
    assert back.report == model.report
    np.testing.assert_array_equal(back.predict_proba(table), model.predict_proba(table))
    # Trees that begin at a kernel map find the rings, without it they do not: folds have trees of the same kind.
    right = np.mean(model.predict(table[400:]).astype(int) == y[400:])
    found = model.report.accuracy
    assert found.low <= max(right, 1 - right) <= found.high


def test_a_linear_model_where_trees_are_no_better(answers_about, monkeypatch):
    """As it is fitted without a choice, but for the scale of its columns; once, and once for every fold."""
    pytest.importorskip("lightgbm")
    data = load_breast_cancer(as_frame=True)
    table = data.data.assign(id=ids_of(np.arange(569)))
    ends = np.random.default_rng(0).permutation(569)[:240].reshape(-1, 2)
    answers = answers_about(data.target.to_numpy(), ends)
    alone = fit_table(table, answers, model="linear")
    fits = []
    for kind in (PairLogisticRegression, PairLogisticRegressionCV, PairModelCV):
        monkeypatch.setattr(kind, "fit", counting(kind.fit, fits))
    model = fit_table(table, answers, model="auto")
    choice = model.report.model_choice
    assert choice.name == "linear"
    assert choice.scores["linear"] >= choice.scores["boosted"]
    decisions = [one.decision_function(table) for one in (model, alone)]
    assert np.corrcoef(decisions)[0, 1] > 0.999
    assert fits == ["PairModelCV", "PairLogisticRegressionCV"]
    # Judged by the folds of the choice; alone, by as many as make each model nearly the whole one.
    assert model.report.accuracy.value == pytest.approx(alone.report.accuracy.value, abs=0.03)
    assert set(model.report.settings) == {"alpha", "covariance_power", "temperature"}


def counting(method, fits):
    def counted(self, *arguments, **keywords):
        fits.append(type(self).__name__)
        return method(self, *arguments, **keywords)

    return counted


@pytest.mark.parametrize("reason", [None, "lightgbm", "answers", "features", "classes", "folds"])
def test_why_nothing_is_compared(monkeypatch, reason):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    n = 59 if reason == "answers" else 60
    similar = np.arange(n) >= (2 if reason == "folds" else 20)
    width = 101 if reason == "features" else 100
    rows, y = stack_pairs(rng.normal(size=(2 * n, width)), np.arange(2 * n).reshape(-1, 2), similar, unlabeled=None)
    if reason == "lightgbm":
        monkeypatch.setitem(sys.modules, "lightgbm", None)
    found = why_linear(3 if reason == "classes" else 2, rows, AnswerGraph.from_y(y))
    assert [one.numbers() for one in found] == ([] if reason is None else [
        {"reason": reason, "limit": {"answers": 60, "features": 100}.get(reason)}
    ])  # fmt: skip


def test_a_reason_is_given_to_who_asked_or_may_change_the_table(curved, monkeypatch):
    table, answers, _ = curved
    reports = [fit_table(table, answers[:50], model=model).report for model in ("auto", None)]
    found = [[one.numbers() for one in report.findings if one.code == "linear_alone"] for report in reports]
    assert found == [[{"reason": "answers", "limit": 60}], []]
    assert [report.model_choice for report in reports] == [ModelChoice()] * 2
    monkeypatch.setattr("sdulearn.workflow.judge._MOST_FEATURES", 1)
    (found,) = [one for one in fit_table(table, answers[:60]).report.findings if one.code == "linear_alone"]
    assert found.numbers() == {"reason": "features", "limit": 1}
    # Other methods are linear without a word.
    report = fit_table(table, answers, model="auto", method="sd", prior=0.6).report
    assert not {"linear_alone", "prior_of_other_class"} & {one.code for one in report.findings}
    assert report.model_choice == ModelChoice()


@pytest.mark.parametrize("kind", ["linear", None])
def test_gaps_say_something(answers_about, tmp_path, monkeypatch, kind):
    """A column is missing in nine of ten rows of one class, and the days of the classes are in other years."""
    monkeypatch.undo()
    if kind != "linear":
        pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [120, 80]))
    missing = rng.random(200) < np.where(y == 1, 0.9, 0.1)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, 200) + 100 * y, unit="D")
    frame = pd.DataFrame(
        {"id": ids_of(np.arange(200)), "x": np.where(missing, np.nan, rng.normal(size=200)), "day": days}
    )
    ends = rng.integers(0, 200, (260, 2))
    answers = answers_about(y, ends[ends[:, 0] != ends[:, 1]][:250])
    model = fit_table(frame, answers, model=kind)
    found = model.predict(frame)
    assert max(np.mean((found == 1) == (y == k)) for k in (0, 1)) > 0.85
    assert model.columns.keep_gaps == (not hasattr(model.estimator, "coef_"))
    assert np.isnan(model.features(frame)).any() == model.columns.keep_gaps
    assert f"x ({missing.sum()})." in model.summary()
    assert model.report.importances[0].column == "x"
    model.save(tmp_path / "m.sdu")
    np.testing.assert_array_equal(load_model(tmp_path / "m.sdu").predict_proba(frame), model.predict_proba(frame))
    # Gaps that are new count as the mean, and are said.
    with pytest.warns(UnseenCategoryWarning, match="3 values are missing in column 'day'"):
        model.predict(frame.assign(day=days.where(np.arange(200) > 2)))
    with refuses("drop", shows=["'x'", "row "]):
        fit_table(frame, answers, model="linear", missing="error")
