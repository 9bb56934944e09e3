"""Walks through several commands on tables of several kinds; tests/test_readme.py runs them as a new user does."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_wine

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


def test_a_wide_sparse_svmlight_file(tmp_path, in_process, no_importances):
    """400 rows of 3,000 word counts; the classes differ in 400 of the words."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.65, 1, -1)
    words = np.where(rng.random((400, 60)) < 0.35, rng.integers(0, 200, (400, 60)) + 200 * (y[:, None] > 0), -1)
    words = np.where(words < 0, rng.integers(0, 3_000, words.shape), words)
    X = sparse.csr_matrix((np.ones(words.size), (np.repeat(np.arange(400), 60), words.ravel())), shape=(400, 3_000))
    dump_svmlight_file(X, np.zeros(400), str(tmp_path / "texts.svm"), zero_based=False)
    ends, same = random_answers(y, 200)
    words = np.where(same, "accept", "reject").tolist()
    records = [{"left": a, "right": b, "answer": word} for (a, b), word in zip(ends.tolist(), words, strict=True)]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, records)))

    out = in_process("fit", "--features", "texts.svm", "--pairs", "answers.jsonl", "-o", "model.sdu")
    assert "features, rows numbered from 0" in out
    in_process("predict", "model.sdu", "texts.svm", "-o", "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["id"].tolist() == list(range(400))
    assert np.mean(found["label"] == y) > 0.85


def test_text_categories_and_a_pairs_file_full_of_mistakes(tmp_path, in_process, no_importances):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(800) < 0.7, 1, -1)
    frame = pd.DataFrame(
        {
            "unique_id": [f"u{k}" for k in range(800)],
            "age": np.where(rng.random(800) < 0.05, None, (40 + 12 * y + rng.normal(0, 10, 800)).round(1)),
            "city": np.where(rng.random(800) < 0.8, np.where(y > 0, "Köln", "Łódź"), "São Paulo"),
            "plan": rng.choice(["free", "pro", "?"], 800, p=[0.6, 0.35, 0.05]),
            "comment": [f"note {k}" for k in range(800)],
        }
    )
    frame.to_csv(tmp_path / "customers.csv", index=False)
    ends, same = random_answers(y, 250)
    rows = [f"u{a},u{b},{'Must-Link' if s else 'cannot-link'}" for (a, b), s in zip(ends.tolist(), same, strict=True)]
    flipped = rows[0].replace("Must-Link", "x").replace("cannot-link", "Must-Link").replace("x", "cannot-link")
    mistakes = ["u1,u1,must-link", "u2,ghost,must-link", "u3,,must-link", "u4,u5,dunno", "u6,u7", rows[3], flipped]
    (tmp_path / "pairs.csv").write_text("\n".join(["ltable_id,rtable_id,label", *rows, *mistakes]))

    out = in_process("check", "pairs.csv", "--features", "customers.csv", code=1)
    for text in ("Unreadable rows: 3", "with itself: 1", "ghost", "Repeated questions", "question answered both ways"):
        assert text in out
    fit = ["fit", "--features", "customers.csv", "--pairs", "pairs.csv", "-o", "model.sdu", "--model", "linear"]
    refused = in_process(*fit, "--missing", "error", code=2)
    for text in ("2 problems", "'comment' (800)", "'age' (", "--missing mean", "--drop"):
        assert text in refused
    fit += ["--drop", "comment"]
    assert "--skip-bad" in in_process(*fit, code=2)
    assert not (tmp_path / "model.sdu").exists()
    out = in_process(*fit, "--skip-bad")
    assert "warning: Left out: 3 unreadable rows" in out
    assert "warning: Contradictions" in out

    frame.loc[3, "city"] = "Oslo"
    frame[["city", "comment", "plan", "age", "unique_id"]].to_csv(tmp_path / "new.csv", index=False)
    out = in_process("predict", "model.sdu", "new.csv", "-o", "out.csv")
    assert "1 texts in column 'city' did not occur in training" in out
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["id"].tolist() == frame["unique_id"].tolist()
    assert np.mean(found["label"] == y) > 0.85
    assert "city: category (Köln, São Paulo, Łódź)" in in_process("inspect", "model.sdu")
    pytest.importorskip("onnx")
    in_process("export", "model.sdu", "--onnx", "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 500


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
    assert "<td>Bob</td><td>80</td>" in page
    assert "<h2>Most doubtful answers</h2>" in page
    assert "<td>&lt;i&gt;" in page
    assert "of trees, the share" in page
    assert "Strongest features, share of the decision:" in in_process("inspect", "m.sdu")
    in_process("predict", "m.sdu", "t.csv", "-o", "out.csv")
    table = pd.read_csv(tmp_path / "t.csv")
    probability = load_model(tmp_path / "m.sdu").predict_proba(table)[:, 1]
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "out.csv")["probability"], probability)
    pytest.importorskip("onnx")
    assert "inputs numbers (21 columns), texts (0 columns)" in in_process("export", "m.sdu", "--onnx", "m.onnx")
