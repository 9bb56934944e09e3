import argparse
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV, load_model
from sdulearn import diagnostics as assumptions
from sdulearn.cli import fit
from sdulearn.io.answers import read_pair_file
from sdulearn.io.tables import read_table
from sdulearn.metrics import pair_accuracy
from sdulearn.table_model import load_table_model
from sdulearn.workflow.training import rows_of_ids, usable_questions


def call(*arguments):
    parser = argparse.ArgumentParser()
    fit.add_arguments(parser)
    return fit.run(parser.parse_args([str(argument) for argument in arguments]))


def random_pairs(rng, n, count):
    ends = rng.integers(0, n, (2 * count, 2))
    return ends[ends[:, 0] != ends[:, 1]][:count]


def options(files, tmp_path, **change):
    given = {"features": files / "table.csv", "pairs": files / "pairs.csv", "output": tmp_path / "model.sdu", **change}
    return [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", value)]


def accuracy(path, files):
    model, table = load_table_model(path), read_table(files / "table.csv")
    return float(np.mean(np.where(model.decision(table.X) > 0, 1, -1) == np.load(files / "y.npy")))


@pytest.mark.parametrize("method", ["auto", "sddu", "su", "du"])
def test_fit_tells_and_keeps_what_it_did(files, tmp_path, capsys, method):
    assert call(*options(files, tmp_path, method=method)) == 0
    out = capsys.readouterr().out
    for text in ("similar", "1,500 rows, 21 columns", "ids from 'id'", "method: ", "prior: 0.", "interval", "reading"):
        assert text in out
    truth = accuracy(tmp_path / "model.sdu", files)
    assert truth > (0.85 if method == "auto" else 0.7)
    low, high = (float(x) / 100 for x in re.search(r"accuracy: .*interval ([\d.]+)% to ([\d.]+)%", out).groups())
    # Held-out models see four fifths of the pairs, so they may fall a little short of the model itself.
    assert low - 0.02 < truth < high + 0.04
    assert "warning" not in out
    model = load_model(tmp_path / "model.sdu")
    assert type(model) is (PairLogisticRegressionCV if method == "auto" else SDUClassifierCV)
    page = (tmp_path / "model.html").read_text()
    assert "Estimated accuracy" in page
    assert not re.search(r"(src|href)=|<script|@import|url\(", page)


def test_labels_name_the_classes(files, tmp_path, capsys):
    truth = np.load(files / "y.npy")
    pd.read_csv(files / "few.csv").replace({"cat": "a", "dog": "z"}).to_csv(tmp_path / "few.csv", index=False)
    X = read_table(files / "table.csv").X
    for labels, positive in ((files / "few.csv", -1), (tmp_path / "few.csv", -1)):
        call(*options(files, tmp_path, labels=labels))
        model = load_table_model(tmp_path / "model.sdu")
        assert model.classes == (("cat", "dog") if labels.parent == files else ("a", "z"))
        assert np.mean((model.decision(X) > 0) == (truth == positive)) > 0.85
        assert model.estimator.prior_.value < 0.5
        assert "is +1; " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("r0,1\nr1,0", ("0", "1")),
        ("r0,yes\nr1,no", ("no", "yes")),
        ("r0,1", ("-1", "1")),
        ("r0,cat", ("not cat", "cat")),
    ],
)
def test_names_of_classes(files, tmp_path, rows, names):
    (tmp_path / "few.csv").write_text(f"id,label\n{rows}\n")
    call(*options(files, tmp_path, labels=tmp_path / "few.csv"))
    assert load_table_model(tmp_path / "model.sdu").classes == names


@pytest.mark.parametrize(
    ("rows", "message"), [("r0,a\nr1,b\nr2,c", "3 classes"), ("nobody,a", "no row with the id"), ("", "first line")]
)
def test_labels_that_cannot_be_used(files, tmp_path, rows, message):
    (tmp_path / "few.csv").write_text(f"id,label\n{rows}\n")
    with pytest.raises(ValueError, match=message):
        call(*options(files, tmp_path, labels=tmp_path / "few.csv"))


def test_a_given_prior(files, tmp_path, capsys):
    call(*options(files, tmp_path, prior=0.7))
    assert "prior: 0.7 of the rows are of class +1, as given" in capsys.readouterr().out
    call(*options(files, tmp_path, prior=0.95))
    assert "warning: " in (out := capsys.readouterr().out)
    assert "the prior is another" in out


