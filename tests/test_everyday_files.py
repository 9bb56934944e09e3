"""Files as people have them (tests/files, written by its write.py): read as the plain one, or refused with a remedy."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sdulearn import fit_table
from sdulearn.answer_files.read import read_answers
from sdulearn.cli.main import main
from sdulearn.errors import InputError
from sdulearn.tables.scan import without_blanks
from sdulearn.tables.source import open_table
from tests.reference import read_features

FILES = Path(__file__).parent / "files"
spec = importlib.util.spec_from_file_location("write", FILES / "write.py")
write = importlib.util.module_from_spec(spec)
spec.loader.exec_module(write)

REFUSED = {
    "utf-16.csv": "is not text in UTF-8.* convert it: iconv -f UTF-16 -t UTF-8",
    "packed.zip": "the name must end in .csv, .tsv, .parquet, .jsonl, .xlsx",
    "header-twice.csv": "has two columns named 'height'. Rename or remove one of them",
    "cell-too-many.csv": "Row #2: Expected 6 columns, got 7: .* put cells that contain the delimiter into quotes",
    "id-twice.csv": "'0101' occurs 2 times. Name another column with `id_column`, or make them unique",
    "empty.csv": "is empty. Its first line must name the columns",
    "answers-without-zeros.csv": "It has '0213', and the answers '213': ids have lost their",
    "answers-scale.csv": r"the labels 1 \(8 times\), .*, 5 \(8 times\), which may be a scale. Say what each step means",
}
SHEETS = {"second-sheet.xlsx": "people"}
ANSWERS = [name for name in write.FILES if name.startswith("answers")]
TABLES = [name for name in write.FILES if name not in ANSWERS]


@pytest.fixture(scope="module")
def plain():
    return features("plain.csv")


def features(name):
    """Ids, and features in an order that does not depend on their names; read for a fit, and for a prediction."""
    sheet = SHEETS.get(name)
    columns, X, ids = read_features(FILES / name, sheet=sheet, answer_ids=set(write.answers().id_a))
    table = open_table(FILES / name, sheet)
    needed = columns.needed(name, list(table.types))
    batches = [without_blanks(batch, table.missing_texts)[0] for _, batch in table.batches(needed, columns.width)]
    np.testing.assert_array_equal(np.concatenate([columns.encode(name, batch)[0] for batch in batches]), X)
    return ids, columns.scaled(X)[:, np.lexsort(X)]


def test_the_files_are_those_of_the_script(tmp_path):
    assert len(write.FILES) >= 40
    write.write(tmp_path)
    for name in write.FILES:
        # A workbook says when it was made, and a packed file by which zlib.
        if not name.endswith((".xlsx", ".gz", ".zip")):
            assert (tmp_path / name).read_bytes() == (FILES / name).read_bytes(), name


@pytest.mark.parametrize("name", [name for name in TABLES if name not in REFUSED])
def test_a_table_is_read_as_the_plain_one(name, plain):
    ids, found = features(name)
    assert ids == plain[0]
    expected = plain[1]
    if name == "true-false.csv":
        # True and false are one number, and other words two categories.
        kept = [k for k, column in enumerate(expected.T) if np.isclose(column, found.T).all(axis=1).any()]
        assert len(kept) == found.shape[1] == expected.shape[1] - 1
        expected = expected[:, kept]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in REFUSED])
def test_answers_are_read_as_the_plain_ones(name):
    found = read_answers(FILES / name, columns={"sheet": "answers"} if "second-sheet" in name else None)
    expected = read_answers(FILES / "answers.csv")
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.answers, expected.answers)
    assert expected.n_similar == write.answers().label.sum()


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_with_the_remedy(name):
    table, answers = ("plain.csv", name) if name in ANSWERS else (name, "answers.csv")
    with pytest.raises(InputError, match=REFUSED[name]):
        fit_table(FILES / table, FILES / answers, model="linear")


@pytest.mark.parametrize(
    ("spelled", "hint"),
    [
        (lambda name: name.lstrip("0"), "ids have lost their leading zeros"),
        (lambda name: f"{name}.0", "they differ in decimals"),
        (lambda name: f"{int(name)}.0", "they differ in decimals"),
        (lambda name: f"{name[:2]}-{name[2:]}", "they differ in blanks, signs or capital letters"),
    ],
)
def test_ids_that_are_spelled_otherwise_are_said_to_be_so_in_any_column(tmp_path, capsys, spelled, hint):
    """By every command that looks for ids; the name of the column tells nothing."""
    table, answers = FILES / "ids-called-kennung.csv", tmp_path / "answers.csv"
    frame = write.answers().astype({"label": int})
    frame.assign(id_a=frame.id_a.map(spelled), id_b=frame.id_b.map(spelled)).to_csv(answers, index=False)
    with pytest.raises(InputError, match=hint):
        fit_table(table, answers)
    assert main(["check", str(answers), "--table", str(table)]) == 1
    assert hint in capsys.readouterr().out
    labels = {spelled(name): k % 2 for k, name in enumerate(write.people().id[:4])}
    with pytest.raises(InputError, match=f"and the labels .*{hint}"):
        fit_table(table, FILES / "answers.csv", labels=labels)


def test_an_encoding_that_is_not_utf8_is_noted_and_never_guessed_for_other_alphabets(tmp_path):
    model = fit_table(FILES / "windows-1252.csv", FILES / "answers.csv", model="linear")
    noted = {finding.code: finding.numbers() for finding in model.report.findings}
    assert noted["passed_over"]["encoding"] == "windows-1252"
    words = write.words_of("égal", "différent").replace("id_a", "id_ä")
    names = {"columns": {"id_a": "id_ä", "id_b": "id_b"}, "words": {"égal": "similar", "différent": "dissimilar"}}
    path = tmp_path / "answers.csv"
    path.write_bytes(words.encode("windows-1252"))
    found = read_answers(path, **names)
    assert found.format == "csv in windows-1252"
    np.testing.assert_array_equal(found.answers, read_answers(FILES / "answers.csv").answers)
    russian = words.replace("id_ä", "id_a").replace("égal", "равно").replace("différent", "различно")
    damaged = words.encode().replace(b"\xc3\xa9gal", b"\xc3gal", 1)
    for data in (damaged, russian.encode("cp1251"), words.encode("utf-16")):
        path.write_bytes(data)
        with pytest.raises(InputError):
            read_answers(path, **names)


def test_the_german_file_with_its_own_column_names(tmp_path):
    text = write.words_of("gleich", "verschieden").replace("id_a,id_b,label", "Kennung A,Kennung B,Antwort")
    path = tmp_path / "antworten.csv"
    path.write_text(text.replace(",", ";"))
    model = fit_table(FILES / "ids-called-kennung.csv", path, model="linear")
    assert model.report.n_similar == write.answers().label.sum()
    assert model.report.answer_columns == {"id_a": "Kennung A", "id_b": "Kennung B", "label": "Antwort"}
