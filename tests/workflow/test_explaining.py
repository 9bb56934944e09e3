"""What a model goes by: against the model itself on tables with one column changed, and on noise."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats.mstats import mquantiles

from sdulearn import PairLogisticRegression, fit_table, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.metrics import held_out, pair_importance
from sdulearn.metrics.cross_validation import fold_models
from sdulearn.tables.columns import Column, Columns
from sdulearn.workflow import judge
from sdulearn.workflow.judge import column_importances
from tests.reference import random_ends


@pytest.fixture(scope="module")
def mixed(answers_about):
    """A number, a column of noise, a category and yes or no, with answers about 300 rows."""
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.65
    frame = pd.DataFrame(
        {
            "id": [f"r{k}" for k in range(300)],
            "noise": rng.normal(size=300),
            "city": np.where(rng.random(300) < 0.6, np.where(truth, "Bonn", "Kiel"), "Oslo"),
            "age": 40 + 20 * truth + rng.normal(0, 10, 300),
            "member": rng.random(300) < np.where(truth, 0.7, 0.3),
        }
    )
    return frame, answers_about(truth, random_ends(rng, 300, 300))


@pytest.fixture(scope="module")
def linear(mixed):
    return fit_table(*mixed, model="linear")


def test_columns_are_worth_what_the_answers_lose_without_them(mixed, linear):
    worth = {one.column: one for one in linear.report.importances}
    assert set(worth) == {"noise", "city", "age", "member"}
    losses = [one.loss for one in linear.report.importances]
    assert losses == sorted(losses, reverse=True)
    for name in ("age", "city"):
        assert worth[name].loss > 3 * worth[name].error > 0
    assert abs(worth["noise"].loss) < 3 * worth["noise"].error + 0.01
    # A column without its values: the model of the others is so much worse.
    frame, answers = mixed
    without = fit_table(frame.drop(columns="age"), answers, model="linear")
    fall = linear.report.accuracy.value - without.report.accuracy.value
    assert 0.3 * worth["age"].loss < fall < worth["age"].loss + 0.03


@pytest.mark.parametrize("kind", ["linear", "boosted"])
def test_a_dependence_is_the_mean_over_tables_with_one_value(mixed, linear, kind):
    frame, answers = mixed
    model = linear if kind == "linear" else fit_table(frame, answers, model="boosted")
    assert {one.column for one in model.report.dependences} >= {"age", "city"}
    (age,) = (one for one in model.report.dependences if one.column == "age")
    np.testing.assert_allclose(age.values, np.linspace(*mquantiles(frame["age"], (0.05, 0.95)), 20))
    for one in model.report.dependences:
        for value, share in list(zip(one.values, one.probability, strict=True))[::5]:
            shown = value == "true" if one.column == "member" else value
            expected = model.predict_proba(frame.assign(**{one.column: shown}))[:, 1].mean()
            assert share == pytest.approx(expected, abs=1e-9)


def test_names_of_the_classes_come_before_the_dependences(mixed):
    frame, answers = mixed
    by_class = {}
    for first, second in (("a", "z"), ("z", "a")):
        labels = {"r0": first, "r1": first, "r2": second, "r3": first}
        model = fit_table(frame, answers[:80], labels=labels, model="linear")
        (age,) = [one for one in model.report.dependences if one.column == "age"]
        by_class[model.classes[1], first] = age.probability
        shown = frame.assign(age=age.values[-1])
        assert age.probability[-1] == pytest.approx(model.predict_proba(shown)[:, 1].mean())
    assert len(by_class) == 2


def test_the_columns_are_judged_by_models_that_did_not_see_the_answers(monkeypatch):
    """As they stand, they decide as held-out decisions do; point 0 is a hub, and decided by the model of all rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 40))
    ends = np.r_[np.column_stack([np.zeros(30, int), np.arange(1, 31)]), np.arange(40, 120).reshape(-1, 2)]
    rows, y = stack_pairs(X, ends, rng.random(70) < 0.55)
    graph = AnswerGraph.from_y(y)
    model = PairLogisticRegression(1e-2, covariance_power=0, prior=0.6).fit(rows, y)
    columns = Columns(tuple(Column(f"x{k}", "number") for k in range(40)), None, np.full(40, 2.0), np.full(40, 3.0))
    reference = model.decision_function(rows)
    parts = list(fold_models(model, rows, graph, reference, cv=5))
    decided = []

    def keep(estimator, X, y, **keywords):
        decided.append(estimator.decision_function(X))
        return pair_importance(estimator, X, y, **keywords)

    monkeypatch.setattr(judge, "pair_importance", keep)
    data = SimpleNamespace(X=3.0 * X + 2.0, stacked=(rows, graph), columns=columns)
    assert len(column_importances(model, parts, data)) == 15
    expected = held_out(model, rows, graph, reference, cv=5)
    asked = np.sort(graph.end_rows.ravel())
    np.testing.assert_allclose(decided[0], expected[asked])
    hub = y[asked, 1] == 0
    np.testing.assert_allclose(decided[0][hub], reference[asked][hub])
    assert not np.allclose(decided[0][~hub], reference[asked][~hub])


def test_more_classes_lose_agreement_and_have_no_dependence(answers_about):
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, 80)
    X = np.array([(0, 0), (5, 0), (0, 5)])[truth] + rng.normal(size=(80, 2))
    frame = pd.DataFrame({"id": [f"r{k}" for k in range(80)], "a": X[:, 0], "b": X[:, 1], "c": rng.normal(size=80)})
    model = fit_table(frame, answers_about(truth, random_ends(rng, 80, 60)), classes=3)
    worth = {one.column: one.loss for one in model.report.importances}
    # Without a column two of three classes look alike: a third of random pairs and more is taken for what it is not.
    assert min(worth["a"], worth["b"]) > 0.2
    assert abs(worth["c"]) < 0.05
    assert not model.report.dependences


def test_one_kind_of_answer_explains_nothing(mixed):
    frame, answers = mixed
    similar = fit_table(frame, answers[answers["label"]], method="su", prior=0.65).report
    assert similar.importances == similar.dependences == ()


def test_a_column_with_one_value_nearly_everywhere_is_drawn_along_all_it_has(mixed):
    frame, answers = mixed
    rng = np.random.default_rng(1)
    spikes = np.where(rng.random(300) < 0.08, rng.normal(size=300), 0.0)
    model = fit_table(frame.assign(spikes=spikes), answers, method="sd", loss="logistic")
    found = judge.column_dependences(model, model.features(frame.assign(spikes=spikes)), (
        judge.ColumnImportance("spikes", 1.0, 0.0),
    ))  # fmt: skip
    assert (found[0].values[0], found[0].values[-1]) == pytest.approx((spikes.min(), spikes.max()))
