import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from sdulearn.answers import AnswerGraph
from sdulearn.answers.y import U
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.risks import similar_share


def test_waveform_is_breiman_s():
    X, y = make_waveform(60_000, random_state=0)
    assert X.shape == (60_000, 21)
    assert np.mean(y == 1) == pytest.approx(1 / 3, abs=0.01)
    # +1 mixes the waves around t = 7 and t = 15: mean 6 / 2 at both peaks, and noise of variance 1.
    mean = X[y == 1].mean(axis=0)
    assert mean[[6, 10, 14]] == pytest.approx([0.5 * 6, 0.5 * 2 + 0.5 * 2, 0.5 * 6], abs=0.05)
    assert X[y == 1][:, 0].var() == pytest.approx(1, abs=0.03)
    with pytest.raises(ValueError, match="1 or more"):
        make_waveform(0)


@pytest.mark.parametrize("prior", [0.3, 0.7])
def test_exact_draws_keep_every_ratio_and_no_row_twice(prior):
    labels = np.repeat([1, -1], 2000)
    X = np.column_stack([np.arange(4000), labels])
    rows, codes, X_test, y_test = sample_sdu(
        X, labels, n_pairs=100, n_unlabeled=200, prior=prior, n_test=300, random_state=0
    )
    graph = AnswerGraph.from_y(codes)
    y = rows[:, 1]
    ends = y[graph.end_rows]
    assert (graph.same > 0).sum() == round(100 * similar_share(prior))
    assert ((ends[:, 0] == ends[:, 1]) == (graph.same > 0)).all()
    both_positive = (ends.sum(axis=1) == 2).sum()
    assert both_positive == pytest.approx(100 * prior**2, abs=1)
    assert np.sum(y[graph.source == U] == 1) == round(200 * prior)
    assert np.sum(y_test == 1) == round(300 * prior)
    assert (X_test[:, 1] == y_test).all()
    assert len(set(rows[:, 0]) | set(X_test[:, 0])) == len(rows) + len(X_test)


def test_random_draws_vary_and_types_are_kept():
    X, y = make_waveform(500, random_state=0)
    arguments = {"n_pairs": 50, "n_unlabeled": 10, "prior": 0.5}
    draws = [sample_sdu(X, y, exact=False, random_state=s, **arguments)[1] for s in range(10)]
    assert len({(codes > 0).sum() for codes in draws}) > 3
    arguments["random_state"] = 0
    rows, codes = sample_sdu(X, y, **arguments)
    for other in (pd.DataFrame(X), sparse.csr_matrix(X)):
        other_rows, other_codes = sample_sdu(other, y, **arguments)
        assert type(other_rows) is type(other)
        np.testing.assert_array_equal(other_codes, codes)
    np.testing.assert_array_equal(other_rows.toarray(), rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_pairs": 1000}, "needs 1407 positive points, but `y` has 50"),
        ({"prior": 1.5}, "strictly between 0 and 1"),
        ({"prior": 0.0}, "strictly between 0 and 1"),
        ({"y": np.zeros(100)}, "classes -1 and.*leave out `prior`"),
        ({"design": "ring"}, "'loose', 'random' or 'star'"),
        ({"error_rate": 1.1}, "`error_rate` must lie between"),
        ({"prior": None, "n_pairs": 46}, "needs 102 points, but `y` has 100"),
        ({"design": "random", "n_points": 4, "n_pairs": 7}, "4 points have 6 pairs.*Raise `n_points`"),
    ],
)
def test_bad_input(arguments, message):
    given = {"y": np.repeat([1, -1], 50), "n_pairs": 5, "n_unlabeled": 10, "prior": 0.7, **arguments}
    with pytest.raises(ValueError, match=message):
        sample_sdu(np.zeros((100, 1)), **given)


def asked(table):
    """The different questions."""
    return {tuple(sorted(pair)) for pair in table[table[:, 0] != 0, 1].reshape(-1, 2).tolist()}


@pytest.mark.parametrize("design", ["random", "star"])
def test_graphs_of_answers(design):
    X, y = make_waveform(600, random_state=0)
    rows, table, X_test, y_test = sample_sdu(
        X, y, n_pairs=90, n_unlabeled=40, prior=0.7, n_test=50, design=design, error_rate=0.1, random_state=0
    )
    graph = AnswerGraph.from_y(table)
    assert graph.n_answers == len(asked(table)) == 90
    assert graph.n_points == 131 if design == "star" else graph.n_points <= 130
    assert (y_test > 0).sum() == 35
    assert len(X_test) == 50
    label_of = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    labels = np.array([label_of[row.tobytes()] for row in rows])
    ends = np.flatnonzero(table[:, 0]).reshape(-1, 2)
    right = labels[ends[:, 0]] * labels[ends[:, 1]] == np.sign(table[ends[:, 0], 0])
    assert (~right).sum() == 9
    if design == "star":
        assert graph.degree.max() == 90
    # All questions that there are, where all are asked.
    _, table = sample_sdu(X, y, n_pairs=45, n_unlabeled=0, prior=0.6, design="random", n_points=10, random_state=1)
    assert len(asked(table)) == 45


@pytest.mark.parametrize("design", ["loose", "random", "star"])
def test_draws_of_any_classes_answer_as_the_classes_say(design):
    y = load_iris().target
    rows, table = sample_sdu(np.arange(150.0)[:, None], y, n_pairs=40, n_unlabeled=20, design=design, random_state=0)
    assert rows.shape == (100, 1)
    ends = rows[:80, 0].astype(int).reshape(-1, 2)
    assert ((table[:80:2, 0] > 0) == (y[ends[:, 0]] == y[ends[:, 1]])).all()
    # One point, one row of X.
    assert len(np.unique(table[:, 1])) == len(np.unique(rows))
