"""The page's download: a CSV of answers from which a fit is that of the log."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table
from sdulearn.answer_files.download import as_csv
from sdulearn.answer_files.log import read_log
from sdulearn.answers import read_answers
from sdulearn.cli.main import main
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")
SAME_FIELDS = ("ids", "answers", "weights", "annotators", "times", "kinds", "drawn", "questions", "certainty", "nearer")
SAME_VALUES = ("n_unranked", "epsilon", "n_questions", "n_chosen", "n_classes", "audits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose ids begin like formulas, with two and with three classes."""
    folder = tmp_path_factory.mktemp("download")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    frame = pd.DataFrame(rng.normal(size=(150, 2)) + 3 * np.eye(3)[y][:, :2], columns=["x", "z"]).round(4)
    frame.insert(0, "id", [f"@user{k}" for k in range(150)])
    frame["two"], frame["three"] = y > 0, y
    frame.to_csv(folder / "t.csv", index=False)
    return folder


def downloaded(folder, log):
    path = log.with_suffix(".csv")
    path.write_text(as_csv(read_log(log)), encoding="utf-8", newline="")
    return path


CASES = {
    "linked": [["--oracle", "two", "--questions", n, "--annotator", who] for n, who in ((25, "ann"), (15, "+bob"))],
    "match": [
        ["--oracle", "three", "--classes", 3, "--questions", 45, "--annotator", "judge"],
        ["--oracle", "three", "--classes", 3, "--audit", 10, "--annotator", "ann"],
    ],
    "sort": [
        ["--oracle", "two", "--design", "sort", "--questions", 20, "--annotator", "judge"],
        ["--oracle", "two", "--design", "sort", "--audit", 5, "--annotator", "ann"],
    ],
    "private": [["--oracle", "two", "--questions", 40, "--private", 2]],
}


@pytest.mark.parametrize("name", CASES)
def test_a_fit_of_the_download_is_that_of_the_log(folder, name):
    """The same answers, model, prior, accuracy and error rates."""
    log = folder / f"{name}.jsonl"
    for options in CASES[name]:
        given = ["ask", folder / "t.csv", "-o", log, "--drop", "two,three", "--seed", 1, *options]
        assert main(list(map(str, given))) == 0
    by_log, by_page = (read_answers(path) for path in (log, downloaded(folder, log)))
    for field in SAME_FIELDS:
        np.testing.assert_array_equal(getattr(by_page, field), getattr(by_log, field), err_msg=field)
    for field in SAME_VALUES:
        assert getattr(by_page, field) == getattr(by_log, field), field
    assert by_page.reading == by_log.reading
    assert by_page.reading.id_column == "id"
    models = [fit_table(folder / "t.csv", path, model="linear") for path in (log, log.with_suffix(".csv"))]
    first, second = (model.report for model in models)
    np.testing.assert_array_equal(*(model.estimator.coef_ for model in models))
    for field in ("accuracy", "agreement", "prior", "annotators", "error_rate"):
        # As texts: NaN is not equal to itself.
        assert repr(getattr(first, field)) == repr(getattr(second, field))
    if name == "private":
        assert first.error_rate.value == pytest.approx(1 / (1 + np.exp(2)))
    if name in ("match", "sort"):
        assert by_page.audits["judge"][0] >= 5


def test_somebody_may_work_on_it_in_a_spreadsheet(folder, tmp_path):
    """Sort, delete and correct lines, add some, and save as a workbook."""
    log = tmp_path / "log.jsonl"
    main(["ask", str(folder / "t.csv"), "-o", str(log), "--drop", "two,three", "--seed", "1", "--oracle", "two",
          "--questions", "20"])  # fmt: skip
    frame = pd.read_csv(downloaded(folder, log)).sort_values("id_b")[:15].drop(columns=["seed", "comment"])
    frame.loc[frame.index[0], "label"] = "unsure"
    frame = pd.concat([frame, pd.DataFrame({"id_a": ["@user1"], "id_b": ["@user2"], "label": ["same"]})])
    frame.to_excel(tmp_path / "answers.xlsx", index=False)
    for source in (frame, tmp_path / "answers.xlsx"):
        answers = read_answers(source)
        assert (len(answers.answers), answers.answers[0], answers.answers[-1]) == (16, 0, 1)
        assert set(answers.ids.ravel()) <= {f"@user{k}" for k in range(150)}
        random = answers.kinds == "random"
        assert 0 < random.sum() < 16
        assert answers.drawn[random].all()
        assert not answers.drawn[-1]


@pytest.mark.parametrize(("column", "cell"), [("rank", "x"), ("epsilon", "-1"), ("items", "[1"), ("rank", "1.5")])
def test_a_line_that_cannot_be_read_is_named(folder, tmp_path, column, cell):
    log = tmp_path / "log.jsonl"
    main(["ask", str(folder / "t.csv"), "-o", str(log), "--oracle", "two", "--questions", "5", "--drop", "three"])
    rows = list(csv.DictReader(io.StringIO(downloaded(folder, log).read_text())))
    rows[2][column] = cell
    frame = pd.DataFrame(rows)
    assert [row.line for row in read_answers(frame).bad_rows] == [3]
    assert json.loads(rows[0]["reading"])["id_column"] == "id"
    with refuses(shows=["'reading'"]):
        read_answers(frame.assign(reading="{"))
