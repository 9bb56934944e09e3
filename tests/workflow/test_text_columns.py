"""Columns of texts: features, models, files, engines."""

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table, load_model
from sdulearn.cli.main import main
from sdulearn.errors import ModelFileError, UnseenCategoryWarning
from sdulearn.io import container
from sdulearn.tables.features import TextFeatures
from tests.reference import read_features, refuses

pytestmark = pytest.mark.usefixtures("no_importances")


WORDS = {1: "card bank money transfer balance credit account loan", -1: "rain sun wind snow cloud storm cold warm"}
OTHERS = ["the", "a", "my", "please", "what", "is", "today", "show", "me", "of", "for", "with", "how", "much"]


def sentences(n, seed):
    """Texts about money (+1) or the weather (-1), with other words between, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.6, 1, -1)
    texts = [" ".join(rng.permutation([*rng.choice(WORDS[k].split(), 3), *rng.choice(OTHERS, 5)])) for k in y]
    return texts, y


@pytest.fixture(scope="module")
def told(answers_about, tmp_path_factory):
    """A folder with a table of 400 texts, 120 answers about them, and a model of these."""
    texts, y = sentences(400, 0)
    table = pd.DataFrame({"id": [f"r{k}" for k in range(400)], "notes": texts, "length": [len(one) for one in texts]})
    folder = tmp_path_factory.mktemp("texts")
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", row_group_size=90)
    answers = answers_about(y, np.random.default_rng(1).permutation(400)[:240].reshape(-1, 2))
    answers.to_csv(folder / "a.csv", index=False)
    model = fit_table(folder / "t.csv", answers, text=["notes"], model="linear")
    return folder, table, answers, y, model


def test_features_by_hand():
    """One component of few words, against the formulas of TF-IDF."""
    texts = ["red car", "red bus", "blue car"]
    found, X = TextFeatures.fit("t", texts)
    assert found.words == ("blue", "blue car", "bus", "car", "red", "red bus", "red car")
    weight = 1 + np.log(4 / (1 + np.array([2, 2, 1])))  # red, car, red car
    row = np.zeros(7)
    row[[4, 3, 6]] = weight / np.linalg.norm(weight)
    np.testing.assert_allclose(found.terms_of(texts)[0, :7].toarray().ravel(), row)
    assert X.shape == (3, 2)
    np.testing.assert_allclose(found.components.T @ found.components, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(found.transform(texts)[0], X)


def test_gaps_unknown_words_and_nothing_at_all():
    found, _ = TextFeatures.fit("t", ["red car", None, "red bus", ""])
    X, n_unknown = found.transform([None, "", "  ", "qqq", "red"])
    assert n_unknown == 1
    assert not X[:4].any()
    assert X[4].any()
    assert found.transform([])[0].shape == (0, found.width)
    with refuses("drop"):
        TextFeatures.fit("t", ["", None])


def test_the_model_finds_the_classes(told):
    _, table, _, y, model = told
    assert model.columns.columns[0].kind == "text"
    right = np.mean(model.predict(table) == np.where(y > 0, "1", "-1"))
    assert max(right, 1 - right) > 0.97
    assert model.report.accuracy.low > 0.85
    assert "texts, with the number of features: notes (" in model.summary()
    assert model.report.importances[0].column == "notes"
    # The features keep their weights: the first vary most, and all by one unit on average.
    X = model.columns.scaled(model.features(table))[:, model.columns.parts[0][1]]
    assert X.var(axis=0)[:3].mean() > 2 * X.var(axis=0).mean()
    np.testing.assert_allclose(X.var(axis=0).mean(), 1)


def test_a_saved_model_decides_to_the_last_bit(told, tmp_path):
    _, _, _, _, model = told
    model.save(tmp_path / "m.sdu")
    other = load_model(tmp_path / "m.sdu")
    new = pd.DataFrame({"notes": [*sentences(300, 5)[0], "", None], "length": range(302)})
    np.testing.assert_array_equal(other.decision_function(new), model.decision_function(new))
    assert other.columns.feature_names == model.columns.feature_names
    with pytest.warns(UnseenCategoryWarning, match="1 text in column 'notes' has no word in common"):
        other.predict(pd.DataFrame({"notes": ["qqq"], "length": [1]}))


def test_long_texts_are_recognised(told):
    folder, table, answers, _, model = told
    for source in (folder / "t.csv", folder / "t.parquet"):
        other = fit_table(source, answers, model="linear")
        np.testing.assert_allclose(other.decision_function(table), model.decision_function(table), atol=1e-8)
    one_word = table.assign(notes=[f"w{k}" for k in range(400)])
    with refuses("text", shows=["50", "'notes'"]):
        fit_table(one_word, answers)
    assert read_features(folder / "t.csv", text=["notes"])[1].shape == (400, model.columns.width)


def test_forged_files(told, tmp_path):
    """Terms and arrays that do not fit together, and kinds without a description."""
    told[-1].save(tmp_path / "m.sdu")

    def forged(change):
        header, arrays = container.read(tmp_path / "m.sdu")
        change(header["layout"], arrays)
        container.write(tmp_path / "bad.sdu", header, arrays)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "bad.sdu")

    forged(lambda layout, arrays: layout["makers"]["notes"]["words"].pop())
    forged(lambda layout, arrays: layout["makers"]["notes"].update(words=[1, 2]))
    forged(lambda layout, arrays: layout["makers"]["notes"].update(weights=["a"]))
    forged(lambda layout, arrays: layout["makers"].clear())
    forged(lambda layout, arrays: arrays.update({"components:notes": arrays["components:notes"][:, 1:]}))
    forged(lambda layout, arrays: arrays["weights:notes"].fill(np.nan))
    forged(lambda layout, arrays: layout["columns"][0].update(kind="image"))
    forged(lambda layout, arrays: layout["columns"][1].update(kind="text"))


def test_fit_reads_the_table_as_it_was_asked_about(told, tmp_path):
    """Texts, and columns left out, are in the log: three commands from a table to its classes."""
    _, table, _, y, _ = told
    short = [" ".join(one.split()[:2]) for one in table.notes[:120]]
    things = table[["id"]][:120].assign(notes=short, truth=y[:120], size=np.arange(120) % 7)
    things.to_csv(tmp_path / "things.csv", index=False)
    log, model = tmp_path / "answers.jsonl", tmp_path / "m.sdu"
    asking = ["--text", "notes", "--oracle", "truth", "--drop", "size", "--questions", "20", "--seed", "1"]
    assert main(["ask", str(tmp_path / "things.csv"), *asking, "-o", str(log)]) == 0
    fitting = [str(log), "--model", "linear", "-o", str(model)]
    assert main(["fit", str(tmp_path / "things.csv"), *fitting]) == 0
    assert main(["predict", str(model), str(tmp_path / "things.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    columns = load_model(model).columns
    assert [(one.name, one.kind) for one in columns.columns] == [("notes", "text")]
    # What is asked for goes first.
    other = fit_table(tmp_path / "things.csv", log, drop=["notes"], categories=["size"], model="linear")
    assert [(one.name, one.kind) for one in other.columns.columns] == [("size", "category")]
