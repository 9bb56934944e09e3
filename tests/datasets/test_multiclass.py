"""Sets with more than two classes, and draws from them."""

import bz2

import numpy as np
import pytest

from sdulearn.datasets import load_multiclass, sample_sdu
from sdulearn.errors import FileError, InputError


def test_files_are_read_with_classes_from_one(tmp_path, monkeypatch):
    (tmp_path / "multi").mkdir()
    (tmp_path / "multi" / "vowel.svm.bz2").write_bytes(bz2.compress(b"7 1:0.5\n3 1:2 2:1\n9 2:4\n"))
    X, y = load_multiclass("vowel", folder=str(tmp_path))
    assert X.tolist() == [[0.5, 0], [2, 1], [0, 4]]
    assert y.tolist() == [2, 1, 3]
    monkeypatch.setenv("SDULEARN_DATA", str(tmp_path))
    assert load_multiclass("vowel")[1].tolist() == [2, 1, 3]


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="choose one of"):
        load_multiclass("nothing")
    with pytest.raises(FileError, match="does not exist"):
        load_multiclass("vowel", folder=str(tmp_path))
    monkeypatch.delenv("SDULEARN_DATA", raising=False)
    with pytest.raises(FileError, match="SDULEARN_DATA"):
        load_multiclass("vowel")


@pytest.mark.parametrize("design", ["loose", "random", "star"])
def test_draws_of_any_classes_answer_as_the_classes_say(design):
    X, y = load_multiclass("iris")
    order = np.arange(150.0)[:, None]
    rows, table = sample_sdu(order, y, n_pairs=40, n_unlabeled=20, design=design, random_state=0)
    assert rows.shape == (100, 1)
    ends = rows[:80, 0].astype(int).reshape(-1, 2)
    assert ((table[:80:2, 0] > 0) == (y[ends[:, 0]] == y[ends[:, 1]])).all()
    # One point, one row of X.
    assert len(np.unique(table[:, 1])) == len(np.unique(rows))
    assert X.shape == (150, 4)


def test_a_prior_is_for_two_classes():
    X, y = load_multiclass("iris")
    with pytest.raises(InputError, match="leave out `prior`"):
        sample_sdu(X, y, n_pairs=5, n_unlabeled=5, prior=0.5)
    with pytest.raises(InputError, match="needs 210 points"):
        sample_sdu(X, y, n_pairs=100, n_unlabeled=10)
