"""Rows that were asked about: their classes by features and answers together."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table, load_model, stack_pairs
from sdulearn.answers import read_answers
from sdulearn.cli.main import main
from sdulearn.datasets import make_waveform
from sdulearn.tables import source as tables
from sdulearn.workflow import predict_table
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")


@pytest.fixture(scope="module")
def table():
    """200 rows with features that say little of their classes, and the classes."""
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.6
    X = rng.normal(size=(200, 2)) + 1.2 * y[:, None]
    return pd.DataFrame(X, columns=["a", "b"]).assign(id=[f"r{k}" for k in range(200)]), y


@pytest.fixture(scope="module")
def answers(table, answers_about):
    """16 rows, each compared with four others by three people: "bob" is wrong in every fourth answer."""
    ends = np.repeat(np.column_stack([np.repeat(np.arange(16), 4), np.arange(16, 80)]), 3, axis=0)
    found = answers_about(table[1], ends, annotator=np.tile(["ann", "bob", "cat"], 64))
    found.loc[1::12, "label"] = ~found.loc[1::12, "label"]
    return found


@pytest.fixture(scope="module")
def model(table, answers):
    return fit_table(table[0], answers, model="linear")


def predicted(model, *arguments, **options):
    """Ids, places, probabilities (of two classes that of the second) and numbers of answers."""
    found = list(predict_table(model, *arguments, **options))
    columns = ([name for one in found for name in one.ids.to_pylist()],)
    for name in ("place", "probability", "n_answers"):
        columns += (np.concatenate([getattr(one, name) for one in found]),)
    ids, place, probability, n_answers = columns
    return ids, place, probability if probability.shape[1] > 2 else probability[:, 1], n_answers


def test_asked_rows_are_known_better_than_by_their_features(model, table, answers):
    frame, y = table
    asked = model.answered
    assert list(asked) == ["id", "class", "probabilities", "n_answers"]
    rows = [int(name[1:]) for name in asked["id"]]
    assert rows == sorted(set(answers[["id_a", "id_b"]].stack().str[1:].astype(int)))
    assert asked["n_answers"].tolist() == [int((answers[["id_a", "id_b"]] == f"r{k}").sum().sum()) for k in rows]
    X = model.columns.scaled(model.features(frame))
    ends = answers[["id_a", "id_b"]].apply(lambda column: column.str[1:].astype(int)).to_numpy()
    who = np.tile([1, 2, 3], 64)
    stacked, known = stack_pairs(X, ends, answers["label"], unlabeled=np.arange(200), annotators=who)
    by_row = dict(zip(known[:, 1].tolist(), model.estimator.posterior(stacked, known), strict=True))
    np.testing.assert_allclose(asked["probabilities"], [by_row[k] for k in rows])
    np.testing.assert_array_equal(asked["class"], np.array([-1, 1])[asked["probabilities"].argmax(axis=1)])
    right = np.mean((asked["class"] == 1) == y[rows])
    assert right > 0.92 > 0.88 > np.mean((model.predict(frame) == 1)[rows] == y[rows])


@pytest.mark.parametrize("options", [{"model": "linear"}, {"method": "sdsu", "loss": "logistic", "prior": 0.6}])
def test_the_unit_of_weights_does_not_matter(table, answers, options):
    """Unlabeled rows weigh as much as the mean answer, whatever the unit."""
    frame, _ = table
    weights = np.random.default_rng(0).integers(1, 4, len(answers))
    fits = [fit_table(frame, answers.assign(weight=unit * weights), **options) for unit in (1.0, 1000.0)]
    np.testing.assert_allclose(*(model.predict_proba(frame) for model in fits), atol=1e-4)
    values = [(model.report.accuracy.value, model.report.accuracy.low, model.report.prior.value) for model in fits]
    np.testing.assert_allclose(*values, atol=1e-4)


def test_weights_count(table, answers):
    """An answer that weighs next to nothing says next to nothing."""
    frame, _ = table
    lone = pd.DataFrame({"id_a": ["r150"], "id_b": ["r0"], "label": [True], "annotator": ["ann"]})
    found = []
    for weight in (1e-9, 1.0):
        model = fit_table(
            frame, pd.concat([answers.assign(weight=1.0), lone.assign(weight=weight)]), error_rate=0.1, model="linear"
        )
        found.append(abs(model.answered["probabilities"] - model.asked.unseen)[-1, 1])
    assert found[0] < 1e-6 < 0.01 < found[1]


def test_weights_of_new_answers_count(model, table):
    """Of two new answers the one that weighs next to nothing changes nothing, whichever it is."""
    frame, _ = table
    plain = model.predict_proba(frame)[:, 1]
    pairs = pd.DataFrame({"id_a": ["r150", "r152"], "id_b": ["r151", "r153"], "label": ["same", "same"]})
    for weights in ([1.0, 1e-9], [1e-9, 1.0], [0.0, 1.0]):
        moved = abs(predicted(model, frame, answers=pairs.assign(weight=weights))[2] - plain)[[150, 152]]
        assert moved[int(np.argmin(weights))] < 1e-6 < 1e-3 < moved[int(np.argmax(weights))]


def test_the_answers_of_the_fit_give_what_the_fit_gave(model, table, answers, tmp_path, monkeypatch):
    """As a frame, and from files that are read in pieces, both ends of an answer in different ones."""
    frame, _ = table
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=30)
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(tables, "BATCH_ROWS", 17)
    model.save(tmp_path / "m.sdu")
    place = {name: k for k, name in enumerate(model.answered["id"])}
    plain = model.predict_proba(frame)[:, 1]
    for used, source in (
        (model, frame),
        (load_model(tmp_path / "m.sdu"), tmp_path / "t.csv"),
        (model, tmp_path / "t.parquet"),
    ):
        ids, classes, probability, n_answers = predicted(used, source, answers=answers)
        assert ids == frame["id"].tolist()
        for k, name in enumerate(ids):
            expected = model.answered["probabilities"][place[name], 1] if name in place else plain[k]
            assert probability[k] == pytest.approx(expected, abs=1e-5)
            assert n_answers[k] == (model.answered["n_answers"][place[name]] if name in place else 0)
        np.testing.assert_array_equal(classes, probability > 0.5)
    assert next(predict_table(model, frame)).n_answers is None


def test_annotators_go_by_their_names(model, table):
    """Whom the model does not know has the rate of all; a private answer the rate of its flips."""
    frame, _ = table
    rates = {one.name: one.rate for one in model.report.annotators}
    assert rates["ann"] < 0.1 < rates["bob"]
    p, q = model.predict_proba(frame)[[150, 151], 1]

    def expected(wrong):
        same, different = p * q + (1 - p) * (1 - q), p * (1 - q) + (1 - p) * q
        both = (1 - wrong) * same + wrong * different
        return p * ((1 - wrong) * q + wrong * (1 - q)) / both

    asked = pd.DataFrame({"id_a": ["r150"], "id_b": ["r151"], "label": ["same"]})
    whole = model.estimator.answer_model_.error_rate
    by_name = {}
    for name, rate in (*((one.name, one) for one in model.report.annotators), ("eve", whole), ("", whole)):
        by_name[name] = predicted(model, frame, answers=asked.assign(annotator=name))[2][150]
        # The mean over the interval of the rate.
        low, high = sorted([expected(rate.low), expected(rate.high)])
        assert low <= by_name[name] <= high
    assert by_name["ann"] != by_name["eve"] == by_name[""] == predicted(model, frame, answers=asked)[2][150]
    flipped = replace(read_answers(asked.assign(annotator="bob")), epsilon=1.0)
    assert predicted(model, frame, answers=flipped)[2][150] == pytest.approx(expected(1 / (1 + np.e)))


def test_a_certain_answer_says_more_than_a_guess(model, table):
    frame, _ = table
    asked = pd.DataFrame({"id_a": ["r150", "r152"], "id_b": ["r151", "r153"], "label": ["same", "same"]})
    plain = model.predict_proba(frame)[:, 1]
    moved = {}
    for sure in ((0.9, 0.6), (0.75, 0.75), (0.6, 0.9), None):
        given = asked if sure is None else asked.assign(confidence=sure)
        moved[sure] = abs(np.array(predicted(model, frame, answers=given)[2]) - plain)[[150, 152]]
    assert moved[0.9, 0.6][0] > moved[0.75, 0.75][0] > moved[0.6, 0.9][0] > 0
    assert moved[0.9, 0.6][1] < moved[0.75, 0.75][1] < moved[0.6, 0.9][1]


def test_row_numbers_and_three_classes(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 80)
    X = np.eye(3)[y] + rng.normal(size=(80, 3))
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    ends = rng.permutation(80)[:60].reshape(-1, 2)
    answers = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": y[ends[:, 0]] == y[ends[:, 1]]})
    model = fit_table(tmp_path / "t.csv", answers, classes=3, error_rate=0.05)
    _, _, probability, n_answers = predicted(model, tmp_path / "t.csv", answers=answers)
    np.testing.assert_allclose(probability[n_answers > 0], model.answered["probabilities"], atol=1e-4)
    assert n_answers.sum() == 60


def test_answers_that_cannot_be_used(model, table, answers):
    frame, _ = table
    with refuses(shows=["192"]):
        predicted(model, frame, answers=answers, id_column="")
    some = predicted(model, frame[:30], answers=answers, skip_bad=True)
    assert 0 < some[3].sum() < 384
    for some in (answers[:0], answers.assign(label="unsure")):
        with refuses():
            predicted(model, frame, answers=some)
    with refuses(shows=["'r1'", "2"]):
        predicted(model, pd.concat([frame, frame[1:2]]), answers=answers)
    X, y = make_waveform(300, random_state=0)
    waves = pd.DataFrame(X, columns=[f"x{k}" for k in range(21)]).assign(id=np.arange(300))
    loose = pd.DataFrame({"id_a": np.arange(0, 300, 2), "id_b": np.arange(1, 300, 2), "label": y[::2] == y[1::2]})
    risk = fit_table(waves, loose, method="sddu", loss="logistic")
    assert risk.answered is None
    with refuses("method='joint'"):
        predicted(risk, waves, answers=loose)
    certain = fit_table(waves, loose, error_rate=0.0, model="linear")
    odd = pd.DataFrame({"id_a": [0, 1, 2], "id_b": [1, 2, 0], "label": [True, True, False]})
    with refuses("error_rate=0.05"):
        predicted(certain, waves, answers=odd)


@pytest.mark.parametrize("sure", [False, True])
def test_people_gave_answers_to_questions_not_the_pairs_that_these_imply(table, sure, tmp_path, capsys):
    """Sets of five rows, sorted by two people: each answer implies ten pairs."""
    frame, y = table
    sets = np.random.default_rng(1).permutation(200).reshape(40, 5)
    groups = [[";".join(f"r{k}" for k in rows[y[rows] == side]) for side in (False, True)] for rows in sets]
    answers = pd.DataFrame(
        {
            "items": [";".join(f"r{k}" for k in rows) for rows in sets],
            "groups": ["|".join(filter(None, names)) for names in groups],
            "annotator": ["ann"] * 30 + ["bob"] * 10,
        }
    )
    if sure:
        answers["confidence"] = np.tile([0.8, 0.9], 20)
    report = fit_table(frame, answers, model="linear", classes=2).report
    assert {person.name: person.n_answers for person in report.annotators} == {"ann": 30, "bob": 10}
    if not sure:
        left_out = fit_table(frame, answers, model="linear", classes=2, exclude_annotators=["bob"]).report.findings[0]
        assert left_out.n_answers == 10
    answers.to_csv(tmp_path / "a.csv", index=False)
    main(["check", str(tmp_path / "a.csv"), "--json"])
    found = {finding["code"]: finding["numbers"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert {person["name"]: person["n_answers"] for person in found["people"]["people"]} == {"ann": 30, "bob": 10}
    assert found["crowd"]["answers_each"] == [10, 20, 30]
