import re

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV, load_model


def random_pairs(rng, n, count):
    ends = rng.integers(0, n, (2 * count, 2))
    return ends[ends[:, 0] != ends[:, 1]][:count]


def options(files, tmp_path, **change):
    given = {"features": files / "table.csv", "pairs": files / "pairs.csv", "output": tmp_path / "model.sdu", **change}
    return [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", value)]


def accuracy(path, files):
    predicted = load_model(path).predict(pd.read_csv(files / "table.csv")).astype(int)
    return float(np.mean(predicted == np.load(files / "y.npy")))


@pytest.mark.parametrize("method", ["auto", "sddu", "su", "du"])
def test_fit_tells_and_keeps_what_it_did(call, files, tmp_path, capsys, method):
    assert call("fit", *options(files, tmp_path, method=method)) == 0
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


def test_labels_name_the_classes(call, files, tmp_path, capsys):
    truth = np.load(files / "y.npy")
    pd.read_csv(files / "few.csv").replace({"cat": "a", "dog": "z"}).to_csv(tmp_path / "few.csv", index=False)
    X = read_table(files / "table.csv").X
    for labels, positive in ((files / "few.csv", -1), (tmp_path / "few.csv", -1)):
        call("fit", *options(files, tmp_path, labels=labels))
        model = load_model(tmp_path / "model.sdu")
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
def test_names_of_classes(call, files, tmp_path, rows, names):
    (tmp_path / "few.csv").write_text(f"id,label\n{rows}\n")
    call("fit", *options(files, tmp_path, labels=tmp_path / "few.csv"))
    assert load_model(tmp_path / "model.sdu").classes == names


@pytest.mark.parametrize(
    ("rows", "message"), [("r0,a\nr1,b\nr2,c", "3 classes"), ("nobody,a", "no row with the id"), ("", "first line")]
)
def test_labels_that_cannot_be_used(call, files, tmp_path, rows, message):
    (tmp_path / "few.csv").write_text(f"id,label\n{rows}\n")
    with pytest.raises(ValueError, match=message):
        call("fit", *options(files, tmp_path, labels=tmp_path / "few.csv"))


def test_a_given_prior(call, files, tmp_path, capsys):
    call("fit", *options(files, tmp_path, prior=0.7))
    assert "prior: 0.7 of the rows are of class +1, as given" in capsys.readouterr().out
    call("fit", *options(files, tmp_path, prior=0.95))
    assert "warning: " in (out := capsys.readouterr().out)
    assert "the prior is another" in out


def test_mistakes_in_the_answers_stop_the_fit_unless_told(call, files, tmp_path, capsys):
    text = (files / "pairs.csv").read_text()
    (tmp_path / "p.csv").write_text(
        text + "r1,r1,similar\nr2,nobody,similar\nr3,r4,perhaps\n" + text.splitlines()[1] + "\n"
    )
    with pytest.raises(
        ValueError, match=r"1 unreadable rows \(lines 404\) and 1 pairs of a point with itself \(lines 402\)"
    ):
        call("fit", *options(files, tmp_path, pairs=tmp_path / "p.csv"))
    capsys.readouterr()
    call("fit", *options(files, tmp_path, pairs=tmp_path / "p.csv"), "--skip-bad")
    out = capsys.readouterr().out
    for text in (
        "Left out: 1 unreadable",
        "itself (lines 402)",
        "not in the table (lines 403)",
        "1 repeated questions",
    ):
        assert text in out
    call("fit", *options(files, tmp_path, output=tmp_path / "clean.sdu"))
    clean, skipped = load_model(tmp_path / "clean.sdu"), load_model(tmp_path / "model.sdu")
    np.testing.assert_array_equal(clean.coef_, skipped.coef_)


def test_weights_count_like_further_answers_of_their_kind(call, files, tmp_path):
    pairs = pd.read_csv(files / "pairs.csv")
    pairs.assign(weight=2.0).to_csv(tmp_path / "w.csv", index=False)
    call("fit", *options(files, tmp_path, output=tmp_path / "a.sdu"))
    call("fit", *options(files, tmp_path, output=tmp_path / "b.sdu", pairs=tmp_path / "w.csv"))
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
def test_wrong_calls(call, files, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        call("fit", *options(files, tmp_path, **change))
    assert not list(tmp_path.iterdir())


def test_too_few_answers_and_repeated_ids(call, files, tmp_path):
    (tmp_path / "p.csv").write_text("id_a,id_b,label\nr1,r2,similar\nr3,r4,dissimilar\nr5,r6,unsure\n")
    with pytest.raises(ValueError, match="1 similar and 1 dissimilar pairs to use; at least 2 of each"):
        call("fit", *options(files, tmp_path, pairs=tmp_path / "p.csv"))
    (tmp_path / "t.csv").write_text("id,x\nr1,1\nr1,2\n")
    with pytest.raises(ValueError, match="'r1' occurs 2 times"):
        call("fit", *options(files, tmp_path, features=tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    with pytest.raises(ValueError, match="rows are numbered 0 to 1; name one with --id"):
        call("fit", *options(files, tmp_path, features=tmp_path / "t.csv"))


def test_noise_is_called_noise(call, tmp_path, capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    ends = random_pairs(rng, 300, 80)
    pd.DataFrame({"id1": ends[:, 0], "id2": ends[:, 1], "label": rng.integers(0, 2, 80)}).to_csv(
        tmp_path / "p.csv", index=False
    )
    call("fit", "--features", tmp_path / "t.csv", "--pairs", tmp_path / "p.csv", "-o", tmp_path / "m.sdu")
    out = capsys.readouterr().out
    assert "do not show that the model is better than guessing" in out
    assert "names of the two classes may be exchanged" in out
