"""fit_table on frames of every kind."""

import json
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer

from sdulearn import PriorEstimate, errors, fit_table, load_model
from sdulearn.answers import classes_of_answers, read_answers
from sdulearn.asking import ask
from sdulearn.datasets import make_waveform
from sdulearn.errors import InputError, OrientationWarning
from sdulearn.workflow.judge import choose

pytestmark = pytest.mark.usefixtures("no_importances")


@pytest.fixture(scope="module")
def frames(answers_about):
    """600 waveforms with ids, a text and a true/false column, and 190 answers."""
    X, y = make_waveform(3000, random_state=1)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X[:600], columns=[f"x{k}" for k in range(21)])
    table = table.assign(id=[f"r{k}" for k in range(600)], city=rng.choice(["Oslo", "Rome"], 600), member=y[:600] > 0)
    return table, answers_about(y, rng.permutation(600)[:380].reshape(-1, 2))


@pytest.fixture(scope="module")
def model(frames):
    return fit_table(*frames, method="sddu")


KINDS = {
    "polars": lambda table, answers: (pl.from_pandas(table), pl.from_pandas(answers)),
    "pyarrow": lambda table, answers: (pa.Table.from_pandas(table), pa.Table.from_pandas(answers)),
    "index": lambda table, answers: (table.set_index("id"), answers),
    "category": lambda table, answers: (table.astype({"city": "category"}), answers),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_from_every_kind_of_frame(frames, model, kind):
    """Files are in tests/test_everyday_files.py."""
    table, answers = frames
    other = fit_table(*KINDS[kind](table, answers), method="sddu")
    assert other.columns.id_column == "id"
    assert other.columns.feature_names == model.columns.feature_names
    np.testing.assert_allclose(other.estimator.coef_, model.estimator.coef_, rtol=1e-6, atol=1e-9)
    assert other.report.accuracy == model.report.accuracy
    np.testing.assert_array_equal(other.predict(pl.from_pandas(table)), model.predict(table))


THREE = {"r0": "a", "r1": "b", "r2": "c"}


@pytest.mark.parametrize(
    "change",
    [{"method": "x"}, {"loss": "x"}, {"missing": "x"}, {"model": "x"}, {"prior": 1}, {"labels": {"zzz": "a"}},
     {"categories": ["zzz"]}, {"text": ["zzz"]}, {"drop": "x0"}, {"text": "x0"}, {"classes": 1}, {"classes": 2.5},
     {"classes": 3, "method": "sd"}, {"classes": "auto", "prior": 0.7}, {"labels": THREE, "method": "sd"},
     {"labels": THREE, "prior": 0.7}, {"labels": THREE, "classes": 2}, {"model": "boosted", "method": "sd"}],
)  # fmt: skip
def test_bad_choices(frames, change):
    with pytest.raises(InputError):
        fit_table(*frames, **change)


def test_bad_tables_and_answers(frames):
    table, answers = frames
    with pytest.raises(InputError, match="ndarray cannot be used as one"):
        fit_table(table.to_numpy(), answers)
    with pytest.raises(InputError, match=r"columns such as id_a, id_b and label; got list"):
        fit_table(table, [("r1", "r2", True)])
    odd = table.assign(raw=[b"x"] * len(table), x0=np.inf, note=[f"n{k}" for k in range(len(table))])
    with pytest.raises(InputError, match=r"3 problems.*'x0' \(row 1\).*'raw' \(binary.*`drop`.*'note' \(600\)"):
        fit_table(odd, answers)
    with pytest.raises(InputError, match=r"0 similar and 0 dissimilar pairs to use; .* Ask about more pairs\.$"):
        fit_table(table, answers.assign(label="unsure"))
    for kind, risk in ((True, "su"), (False, "du")):
        with pytest.raises(InputError, match=f"pairs to use; .* `method='{risk}'` with a known `prior` learns from it"):
            fit_table(table, answers[answers["label"] == kind][:2])


@pytest.mark.parametrize("labels", [None, {"r0": "no"}])
def test_warnings_of_a_fit_are_findings(frames, monkeypatch, labels):
    """Each once; that of uncertain names only where nothing names the classes."""

    def warn(*given):
        for _ in range(2):
            warnings.warn("look out", UserWarning, stacklevel=1)
            errors.warn("which is +1?", OrientationWarning)
        return choose(*given)

    monkeypatch.setattr("sdulearn.workflow.judge.choose", warn)
    found = fit_table(*frames, method="sddu", prior=0.7, labels=labels).report.findings
    shown = [(one.code, one.numbers()) for one in found if one.code in ("fit_warning", "names_uncertain")]
    noted = ("fit_warning", {"category": "UserWarning", "message": "look out"})
    assert shown == ([("names_uncertain", {}), noted] if labels is None else [noted])


def test_warnings_of_a_fit_are_found_while_another_thread_chooses_questions():
    """The filters of Python's warnings belong to all threads; a fit and a session must not share them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(id=[f"r{k}" for k in range(200)])
    ends = rng.permutation(200)[:100].reshape(-1, 2)
    answers = pd.DataFrame(np.char.add("r", ends.astype(str)), columns=["id_a", "id_b"])
    # No model is better than guessing.
    answers["label"] = np.where(rng.random(50) < 0.5, "same", "different")

    def codes():
        return sorted(str(one) for one in fit_table(table, answers, model="linear").report.findings)

    alone = codes()
    assert any("UselessModelWarning" in one for one in map(repr, fit_table(table, answers).report.findings))
    shown = warnings.showwarning
    over = threading.Event()

    def ask_on():
        seed = 0
        while not over.is_set():
            ask(X, lambda left, right: (left + right) % 2 == 0, 6, random_state=seed).model()
            seed += 1

    asking = threading.Thread(target=ask_on)
    asking.start()
    try:
        together = [codes() for _ in range(3)]
    finally:
        over.set()
        asking.join()
    assert together == [alone] * 3
    assert warnings.showwarning is shown


def test_labels_name_the_classes_and_are_doubted_where_the_model_predicts_too_few(frames):
    """By the column "member", which is the class; a third of the labels that are wrong is too many."""
    table, answers = frames
    right = dict(zip(table["id"][:60], np.where(table["member"][:60], "yes", "no"), strict=True))
    other = {"yes": "no", "no": "yes"}
    wrong = {name: other[label] if k < 24 else label for k, (name, label) in enumerate(right.items())}
    codes = []
    for labels, prior in ((right, 0.4), (right, 0.6), (wrong, 0.4)):
        model = fit_table(table, answers, method="sd", prior=prior, labels=labels)
        assert (model.classes, model.report.method) == (("no", "yes"), "sd")
        codes.append({one.code for one in model.report.findings} & {"labels_disagree", "prior_of_other_class"})
        predicted = model.predict(table)
        assert np.mean((predicted == "yes") == table["member"]) > 0.9
        assert model.report.n_labels_right == np.sum(predicted[:60] == list(labels.values())) > 30
    share = np.mean(table["member"])
    assert codes[:2] == ([set(), {"prior_of_other_class"}] if share < 0.5 else [{"prior_of_other_class"}, set()])
    assert "labels_disagree" in codes[2]


def test_columns_that_say_nothing_are_left_out_and_named(frames, model):
    table, answers = frames
    assert "passed_over" not in [one.code for one in model.report.findings]
    report = fit_table(table.assign(empty=np.nan), answers, method="sddu").report
    assert [one.numbers()["columns"] for one in report.findings if one.code == "passed_over"] == [["empty"]]


@pytest.mark.parametrize("design", ["40 points", "star"])
def test_answers_that_share_points_do_not_flatter_the_model(answers_about, design):
    """By folds of pairs it would be 100% (99% to 100%) here: the model has seen every point in another answer."""
    X, y = make_waveform(700, random_state=2)
    table = pd.DataFrame(X).add_prefix("x").assign(id=[f"r{k}" for k in range(700)])
    ends = np.random.default_rng(0).integers(0, 40, (150, 2))
    if design == "star":
        ends = np.column_stack([np.zeros(120, dtype=int), np.arange(1, 121)])
    ends = ends[ends[:, 0] != ends[:, 1]][:120]
    model = fit_table(table, answers_about(y, ends), model="linear", max_unlabeled=300)
    right = right_of(model, table[130:], y[130:])
    found = model.report.accuracy
    assert found.low - 0.01 <= right <= found.high + 0.01
    assert found.value < 0.97
    assert "shared_points" in [finding.code for finding in model.report.findings]


def test_one_slip_in_fifty_linked_answers_is_reported_and_costs_nothing(answers_about):
    X, y = load_breast_cancer(return_X_y=True)
    table = pd.DataFrame(X).add_prefix("x").assign(id=[f"r{i}" for i in range(len(X))])
    order = np.random.default_rng(0).permutation(len(X))
    answers = answers_about(y, np.column_stack([np.full(50, order[0]), order[1:51]]))
    # The first question once more, answered the other way.
    slip = answers[:1].assign(label=~answers["label"][:1])
    model = fit_table(table, pd.concat([answers, slip]), model="linear")
    rest = order[51:]
    right = np.mean(np.asarray(model.predict(table.iloc[rest])).astype(int) == 2 * y[rest] - 1)
    assert right > 0.93
    assert model.report.accuracy.low < right < model.report.accuracy.high
    assert model.report.accuracy.high - model.report.accuracy.low < 0.3
    (people,) = model.report.annotators
    assert 0 < people.rate < 0.05
    assert "contradictions" in [one.code for one in model.report.findings]


def write_log(path, ends, kinds, classes):
    """A log of `sdulearn ask`: the ids of two rows, why they were asked about, and whether they are of one class."""
    lines = []
    for number, ((left, right), kind) in enumerate(zip(ends, kinds, strict=True), 1):
        answer = "same" if classes[left] == classes[right] else "different"
        line = {"event": "answer", "number": number, "left": f"r{left}", "right": f"r{right}", "answer": answer}
        lines.append({**line, "annotator": "", "session": "s", **({} if kind is None else {"kind": kind})})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def chosen():
    """800 rows, 70% of them of one class, and 160 linked questions: 40 random, the others where nobody can be sure."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    logit = 4 * X[:, 0] + 2.2
    y = np.where(rng.random(800) < 1 / (1 + np.exp(-logit)), 1, -1)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(id=[f"r{k}" for k in range(800)])
    drawn = rng.permutation(800)[:41]
    order = np.argsort(np.abs(logit))
    hard = order[~np.isin(order, drawn)][:120]
    left = np.r_[hard, drawn[:-1]]
    kinds = np.array(["linked"] * 120 + ["random"] * 40)
    mixed = rng.permutation(160)
    return table, y, np.column_stack([left, np.full(160, drawn[-1])])[mixed], kinds[mixed]


def right_of(model, table, y):
    right = np.mean(model.predict(table).astype(int) == y)
    return max(right, 1 - right)


def test_chosen_questions_train_and_random_ones_judge(chosen, tmp_path):
    table, y, ends, kinds = chosen
    model = fit_table(table, write_log(tmp_path / "log.jsonl", ends, kinds, y), model="linear")
    found = model.report.accuracy
    assert (found.n_answers, found.basis) == (40, "random questions")
    assert found.value == pytest.approx(right_of(model, table, y), abs=0.05)
    assert found.low < right_of(model, table, y) < found.high
    prior = model.report.prior
    assert prior.value == pytest.approx(np.mean(y > 0), abs=0.1)
    assert prior.low < np.mean(y > 0) < prior.high
    assert prior == model.estimator.prior_
    codes = [finding.code for finding in model.report.findings]
    # 120 of the 800 rows: the random questions of `ask` would pass over them.
    assert "many_chosen" in codes
    # The random rows are a random draw, whatever the chosen ones are.
    assert not {"other_population", "too_few_similar", "few_random"} & set(codes)
    # As if all had been random, it would be another number.
    every = fit_table(table, write_log(tmp_path / "all.jsonl", ends, ["random"] * 160, y), model="linear")
    assert every.report.accuracy.high < right_of(model, table, y)
    assert every.report.prior.value < prior.value - 0.05


@pytest.mark.parametrize("kind", ["linked", None])
def test_without_random_questions_nothing_is_claimed(chosen, tmp_path, kind):
    """Of unknown kind is not random either."""
    table, y, ends, _ = chosen
    model = fit_table(table, write_log(tmp_path / "log.jsonl", ends, [kind] * 160, y), model="linear")
    found = model.report.accuracy
    assert (found.low, found.high, found.n_answers) == (0.5, 1.0, 0)
    assert model.report.prior == PriorEstimate(0.5, 0.0, 1.0, False, 0.0, 0.0, 0.95, 0.0)
    (few,) = [finding for finding in model.report.findings if finding.code == "few_random"]
    assert (few.severity, few.n_random) == ("warning", 0)
    assert right_of(model, table, y) > 0.8
    model.save(tmp_path / "model.sdu")
    assert load_model(tmp_path / "model.sdu").report == model.report


def test_the_risks_of_the_paper_refuse_chosen_questions(chosen, tmp_path):
    table, y, ends, kinds = chosen
    with pytest.raises(InputError, match="120 of the 160 questions were chosen, and `method='sddu'` assumes random"):
        fit_table(table, write_log(tmp_path / "log.jsonl", ends, kinds, y), method="sddu")


def test_three_classes_are_judged_by_random_questions(tmp_path):
    """Ten rows at each centre were chosen and are easy; of the random rows one in five lies at another's centre."""
    rng = np.random.default_rng(0)
    y = np.r_[np.repeat([0, 1, 2], 10), rng.integers(0, 3, 300)]
    near = np.where(rng.random(330) < 0.2, (y + 1) % 3, y)
    near[:30] = y[:30]
    table = pd.DataFrame(4 * np.eye(3)[near] + rng.normal(scale=0.5, size=(330, 3)), columns=["a", "b", "c"])
    table["id"] = [f"r{k}" for k in range(330)]
    ends = [(left, example) for left in range(90) for example in (0, 10, 20) if left != example]
    kinds = ["random" if left >= 30 else "linked" for left, _ in ends]
    log = write_log(tmp_path / "log.jsonl", ends, kinds, y)
    found = fit_table(table, log, classes=3).report.agreement
    assert found.basis == "random questions"
    assert found.accuracy.low < 0.8 < found.accuracy.high < 1
    assert found.accuracy.n < 60


def test_answers_with_a_certainty(answers_about):
    """Loose pairs: certainties that the model does not contradict are kept, with one line for each person."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 300)
    table = pd.DataFrame(rng.normal(size=(300, 2)) + y[:, None], columns=["u", "v"])
    table["id"] = [f"r{k}" for k in range(300)]
    certainty = np.tile([0.6, 0.8, 0.9, 0.95], 25)
    people = np.repeat(["Ann", "Bob"], 50)
    truth = answers_about(y, rng.permutation(300)[:200].reshape(-1, 2), annotator=people, confidence=certainty)
    wrong = rng.random(100) > certainty
    answers = truth.assign(label=truth["label"] ^ wrong)
    model = fit_table(table, answers, model="linear")
    found = {one.name: (one.rate, one.n_answers) for one in model.report.annotators}
    assert found == {name: (pytest.approx(1 - certainty[people == name].mean()), 50) for name in ("Ann", "Bob")}
    assert {one.annotator for one in model.report.doubtful} <= {"Ann", "Bob"}
    assert right_of(model, table, y) > 0.85
    given = fit_table(table, answers, model="linear", error_rate=0.1).report.annotators
    assert [one.rate for one in given] == [0.1, 0.1]
    with pytest.raises(InputError, match="answers with a certainty needs the joint likelihood"):
        fit_table(table, answers, method="sd")


def test_how_often_answers_are_wrong_is_not_what_their_certainties_say(answers_about):
    """Nobody is ever wrong, whatever certainty they state: at their word a quarter would be, and the model perfect."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 2000, p=[0.4, 0.6])
    table = pd.DataFrame(rng.normal(size=(2000, 2)) + y[:, None], columns=["u", "v"])
    table["id"] = [f"r{k}" for k in range(2000)]
    answers = answers_about(y, rng.permutation(2000)[:400].reshape(-1, 2), certainty=rng.integers(1, 4, 200))
    model = fit_table(table, answers, model="linear")
    found = model.report
    assert found.accuracy.low < right_of(model, table, y) < found.accuracy.high < 1
    assert found.error_rate.low < 0.01 < found.error_rate.high < 0.2
    assert found.prior.low < np.mean(y > 0) < found.prior.high
    # Answers alone, of which none can be compared with another, tell nothing.
    assert not classes_of_answers(read_answers(answers), 2)[1].error_rate.identified


@pytest.mark.parametrize("error_rate", [0.0, 0.05, 0.3, 0.45])
def test_an_error_rate_that_the_answers_contradict_is_a_warning(answers_about, error_rate):
    """Nobody is wrong and the classes are far apart: the model agrees with more answers than would be right."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 300)
    table = pd.DataFrame(rng.normal(size=(300, 2)) + 2 * y[:, None], columns=["u", "v"])
    table["id"] = [f"r{k}" for k in range(300)]
    answers = answers_about(y, rng.permutation(300)[:200].reshape(-1, 2))
    codes = {one.code for one in fit_table(table, answers, model="linear", error_rate=error_rate).report.findings}
    assert ("error_rate_too_high" in codes) == (error_rate > 0.1)
