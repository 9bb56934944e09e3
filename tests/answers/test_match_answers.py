"""Answers that compare most points once with an example of each class, and are wrong at times."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, fit_table
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.graph import classes_of_examples
from sdulearn.asking import Asker, ask
from sdulearn.errors import SdulearnWarning

pytestmark = pytest.mark.filterwarnings(f"ignore::{SdulearnWarning.__module__}.SdulearnWarning")
WRONG = 0.2


@pytest.fixture(scope="module")
def doubtful(matcher):
    """An Asker after 150 answers about six digits, a fifth of them wrong, and the digits."""
    X, y = load_digits(n_class=6, return_X_y=True)
    return ask(X, matcher(y, wrong=WRONG, seed=1), 150, n_classes="auto", random_state=1), y


def share_right(p, y):
    """The share of rows in their likeliest class, each named after most of its rows."""
    likeliest = p.argmax(axis=1)
    names = [np.bincount(y[likeliest == k], minlength=1).argmax() for k in range(p.shape[1])]
    return np.mean(np.array(names)[likeliest] == y)


@pytest.mark.parametrize(("n_classes", "error_rate"), [(6, "auto"), ("auto", "auto"), (6, WRONG)])
def test_wrong_answers_of_one_person_spoil_no_fit(doubtful, n_classes, error_rate):
    asker, y = doubtful
    rows, codes = asker.stack()
    model = PairLogisticRegressionCV(n_classes=n_classes, error_rate=error_rate)
    model.fit(StandardScaler().fit_transform(rows), codes)
    assert model.n_classes_ == 6
    asked, first = np.unique(codes[codes[:, 0] != 0, 1], return_index=True)
    posterior = model.posterior(StandardScaler().fit_transform(rows), codes)[: len(codes)][first]
    right = share_right(posterior, y[asked])
    # The answers alone are right four times in five.
    assert right > 0.85
    assert abs(posterior.max(axis=1).mean() - right) < 0.1
    rate = model.answer_model_.error_rate
    assert rate.low <= WRONG <= rate.high


def test_a_log_of_one_person_has_the_classes_of_its_asker(doubtful, tmp_path, matcher):
    X, y = load_digits(n_class=6, return_X_y=True)
    answer = matcher(y, wrong=WRONG, seed=2)
    log = tmp_path / "log.jsonl"
    ids = [f"digit {k}" for k in range(len(y))]
    with AnswerStore(log) as store:
        store.begin(3, design="match", classes="auto")
        asker = Asker(X, n_classes="auto", random_state=3, store=store, ids=ids)
        for _ in range(150):
            question = asker.next()
            asker.tell(question, answer(question.left, question.choices), "judge")
    table = {"id": ids} | {f"pixel {k}": X[:, k] for k in range(X.shape[1])}
    model = fit_table(table, log)
    assert len(model.classes) == 6
    rows = np.array([int(name.split()[1]) for name in model.answered["id"]])
    assert share_right(model.answered["probabilities"], y[rows]) > 0.85
    assert share_right(model.predict_proba(table), y) > 0.8


def test_one_wrong_answer_opens_no_class_and_joins_none():
    # Points 0 to 2 are examples of three classes; 3 to 8 are compared with all.
    def question(point, pick, examples=(0, 1, 2)):
        return [(point, e, 1 if e == pick else -1) for e in examples]

    opening = [[(1, 0, -1)], question(2, None, (0, 1))]
    rest = [question(point, point % 3) for point in range(3, 9)]

    def classes(*questions):
        rows = [(*pair, k) for k, one in enumerate(questions) for pair in one]
        a, b, same, number = np.array(rows).T
        return classes_of_examples(np.column_stack([a, b]), same, number, 20)[:3]

    assert classes(*opening, *rest) == (3, 3, 3)
    # A point of a small class is one that is like no example.
    assert classes(*opening, *rest, question(9, None)) == (4, 4, 4)
    # Point 3 is first said to be like none, and point 2 to be like point 0; both are asked about again.
    wrong = [
        question(3, None),
        *opening[:1],
        [(2, 0, 1), (2, 1, -1)],
        [(2, 0, -1), (2, 1, -1)],
        [(2, 0, -1), (2, 1, -1)],
    ]
    found = classes(*wrong, *rest, *rest, question(9, None))
    assert found[0] == 3
    assert found[1] <= 3 < found[2]


def test_questions_beside_known_points_are_exact():
    rng = np.random.default_rng(0)
    # Points 0 to 2 have labels 1 to 3; 3 and 4 are compared with all of them, 4 twice.
    picks = [(3, 1), (4, 0), (4, None)]
    ends = [(point, e) for point, _ in picks for e in range(3)]
    same = [e == pick for _, pick in picks for e in range(3)]
    labels = [1, 2, 3, 0, 0]
    graph = AnswerGraph.from_answers(ends, same, questions=np.repeat([1, 2, 3], 3), labels=labels)
    e = 0.2
    careless = e * 4 / 3
    log_p = np.log(rng.dirichlet(np.ones(3), 5))
    found = AnswerModel.given(e, graph).factor_graph(graph, 3).propagate(log_p).posteriors
    expected = np.exp(log_p)
    for point, pick in picks:
        expected[point] *= (1 - careless) * (np.arange(3) == pick) + careless / 4
    expected = expected[3:] / expected[3:].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[3:], expected, atol=1e-12)
