"""Walks through several commands on tables of several kinds; tests/test_readme.py runs them as a new user does."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from sdulearn import load_model
from sdulearn.cli.main import main
from sdulearn.datasets import make_waveform


@pytest.fixture
def in_process(tmp_path, monkeypatch, capsys):
    """Run a command in a folder; a refusal is one line."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        captured = capsys.readouterr()
        if code == 2:
            assert captured.err.count("\n") == 1
            assert captured.err.startswith("sdulearn: ")
        return captured.out + captured.err

    return run


def random_answers(y, count, seed=0):
    """Row numbers of random pairs, and whether the ends are of one class."""
    ends = np.random.default_rng(seed).integers(0, len(y), (count, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def write_answers(path, ids, ends, same, **columns):
    """Answers by id."""
    answers = {"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": same.astype(int), **columns}
    pd.DataFrame(answers).to_csv(path, index=False)


@pytest.fixture
def wine(tmp_path):
    """Three kinds of wine in a file, and 200 answers; the kind of each row."""
    data = load_wine(as_frame=True)
    order = np.random.default_rng(0).permutation(178)
    y = data.target.to_numpy()[order]
    ids = np.array([f"bottle-{k:03}" for k in range(178)])
    data.data.iloc[order].assign(id=ids).to_csv(tmp_path / "wine.csv", index=False)
    write_answers(tmp_path / "pairs.csv", ids, *random_answers(y, 200))
    kinds = np.array(["barolo", "grignolino", "barbera"])[y]
    return kinds


def test_three_kinds_of_wine(tmp_path, in_process, wine, no_importances):
    out = in_process("fit", "--features", "wine.csv", "--pairs", "pairs.csv", "-o", "model.sdu", "--classes", "auto")
    number = "3 classes, a number chosen by the answers, which allow no other number"
    assert f"{number}; mean probability over the unlabeled rows: 1 " in out
    assert 'of "different" answers; the accuracy of more than two classes is unknown without --labels.' in out
    assert "Estimated accuracy" not in out
    page = (tmp_path / "model.html").read_text()
    assert f"{number};" in page
    told = in_process("inspect", "model.sdu", "--top", "2")
    for text in (number, "Classes: 1 (1), 2 (2), 3 (3)", "Strongest features, per standard deviation, for 3:"):
        assert text in told
    facts = {one["code"]: one["details"] for one in json.loads(in_process("inspect", "model.sdu", "--json"))["facts"]}
    assert set(facts["strengths"]["strengths"]) == {"1", "2", "3"}
    assert "+ speaks for 3" in page
    assert "<h2>Answers by predicted class</h2>" in page
    assert len(re.findall(r'<td style="background[^>]*>\d+ / \d+</td>', page)) == 6
    out = in_process("predict", "model.sdu", "wine.csv", "-o", "out.csv")
    assert "wrote out.csv: 178 rows" in out
    found = pd.read_csv(tmp_path / "out.csv")
    columns = ["probability_1", "probability_2", "probability_3"]
    assert found.columns.tolist() == ["id", "label", *columns]
    np.testing.assert_allclose(found[columns].sum(axis=1), 1)
    assert (found[columns].to_numpy().argmax(axis=1) + 1 == found["label"]).all()
    # The largest kind is 1.
    names = dict(enumerate(pd.Series(wine).value_counts().index, 1))
    assert np.mean(found["label"].map(names) == wine) > 0.9
    in_process("predict", "model.sdu", "wine.csv", "-o", "out.parquet")
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "out.parquet")[columns], found[columns])


def test_two_annotators_and_trees(tmp_path, in_process):
    pytest.importorskip("lightgbm")
    X, y = make_waveform(800, random_state=3)
    ids = np.array([f"<i>{k}" for k in range(800)])
    pd.DataFrame(X).add_prefix("x").assign(id=ids).to_csv(tmp_path / "t.csv", index=False)
    rng = np.random.default_rng(0)
    ends = rng.permutation(800)[:160].reshape(-1, 2)
    same = y[ends[:, 0]] == y[ends[:, 1]]
    wrong = rng.random(80) < 0.3
    both = np.concatenate([same, same ^ wrong])
    write_answers(tmp_path / "p.csv", ids, np.tile(ends, (2, 1)), both, annotator=["Ann"] * 80 + ["Bob"] * 80)
    out = in_process("fit", "--features", "t.csv", "--pairs", "p.csv", "-o", "m.sdu", "--model", "boosted")
    assert "boosted trees on a linear model" in out
    assert "Model: boosted; held-out log-likelihood of an answer: linear -0." in out
    assert "; Bob, " in out
    page = (tmp_path / "m.html").read_text()
    for text in ("<td>Bob</td><td>80</td>", "<h2>Most doubtful answers</h2>", "<td>&lt;i&gt;", "of trees, the share"):
        assert text in page
    assert "Strongest features, share of the decision:" in in_process("inspect", "m.sdu")
    in_process("predict", "m.sdu", "t.csv", "-o", "out.csv")
    table = pd.read_csv(tmp_path / "t.csv")
    probability = load_model(tmp_path / "m.sdu").predict_proba(table)[:, 1]
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "out.csv")["probability"], probability)
    pytest.importorskip("onnx")
    assert "inputs numbers (21 columns), texts (0 columns)" in in_process("export", "m.sdu", "--onnx", "m.onnx")