def test_mistakes_in_the_answers_stop_the_fit_unless_told(files, tmp_path, capsys):
    text = (files / "pairs.csv").read_text()
    (tmp_path / "p.csv").write_text(
        text + "r1,r1,similar\nr2,nobody,similar\nr3,r4,perhaps\n" + text.splitlines()[1] + "\n"
    )
    with pytest.raises(
        ValueError, match=r"1 unreadable rows \(lines 404\) and 1 pairs of a point with itself \(lines 402\)"
    ):
        call(*options(files, tmp_path, pairs=tmp_path / "p.csv"))
    capsys.readouterr()
    call(*options(files, tmp_path, pairs=tmp_path / "p.csv"), "--skip-bad")
    out = capsys.readouterr().out
    for text in (
        "Left out: 1 unreadable",
        "itself (lines 402)",
        "not in the table (lines 403)",
        "1 repeated questions",
    ):
        assert text in out
    call(*options(files, tmp_path, output=tmp_path / "clean.sdu"))
    clean, skipped = load_model(tmp_path / "clean.sdu"), load_model(tmp_path / "model.sdu")
    np.testing.assert_array_equal(clean.coef_, skipped.coef_)


def test_weights_count_like_further_answers_of_their_kind(files, tmp_path):
    pairs = pd.read_csv(files / "pairs.csv")
    pairs.assign(weight=2.0).to_csv(tmp_path / "w.csv", index=False)
    call(*options(files, tmp_path, output=tmp_path / "a.sdu"))
    call(*options(files, tmp_path, output=tmp_path / "b.sdu", pairs=tmp_path / "w.csv"))
    a, b = load_model(tmp_path / "a.sdu"), load_model(tmp_path / "b.sdu")
    assert b.prior_.n_similar == 2 * a.prior_.n_similar


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": "nowhere/at/all.sdu"}, "no folder"),
        ({"output": "model.html"}, "another ending"),
        ({"id": "x"}, "no column 'x'"),
        ({"id": "x0", "drop": "id"}, "not in the table"),
        ({"id": "x0"}, r"'id' \(1,500\).*Name the ids with --id"),
    ],
)
def test_wrong_calls(files, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        call(*options(files, tmp_path, **change))
    assert not list(tmp_path.iterdir())


def test_too_few_answers_and_repeated_ids(files, tmp_path):
    (tmp_path / "p.csv").write_text("id_a,id_b,label\nr1,r2,similar\nr3,r4,dissimilar\nr5,r6,unsure\n")
    with pytest.raises(ValueError, match="1 similar and 1 dissimilar pairs to use; at least 2 of each"):
        call(*options(files, tmp_path, pairs=tmp_path / "p.csv"))
    (tmp_path / "t.csv").write_text("id,x\nr1,1\nr1,2\n")
    with pytest.raises(ValueError, match="'r1' occurs 2 times"):
        call(*options(files, tmp_path, features=tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    with pytest.raises(ValueError, match="rows are numbered 0 to 1; name one with --id"):
        call(*options(files, tmp_path, features=tmp_path / "t.csv"))


def test_agreement_is_accuracy_squared_exactly():
    """E[s h h'] = (2 accuracy - 1)^2 for every prior and every pair of error rates, by enumeration."""
    for p, e_pos, e_neg in itertools.product((0.2, 0.5, 0.9), (0.0, 0.1, 0.6), (0.05, 0.3)):
        points = [(y, h, q * r) for y, q, e in ((1, p, e_pos), (-1, 1 - p, e_neg)) for h, r in ((y, 1 - e), (-y, e))]
        mean = sum(a[2] * b[2] * a[0] * b[0] * a[1] * b[1] for a in points for b in points)
        right = p * (1 - e_pos) + (1 - p) * (1 - e_neg)
        assert mean == pytest.approx((2 * right - 1) ** 2, abs=1e-12)


@pytest.mark.parametrize("prior", [0.5, 0.7])
@pytest.mark.parametrize("natural", [True, False])
def test_the_interval_of_the_accuracy_covers_the_truth(prior, natural):
    """200 draws of 300 answers by a predictor that errs on 12% of the larger class and 20% of the other."""
    rng = np.random.default_rng(3)
    truth = prior * 0.88 + (1 - prior) * 0.8
    covered, values = 0, []
    for _ in range(200):
        y = np.where(rng.random((900, 2)) < prior, 1, -1)
        h = np.where(rng.random(y.shape) < np.where(y > 0, 0.12, 0.2), -y, y)
        same = y[:, 0] == y[:, 1]
        # An unnatural ratio: half similar, half dissimilar.
        keep = np.arange(300) if natural else np.r_[np.flatnonzero(same)[:150], np.flatnonzero(~same)[:150]]
        codes = np.repeat(np.where(same[keep], 1, -1) * np.arange(1, 301), 2)
        found = pair_accuracy(h[keep].ravel().astype(float), codes, None, prior, natural)
        covered += found.low <= truth <= found.high
        values.append(found.value)
        assert (found.risk_accuracy is None) == (prior == 0.5)
    assert abs(np.mean(values) - truth) < 0.01
    assert covered >= 184


def test_an_unnatural_ratio_is_weighed_by_the_prior():
    """The model gets every similar pair right and every dissimilar one wrong: it agrees on ps of random pairs."""
    codes = np.repeat(np.r_[np.arange(1, 11), -np.arange(11, 41)], 2)
    assert pair_accuracy(np.ones(80), codes, None, 0.9, False).agreement == pytest.approx(0.82)
    assert pair_accuracy(np.ones(80), codes, None, 0.9, True).agreement == pytest.approx(0.25)


def test_a_question_asked_again_counts_once_by_weight(tmp_path):
    (tmp_path / "t.csv").write_text("id,x\n" + "".join(f"{name},{k}\n" for k, name in enumerate("abcdef")))
    rows = "a,b,1,1 b,a,0,1 a,b,0,1 c,d,1,1 d,c,0,3 e,f,1,2 f,e,0,1 f,e,0,1 a,c,1,1 a,d,1,1 b,c,0,0"
    (tmp_path / "p.csv").write_text("\n".join(["id_a,id_b,label,weight", *rows.split()]))
    place = rows_of_ids(read_table(tmp_path / "t.csv").ids)
    found = usable_questions(read_pair_file(tmp_path / "p.csv"), place, False)
    assert found.ends.tolist() == [[1, 0], [3, 2], [0, 2], [0, 3]]
    assert found.similar.tolist() == [False, False, True, True]
    assert found.weights.tolist() == [1, 3, 1, 1]
    assert [text[:2] for text in found.left_out] == ["2 ", "1 "]


def test_the_paper_s_estimate_agrees_within_its_error():
    rng = np.random.default_rng(5)
    scores = []
    for _ in range(200):
        y = np.where(rng.random((400, 2)) < 0.75, 1, -1)
        h = np.where(rng.random(y.shape) < 0.15, -y, y)
        codes = np.repeat(np.where(y[:, 0] == y[:, 1], 1, -1) * np.arange(1, 401), 2)
        found = pair_accuracy(h.ravel().astype(float), codes, None, 0.75, True)
        scores.append((found.risk_accuracy - 0.85) / found.risk_error)
    assert abs(np.mean(scores)) < 0.3
    assert 0.8 < np.std(scores) < 1.2


def test_an_impossible_ratio():
    assert assumptions.ratio_warnings(500, 500, None) == []
    assert assumptions.ratio_warnings(20, 30, None) == []
    assert "more than two classes" in assumptions.ratio_warnings(400, 600, None)[0]
    assert assumptions.ratio_warnings(580, 420, 0.7) == []
    assert "drawn at random" in assumptions.ratio_warnings(500, 500, 0.9)[0]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_points_from_elsewhere(as_sparse):
    """The test holds its level on skewed and rare features, and sees a shift of one of them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(5000, 10)), rng.exponential(size=(5000, 5)), rng.random((5000, 15)) < 0.01])
    X[:, 0] = np.where(rng.random(5000) < 0.5, 0, X[:, 0])
    table = sparse.csr_matrix(X) if as_sparse else X
    names = [f"f{k}" for k in range(30)]
    alarms = sum(bool(assumptions.population_warnings(table, random_pairs(rng, 5000, 100), names)) for _ in range(100))
    assert alarms <= 6
    upper = np.flatnonzero(X[:, 3] > 0)
    found = assumptions.population_warnings(table, upper[random_pairs(rng, len(upper), 100)], names)
    assert "'f3'" in found[0]
    assert assumptions.population_warnings(table, np.arange(5000).reshape(-1, 2), names) == []


def test_noise_is_called_noise(tmp_path, capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    ends = random_pairs(rng, 300, 80)
    pd.DataFrame({"id1": ends[:, 0], "id2": ends[:, 1], "label": rng.integers(0, 2, 80)}).to_csv(
        tmp_path / "p.csv", index=False
    )
    call("--features", tmp_path / "t.csv", "--pairs", tmp_path / "p.csv", "-o", tmp_path / "m.sdu")
    out = capsys.readouterr().out
    assert "do not show that the model is better than guessing" in out
    assert "names of the two classes may be exchanged" in out
