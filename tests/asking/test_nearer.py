"""Forced choices: a likelihood of the class of one point, and never a pair."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_iris

from sdulearn import fit_table
from sdulearn.answer_files.download import as_csv
from sdulearn.answer_files.log import log_answers, read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import check_answers, classes_of_answers, read_answers
from sdulearn.answers.records import Question, implied_pairs, read_reply
from sdulearn.asking import Asker, ask
from sdulearn.asking.points import Points
from sdulearn.asking.session import Session, continue_asker
from sdulearn.asking.state import FORCED, State, first_settings
from sdulearn.errors import InputError, UndeterminedError
from tests.made import made


def chooser(y, wrong=0.0, seed=0):
    """Somebody who knows the classes, and guesses about items of a third class."""
    rng = np.random.default_rng(seed)

    def choose(item, first, second):
        chance = 1 - wrong if y[first] == y[item] else wrong if y[second] == y[item] else 0.5
        return int(rng.random() >= chance)

    return choose


def seeds_of(y, n=2):
    return [np.flatnonzero(y == k)[:n].tolist() for k in np.unique(y)]


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_a_model_is_learned_from_forced_choices_alone(load, wrong):
    X, y = load(return_X_y=True)
    seeds = seeds_of(y)
    asker = ask(X, chooser(y, wrong), 100, design="nearer", n_classes="auto", seeds=seeds, random_state=1)
    assert {answer.question.form for answer in asker.given} == {"nearer"}
    for answer in asker.given:
        first, second = answer.choices
        assert {first, second} <= {point for points in seeds for point in points}
        assert y[first] != y[second]
    names = {one.number: next(y[k] for points in seeds for k in points if k in asker.members(one.examples[0]))
             for one in asker.classes()}  # fmt: skip
    names |= {-1: names[2]} if len(names) == 2 else {}
    right = np.mean([names[k] for k in asker.model().predict(X)] == y)
    assert right > (0.85 if wrong else 0.93)
    if len(seeds) == 2:
        found = asker.accuracy()
        assert found.low <= right <= found.high
        assert (asker.error_rate() > 0) == (wrong > 0)
    else:
        # A choice between two of three classes does not tell the class.
        assert np.isnan([one.share for one in asker.classes()]).all()
        with pytest.raises(UndeterminedError):
            asker.accuracy()
    assert len(asker.labels()) == len(y)


def test_the_likelihood_is_that_of_the_class():
    """1 - e, e, and 1/2 for a class that was not shown, by enumeration; match answers beside it count as ever."""
    X, _ = load_iris(return_X_y=True)
    answers = (
        read_reply(Question("nearer", (10, 0, 50)), 0),
        read_reply(Question("nearer", (10, 100, 0)), 1),
        read_reply(Question("nearer", (60, 50, 100)), 0),
        made(110, (0, 50, 100), 2),
        read_reply(Question("nearer", (110, 0, 100)), 0),
    )
    state = State(
        Points(X, np.random.default_rng(0)), answers, 3, first_settings(3), ((0,), (50,), (100,)), n_choices=FORCED
    )
    e = 0.2
    likelihood = state.likelihood_at(np.array([e]))
    row = {point: k for k, point in enumerate(state.known.tolist())}
    expected = {
        10: [(1 - e) ** 2, e / 2, e / 2],
        60: [1 / 2, 1 - e, e],
        110: [e / 3 * (1 - e), e / 3 / 2, (1 - e) * e],
    }
    for point, values in expected.items():
        np.testing.assert_allclose(likelihood[row[point]], np.log(values))
    assert {point: state.classes.label[point] for point in expected} == {10: 0, 60: 1, 110: 2}
    assert not np.isin(implied_pairs(state.answers).ends, [10, 60]).any()
    np.testing.assert_allclose(logsumexp(np.log(state.by_answers()), axis=1), 0, atol=1e-9)


def test_no_code_path_makes_a_pair_of_a_forced_choice(tmp_path):
    """Through the store, the log, the download, the Asker of every design, checks, classes and a fit."""
    X, y = load_iris(return_X_y=True)
    ids = [f"r{k}" for k in range(150)]
    store = AnswerStore(tmp_path / "log.jsonl")
    for k in (0, 50, 100):
        store.label({ids[k]: str(y[k])}, seed=True)
    session = Session(continue_asker(X, store, ids, design="nearer", n_classes=3, random_state=0))
    choose = chooser(y)
    for k in range(30):
        token, question = session.question("ann")
        assert session.answer("ann", token, "same") is None if token < 0 else True
        reply = "unsure" if k == 7 else choose(*question.items)
        with pytest.raises(InputError):
            session.answer("ann", token, "same")
        session.answer("ann", token, reply)
    key = session.last_of("ann")
    session.change(key, 1, "ann")
    session.undo("ann")
    assert read_log(store.path) == session.store.contents
    given = session.asker.given
    assert not len(implied_pairs(given).ends)
    assert not session.asker.stack()[1].any(axis=0)[0]
    assert not len(implied_pairs(session.asker._now.answers).ends)
    assert session.numbers(wait=True)["n_same"] == session.numbers()["n_different"] == 0
    assert session.numbers()["n_unsure"] == 1
    session.close()
    for design, n_classes in (("match", 3), ("sort", 3), ("linked", 2), ("random", 2)):
        rows = [answer for answer in given if not answer.is_unsure]
        other = Asker(X, design=design, n_classes=n_classes, answers=rows, random_state=0)
        assert not other.stack()[1].any(axis=0)[0]
        assert other.classes() == [] if design != "random" else True
        other.next()
        for estimate in (other.accuracy, other.model):
            with pytest.raises(UndeterminedError):
                estimate()
    (tmp_path / "page.csv").write_text(as_csv(read_log(store.path)))
    chosen = [[ids[k] for k in (answer.left, answer.choices[answer.nearer], answer.choices[1 - answer.nearer])]
              for answer in given if not answer.is_unsure]  # fmt: skip
    for path in (store.path, tmp_path / "page.csv"):
        answers = read_answers(path)
        assert answers.answers.astype(bool).sum() == 0
        assert answers.nearer.tolist() == chosen
        assert not check_answers(answers).disagreements
        with pytest.raises(InputError):
            classes_of_answers(answers)
    # Other programs see a label that is neither "same" nor "different".
    frame = pd.read_csv(tmp_path / "page.csv")[["id_a", "id_b", "label"]]
    with pytest.raises(InputError):
        read_answers(frame[frame["label"] == "nearer"])
    table = pd.DataFrame(X, columns=list("abcd")).assign(id=ids)
    with pytest.raises(InputError):
        fit_table(table, store.path)


def test_a_fit_says_that_it_does_not_use_them(tmp_path, no_importances):
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    line = {"event": "answer", "why": "random", "session": "s"}
    lines = [{**line, "number": k, "form": "pair", "items": [f"r{2 * k}", f"r{2 * k + 1}"],
              "groups": [0, int(y[2 * k] != y[2 * k + 1])]} for k in range(60)]  # fmt: skip
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    lines += [{**line, "number": 100 + k, "form": "nearer", "items": [f"r{200 + k}", "r0", "r5"],
               "nearer": int(rng.integers(2))} for k in range(20)]  # fmt: skip
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    table = pd.DataFrame(X).add_prefix("x").assign(id=[f"r{k}" for k in range(len(X))])
    models = [fit_table(table, tmp_path / name, model="linear") for name in ("pairs.jsonl", "both.jsonl")]
    np.testing.assert_array_equal(*(model.estimator.coef_ for model in models))
    found = [finding for finding in models[1].report.findings if finding.code == "forced_choices_unused"]
    assert [finding.count for finding in found] == [20]
    assert "forced_choices_unused" not in {finding.code for finding in models[0].report.findings}


def test_forced_choices_need_examples_of_all_classes():
    X, _ = load_iris(return_X_y=True)
    for options in ({}, {"seeds": [0]}, {"seeds": [0, 50], "n_classes": 3}, {"seeds": [0, 50, 100], "n_classes": 2}):
        with pytest.raises(InputError):
            Asker(X, design="nearer", **options)
    asker = Asker(X, design="nearer", seeds=[0, 50, 100], n_classes=3, random_state=0)
    question = asker.next()
    asker.tell(question, 1)
    undone = asker.undo()
    assert (undone.question, undone.reply, asker.next()) == (question, 1, question)
    asker.tell(question, "unsure")
    assert asker.next().left != question.left
    answers = log_answers("memory", asker.store.contents)
    assert (len(answers.ids), answers.nearer) == (0, None)
