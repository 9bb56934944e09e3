"""Draws of answers that share points or are wrong; loose pairs are in test_datasets."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sdulearn.answers import AnswerGraph
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.errors import InputError


@pytest.mark.parametrize("design", ["random", "star"])
def test_graphs_of_answers(design):
    X, y = make_waveform(600, random_state=0)
    rows, table, X_test, y_test = sample_sdu(
        X, y, n_pairs=90, n_unlabeled=40, prior=0.7, n_test=50, design=design, error_rate=0.1, random_state=0
    )
    graph = AnswerGraph.from_y(table)
    assert graph.n_answers == 90
    assert graph.n_repeated == 0
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


def test_questions_are_all_there_is_where_all_are_asked():
    X, y = make_waveform(200, random_state=0)
    _, table = sample_sdu(X, y, n_pairs=45, n_unlabeled=0, prior=0.6, design="random", n_points=10, random_state=1)
    asked = {tuple(sorted(pair)) for pair in table[:, 1].reshape(-1, 2).tolist()}
    assert len(asked) == 45
    with pytest.raises(InputError, match="Raise `n_points`"):
        sample_sdu(X, y, n_pairs=46, n_unlabeled=0, prior=0.6, design="random", n_points=10)


def test_wrong_answers_to_loose_pairs():
    X, y = make_waveform(600, random_state=0)
    draw = {"n_pairs": 100, "n_unlabeled": 0, "prior": 0.7, "random_state": 3}
    rows, clean = sample_sdu(X, y, **draw)
    same_rows, codes = sample_sdu(X, y, error_rate=0.15, **draw)
    np.testing.assert_array_equal(rows, same_rows)
    assert (codes[::2] != clean[::2]).sum() == 15
    np.testing.assert_array_equal(np.abs(codes), np.abs(clean))


@pytest.mark.parametrize("design", ["loose", "random", "star"])
def test_draws_of_any_classes_answer_as_the_classes_say(design):
    y = load_iris().target
    rows, table = sample_sdu(np.arange(150.0)[:, None], y, n_pairs=40, n_unlabeled=20, design=design, random_state=0)
    assert rows.shape == (100, 1)
    ends = rows[:80, 0].astype(int).reshape(-1, 2)
    assert ((table[:80:2, 0] > 0) == (y[ends[:, 0]] == y[ends[:, 1]])).all()
    # One point, one row of X.
    assert len(np.unique(table[:, 1])) == len(np.unique(rows))


def test_a_prior_is_for_two_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="leave out `prior`"):
        sample_sdu(X, y, n_pairs=5, n_unlabeled=5, prior=0.5)
    with pytest.raises(InputError, match="needs 210 points"):
        sample_sdu(X, y, n_pairs=100, n_unlabeled=10)
