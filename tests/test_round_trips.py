"""ask -> fit -> check -> predict: whatever the ids are and whatever happens to the table, answers keep their rows."""

import unicodedata

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table, load_model
from sdulearn.answer_files.log import read_log
from sdulearn.answers import read_answers
from sdulearn.cli.main import main
from sdulearn.errors import InputError
from sdulearn.workflow import predict_table
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")
N = 60
RNG = np.random.default_rng(0)
Y = RNG.permutation(np.repeat([0, 1], [24, 36]))
X = (RNG.normal(size=(N, 2)) + 4 * Y[:, None]).round(3)
E_ACUTE = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
# The name of the id column and the ids.
IDS = {
    "nr": ("nr", list(range(1, N + 1))),
    "text": ("id", [f"r{k}" for k in range(N)]),
    "formulas": ("id", [f"{'@=+-'[k % 4]}x{k}" for k in range(N)]),
    "accents": ("id", [f"{E_ACUTE[k % 2]}{k // 2}" for k in range(N)]),
    "missing marks": ("id", ["NA", "None", "null", "nan", "?", *(f"r{k}" for k in range(5, N))]),
}


def table_of(name):
    column, ids = IDS[name]
    return pd.DataFrame({column: ids, "a": X[:, 0], "b": X[:, 1], "truth": np.where(Y, "cat", "dog")})


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Table and log of 30 answers from the column of the truth, by kind of ids."""
    made = {}

    def ask(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("ask")
            table_of(name).to_csv(folder / "t.csv", index=False)
            assert ask_more(folder / "t.csv", folder / "log.jsonl", questions=30) == 0
            made[name] = folder / "t.csv", folder / "log.jsonl"
        return made[name]

    return ask


def ask_more(table, log, *more, questions=3):
    return run("ask", table, "-o", log, "--oracle", "truth", "--questions", questions, "--seed", 1, *more)


def fit(table, answers, model, *more):
    return run("fit", table, answers, "-o", model, "--model", "linear", "--drop", "truth", *more)


def is_right(labels, truth):
    """Whether nearly all rows have their class, whatever it is called."""
    share = np.mean((np.asarray(labels) == labels[0]) == (np.asarray(truth) == truth[0]))
    return max(share, 1 - share) > 0.9


@pytest.mark.parametrize("name", IDS)
def test_every_kind_of_ids(asked, tmp_path, name, capsys):
    """The classes that were answered are those that are predicted, under the same ids, in every step."""
    table, log = asked(name)
    column, ids = IDS[name]
    ids = list(map(str, ids))
    answers = read_answers(log)
    assert set(answers.ids.ravel()) <= set(map(str, range(N)) if name == "nr" else ids)
    assert fit(table, log, tmp_path / "m.sdu") == 0
    assert load_model(tmp_path / "m.sdu").report.accuracy.value > 0.85
    capsys.readouterr()
    run("check", log, "--table", table)
    assert "not in the table" not in capsys.readouterr().out
    for more in ((), ("--answers", log)):
        given = ("--id-column", column) if name == "nr" and not more else ()
        assert run("predict", tmp_path / "m.sdu", table, "-o", tmp_path / "out.csv", *given, *more) == 0
        found = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
        assert is_right(found["label"].tolist(), table_of(name)["truth"].tolist())
        written = [cell[1:] if cell[:1] == "'" else cell for cell in found["id"]]
        assert written == (list(map(str, range(N))) if name == "nr" and more else ids)


def inserted(frame, place):
    new = frame[:1].assign(**{frame.columns[0]: 999 if frame.columns[0] == "nr" else "new"})
    return pd.concat([frame[:place], new, frame[place:]])


CHANGES = {
    "shuffled": lambda frame: frame.sample(frac=1, random_state=0),
    "a row inserted": lambda frame: inserted(frame, 7),
    "sorted": lambda frame: frame.sort_values("a"),
    "appended": lambda frame: inserted(frame, N),
    "a row removed": lambda frame: frame[:-1],
    "two rows exchanged": lambda frame: frame.iloc[[1, 0, *range(2, N)]],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_table_without_ids_is_refused_everywhere(asked, tmp_path, change, capsys):
    """The answers name rows by their numbers, and these are other rows now."""
    table, log = asked("nr")
    frame = CHANGES[change](table_of("nr")).reset_index(drop=True)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "log.jsonl").write_bytes(log.read_bytes())
    model = tmp_path / "m.sdu"
    fit_table(table, log, model="linear").save(model)
    capsys.readouterr()
    commands = {
        "fit": lambda: fit(tmp_path / "t.csv", log, tmp_path / "n.sdu"),
        "ask": lambda: ask_more(tmp_path / "t.csv", tmp_path / "log.jsonl"),
        "check": lambda: run("check", log, "--table", tmp_path / "t.csv"),
        "predict": lambda: run("predict", model, tmp_path / "t.csv", "--answers", log, "-o", tmp_path / "out.csv"),
    }
    for name, command in commands.items():
        assert command() == 2, name
        assert "has changed since the questions were asked" in capsys.readouterr().err
    with refuses(shows=["changed"]):
        fit_table(frame, log)
    assert (tmp_path / "log.jsonl").read_bytes() == log.read_bytes()


@pytest.mark.parametrize("change", ["shuffled", "a row inserted", "sorted", "appended"])
def test_a_changed_table_with_ids_is_the_same_table(asked, change):
    table, log = asked("text")
    frame = CHANGES[change](table_of("text")).reset_index(drop=True)
    model = fit_table(frame, log, model="linear")
    assert is_right(model.predict(frame), frame["truth"].tolist())
    grew = [one.numbers() for one in model.report.findings if one.code == "table_grew"]
    assert grew == ([] if len(frame) == N else [{"before": N, "now": N + 1}])
    before = fit_table(table, log, model="linear").report.accuracy
    assert model.report.accuracy.value == pytest.approx(before.value, abs=0.1)


def test_a_frame_is_the_same_table_as_its_file(asked):
    """Row numbers are those of the file: a frame that pandas read from it has other types."""
    table, log = asked("nr")
    assert is_right(
        fit_table(pd.read_csv(table), log, model="linear").predict(pd.read_csv(table)), table_of("nr")["truth"]
    )


def test_corrected_rows_are_a_warning(tmp_path):
    """A few cells of rows that were asked about, not in the sample that the digest of the table is of."""
    big = pd.concat([table_of("nr")] * 10, ignore_index=True).assign(nr=range(1, 10 * N + 1))
    big.to_csv(tmp_path / "t.csv", index=False)
    assert ask_more(tmp_path / "t.csv", tmp_path / "log.jsonl", questions=30) == 0
    rows = sorted({int(name) for name in read_answers(tmp_path / "log.jsonl").ids.ravel()})

    def codes_of(changed):
        try:
            frame = big.assign(a=np.where(big.index.isin(changed), 0.5, big["a"]))
            model = fit_table(frame, tmp_path / "log.jsonl", model="linear")
        except InputError:
            return ["refused"]
        return [one.code for one in model.report.findings]

    outside = [row for row in rows[:8] if "asked_rows_changed" in codes_of([row])]
    assert len(outside) > 2
    # More than one in twenty of those that were asked about.
    assert len(rows) < 60
    assert codes_of(outside[:3]) == ["refused"]


def test_a_log_keeps_its_id_column(asked, tmp_path, capsys):
    """It is never guessed again, and another one is refused by its name."""
    table, log = asked("nr")
    assert read_answers(log).reading.id_column == ""
    (tmp_path / "log.jsonl").write_bytes(log.read_bytes())
    assert ask_more(table, tmp_path / "log.jsonl", "--id-column", "nr") == 2
    assert "row numbers from 0" in (told := capsys.readouterr().err)
    assert "'nr'" in told
    assert ask_more(table, tmp_path / "log.jsonl") == 0
    assert {one.id_column for one in read_log(tmp_path / "log.jsonl").readings} == {""}
    assert fit(table, log, tmp_path / "m.sdu", "--id-column", "nr") == 2
    assert run("check", log, "--table", table, "--id-column", "nr") == 2
    model = fit_table(table, log, model="linear")
    with refuses(shows=["row numbers from 0"]):
        next(predict_table(model, table, answers=log, id_column="nr"))
    named = tmp_path / "named.jsonl"
    assert ask_more(table, named, "--id-column", "nr") == 0
    assert ask_more(table, named) == 0
    renamed = table_of("nr").rename(columns={"nr": "number"})
    with refuses(shows=["'nr'"]):
        fit_table(renamed, named)
    # Logs of two tables are not one log.
    both = tmp_path / "both.jsonl"
    both.write_bytes(log.read_bytes() + named.read_bytes())
    with refuses(shows=["columns"]):
        read_answers(both)


def test_ids_of_a_plain_file_that_may_be_row_numbers_have_to_be_named(tmp_path):
    """Without a log nobody knows what 7 is: the seventh row, or the eighth."""
    pairs = RNG.permutation(np.arange(1, N))[:50].reshape(25, 2)
    same = np.where(Y[pairs[:, 0] - 1] == Y[pairs[:, 1] - 1], "same", "different")
    answers = pd.DataFrame({"id_a": pairs[:, 0], "id_b": pairs[:, 1], "label": same})
    with refuses("id_column"):
        fit_table(table_of("nr"), answers, drop=["truth"])
    model = fit_table(table_of("nr"), answers, drop=["truth"], id_column="nr", model="linear")
    assert is_right(model.predict(table_of("nr")), table_of("nr")["truth"])


@pytest.mark.parametrize("odd", ["", "  ", "r5"])
def test_ids_that_do_not_name_one_row_are_refused_before_a_question_is_shown(tmp_path, odd):
    table_of("text").assign(id=[odd, *(f"r{k}" for k in range(1, N))]).to_csv(tmp_path / "t.csv", index=False)
    assert ask_more(tmp_path / "t.csv", tmp_path / "log.jsonl") == 2
    assert not (tmp_path / "log.jsonl").exists()


NAMES = {
    "padded numbers": ("Kundennr.", lambda k: f"{k + 7:05d}"),
    "numbers from 1": ("Kunde", lambda k: k + 1),
    "numbers of rows": ("nr", lambda k: k + 1),
    "numbers from elsewhere": ("Kunde", lambda k: k + 4000),
    "numbers by their name": ("Kunden-Nr.", lambda k: 17 * k + 40),
    "codes": ("Probe", lambda k: f"P{k}-b"),
    "names": ("Firma", lambda k: f"Meier {k}"),
}


def test_an_id_that_another_row_has_is_refused_although_that_row_is_not_in_the_sample(tmp_path, monkeypatch, capsys):
    """A large table is asked about by a sample of its rows."""
    monkeypatch.setattr("sdulearn.workflow.data.MAX_UNLABELED", 20)
    monkeypatch.setattr("sdulearn.cli.ask.sample_sizes", lambda n: [20])
    frame = table_of("text").assign(id=[f"r{k // 2}" for k in range(N)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert ask_more(tmp_path / "t.csv", tmp_path / "log.jsonl") == 2
    assert "2 times" in capsys.readouterr().err
    assert not (tmp_path / "log.jsonl").exists()


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_id_column_of_another_name_is_no_feature(tmp_path, capsys, kind, ending):
    name, spell = NAMES[kind]
    frame = table_of("text").rename(columns={"id": name})
    frame[name] = list(map(spell, range(N)))
    table = tmp_path / f"t.{ending}"
    {"csv": frame.to_csv, "parquet": frame.to_parquet}[ending](table, index=False)
    assert ask_more(table, tmp_path / "log.jsonl", questions=30) == 0
    told = f"'{name}'" in capsys.readouterr().out
    model = fit_table(table, tmp_path / "log.jsonl", model="linear")
    assert [column.name for column in model.columns.columns if column.name != "truth"] == ["a", "b"]
    assert told == (kind != "numbers of rows")
    assert model.columns.id_column == (name if told else None)


VALUES = {
    "fractions": ("Kundennr.", lambda k: k + 0.5),
    "whole numbers": ("income", lambda k: 17 * k % 1009),
    "dates": ("born", lambda k: f"2020-01-{k % 30 + 1:02d} {k // 30:02d}:00"),
    "sentences": ("review", lambda k: f"a review of number {k} again"),
    "two alike": ("Kundennr.", lambda k: f"{max(k, 1):05d}"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_other_first_columns_are_features(kind):
    name, spell = VALUES[kind]
    frame = table_of("text").rename(columns={"id": name}).assign(**{name: list(map(spell, range(N)))})
    pairs = RNG.permutation(N)[:40].reshape(20, 2)
    answers = pd.DataFrame({"id_a": pairs[:, 0], "id_b": pairs[:, 1], "label": Y[pairs[:, 0]] == Y[pairs[:, 1]]})
    model = fit_table(frame, answers, id_column="", drop=["truth"], model="linear", max_categories=N)
    assert model.columns.columns[0].name == name


def test_two_labels_for_one_id_are_refused(asked, tmp_path):
    table, log = asked("text")
    (tmp_path / "labels.csv").write_text("id,label\nr1,cat\nr2,dog\nr1,dog\n")
    assert fit(table, log, tmp_path / "m.sdu", "--labels", tmp_path / "labels.csv") == 2
    with refuses(shows=["two labels"]):
        fit_table(table, log, labels={1: "cat", "1": "dog"})


def test_predict_takes_the_words_of_answers(asked, tmp_path):
    table, log = asked("text")
    fit_table(table, log, model="linear").save(tmp_path / "m.sdu")
    (tmp_path / "pairs.csv").write_text("id_a,id_b,label\nr1,r2,jawohl\n")
    output = tmp_path / "out.csv"
    given = ("--answers", tmp_path / "pairs.csv", "--words", "jawohl=similar", "-o", output)
    assert run("predict", tmp_path / "m.sdu", table, *given) == 0
    # Columns that only their ids tell, as for a fit.
    (tmp_path / "pairs.csv").write_text("Eins;Zwei;Antwort\nr1;r2;gleich\nr3;r4;verschieden\n")
    assert run("predict", tmp_path / "m.sdu", table, "--answers", tmp_path / "pairs.csv", "-o", output) == 0
    assert pd.read_csv(output)["n_answers"].sum() == 4


def test_ids_in_another_unicode_form_get_a_hint():
    composed = table_of("accents")[::2]
    answers = pd.DataFrame({"id_a": [f"{E_ACUTE[1]}1"], "id_b": [f"{E_ACUTE[1]}2"], "label": ["same"]})
    with refuses(shows=["Unicode"]):
        fit_table(composed, answers, drop=["truth"])


def test_predict_does_not_fall_back_to_row_numbers(asked, tmp_path, capsys):
    table, log = asked("text")
    fit_table(table, log, model="linear").save(tmp_path / "m.sdu")
    table_of("text").rename(columns={"id": "key"}).to_csv(tmp_path / "t.csv", index=False)
    capsys.readouterr()
    code = run("predict", tmp_path / "m.sdu", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert code == 2 or "'id'" in "".join(capsys.readouterr())
