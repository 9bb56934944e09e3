"""Workbooks: what cells of each kind become, and workbooks that are damaged, hostile or never computed."""

import datetime
import re
import resource
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from sdulearn.answers import read_answers
from sdulearn.errors import InputError
from sdulearn.tables import excel
from sdulearn.tables.source import open_table, read_whole
from tests.reference import read_features, refuses

FRAME = pd.DataFrame({"id": ["a", "b", "c", "d"], "x": [0.5, -1, 2.25, 3], "colour": ["red", "blue", "red", "red"]})
SHEET = "xl/worksheets/sheet1.xml"
BEGIN = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
END = b"</sheetData></worksheet>"


def saved(path, rows):
    """A workbook with these rows; texts such as #DIV/0! are errors."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell in (cell for row in book.active.iter_rows() for cell in row):
        if str(cell.value).startswith("#"):
            cell.data_type = "e"
    book.save(path)
    return path


@pytest.fixture
def rewritten(tmp_path):
    """A function that writes a workbook anew, with other contents of its files."""

    def write(**contents):
        FRAME.to_excel(tmp_path / "plain.xlsx", index=False)
        with (
            zipfile.ZipFile(tmp_path / "plain.xlsx") as old,
            zipfile.ZipFile(tmp_path / "other.xlsx", "w", zipfile.ZIP_DEFLATED) as new,
        ):
            changes = {name: lambda text, kept=text: kept for name, text in contents.items() if isinstance(text, bytes)}
            for name in dict.fromkeys([*old.namelist(), *contents]):
                text = old.read(name) if name in old.namelist() else b""
                new.writestr(name, {**contents, **changes}.get(name, lambda text: text)(text))
        return tmp_path / "other.xlsx"

    return write


def test_cells_of_every_kind(tmp_path):
    """Errors are missing values; dates before March 1900, which Excel numbers in its own way, are right."""
    date, hours = datetime.date, datetime.timedelta
    columns = {
        "error": ["#DIV/0!", 2.5, "#N/A"],
        "whole": [1, 2.0, None],
        "yes": [True, False, None],
        "early": [date(1900, 1, 1), date(1900, 2, 28), date(1900, 3, 1)],
        "day": [date(2020, 1, 1), None, date(2021, 5, 6)],
        "clock": [datetime.time(0), datetime.time(12), datetime.time(13, 5)],
        "span": [hours(1), hours(2), hours(1.25)],
        "mixed": [1, "x", 0.5],
    }
    path = saved(tmp_path / "t.xlsx", [list(columns), *zip(*columns.values(), strict=True)])
    assert read_whole(path).to_pydict() == {**columns, "error": [None, 2.5, None], "mixed": ["1", "x", "0.5"]}


@pytest.mark.parametrize("first", [0, 1])
def test_times_are_kept_wherever_a_midnight_is(tmp_path, first):
    """One column of times as soon as one is not midnight, the first or another one."""
    times = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 12, 30), datetime.datetime(2020, 1, 2)]
    times = [*times[first:], *times[:first]]
    path = saved(tmp_path / "t.xlsx", [["id", "when"], *zip("abc", times, strict=True)])
    assert read_whole(path)["when"].to_pylist() == times
    days = read_features(path)[1][:, 0]
    np.testing.assert_allclose(np.diff(days), np.diff([moment.timestamp() for moment in times]) / 86_400)


def test_ids_that_are_dates_or_large_are_alike_in_table_and_answers(tmp_path):
    ids = [datetime.date(2020, 1, day) for day in range(1, 4)]
    table = saved(tmp_path / "t.xlsx", [["id", "x"], *([name, k] for k, name in enumerate(ids))])
    pairs = saved(tmp_path / "a.xlsx", [["id_a", "id_b", "label"], [ids[0], ids[1], 1], [ids[0], ids[2], 0]])
    assert read_features(table)[2] == ["2020-01-01", "2020-01-02", "2020-01-03"]
    assert read_answers(pairs).ids.tolist() == [["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-03"]]
    large = read_features(saved(table, [["id", "x"], [2**53 - 1, 1], [7.0, 2]]))[2]
    assert large == ["9007199254740991", "7"]


def test_formulas_that_were_never_computed_are_refused(rewritten, tmp_path):
    """One with an empty text as its value is a gap, as a formatted cell without a value is."""
    path = saved(tmp_path / "t.xlsx", [["id", "x", "y"], ["a", 1, "=B2+1"], ["b", 2, "=B3+1"]])
    with refuses(shows=["2", "C2"]):
        open_table(path)
    with refuses(shows=["1", "C2"]):
        read_answers(saved(tmp_path / "a.xlsx", [["id_a", "id_b", "label"], ["a", "b", '=IF(1,"same","")']]))
    cells = b'<c r="C2"><f>B2+1</f><v>3</v></c>', b'<c r="C3" t="str"><f>IF(B3,"")</f><v></v></c><c r="D3" s="1"/>'
    rows = [b'<c t="str"><v>id</v></c><c t="str"><v>x</v></c><c t="str"><v>y</v></c>']
    rows += [b'<c t="str"><v>a</v></c><c><v>2</v></c>' + cells[0], b'<c t="str"><v>b</v></c><c><v>0</v></c>' + cells[1]]
    computed = rewritten(**{SHEET: BEGIN + b"".join(b"<row>%s</row>" % row for row in rows) + END})
    assert read_whole(computed).to_pydict() == {"id": ["a", "b"], "x": [2, 0], "y": [3, None]}


def test_cells_outside_the_named_columns_are_not_lost(tmp_path):
    """A table may begin anywhere; a value behind the last name is refused, as it is in other files."""
    path = saved(tmp_path / "t.xlsx", [[], [None, "id", "x"], [None, "a", 1], [None, "b", 2], [None, None, None]])
    assert read_whole(path).to_pydict() == {"id": ["a", "b"], "x": [1, 2]}
    with refuses("drop", shows=["'Unnamed:"]):
        read_features(saved(path, [["id", "x"], ["a", 1], ["b", 2, None, 7]]))


ENTITIES = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">%s]>' % b"".join(
    b'<!ENTITY %c "%s">' % (98 + k, b"&%c;" % (97 + k) * 10) for k in range(9)
)
OUTSIDE = b'<!DOCTYPE x [<!ENTITY j SYSTEM "file:///etc/hostname">]>'
WIDE = b"".join(b'<row r="%d"><c r="XFD%d"><v>%d</v></c></row>' % (k, k, k * k) for k in range(1, 5_001))
HOSTILE = {
    "entities in a sheet": {SHEET: lambda text: ENTITIES + text.replace(b">red<", b">&j;<")},
    "entities in the workbook": {"xl/workbook.xml": lambda text: ENTITIES + text.replace(b"Sheet1", b"&j;")},
    "entities in the formats": {"xl/styles.xml": lambda text: ENTITIES + text},
    "an entity from a file": {SHEET: lambda text: OUTSIDE + text.replace(b">red<", b">&j;<")},
    "a row far below": {SHEET: BEGIN + b'<row><c><v>1</v></c></row><row r="99999999999"><c><v>1</v></c></row>' + END},
    "rows as wide as can be": {SHEET: BEGIN + WIDE + END},
    "a row that is too wide": {SHEET: BEGIN + b"<row>" + b"<c><v>1</v></c>" * 20_000 + b"</row>" + END},
    "half of a sheet": {SHEET: lambda text: text[: len(text) // 2]},
    "spaces without end": {SHEET: BEGIN + b" " * 60_000_000 + END},
    "no rows": {SHEET: BEGIN + END},
    "words for numbers": {SHEET: lambda text: text.replace(b"<v>0.5</v>", b"<v>half</v>")},
    "no sheet": {"xl/_rels/workbook.xml.rels": lambda text: text.replace(b"sheet1.xml", b"sheet7.xml")},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_workbooks_are_refused_soon_and_in_little_memory(rewritten, name):
    path = rewritten(**HOSTILE[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError):
        open_table(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB


def test_texts_that_many_cells_share_are_counted_in_each(rewritten, monkeypatch):
    """A text of the table of strings is in memory once, and in the column as often as it is named."""
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s"/></Types>' % kind
    strings = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>%s</t></si></sst>'
    path = rewritten(
        **{
            "[Content_Types].xml": lambda text: text.replace(b"</Types>", part),
            "xl/sharedStrings.xml": strings % (b"x" * 30_000),
            SHEET: BEGIN + b'<row><c t="s"><v>0</v></c></row>' * 1000 + END,
        }
    )
    assert open_table(path).n_rows == 999
    monkeypatch.setattr(excel, "_MAX_BYTES", 20_000_000)
    with refuses(shows=["CSV"]):
        open_table(path)


def test_a_size_that_a_sheet_only_claims_is_ignored(rewritten):
    """Also where its cells do not say where they are."""
    claim = rewritten(**{SHEET: lambda text: re.sub(rb"<dimension[^>]*>", b'<dimension ref="A1:XFD1048576"/>', text)})
    assert read_whole(claim).to_pandas().equals(FRAME)
    unplaced = rewritten(**{SHEET: lambda text: re.sub(rb' r="[A-Z]*[0-9]+"', b"", text)})
    assert read_whole(unplaced).to_pandas().equals(FRAME)
    # Two links to one sheet: what is read is what is checked.
    link = re.compile(rb"<Relationship [^>]*sheet1[^>]*/>")
    twice = rewritten(**{"xl/_rels/workbook.xml.rels": lambda text: link.sub(lambda found: 2 * found[0], text)})
    assert read_whole(twice).to_pandas().equals(FRAME)


def test_links_to_other_workbooks_are_not_followed(rewritten):
    """They hold copies of other tables, and may lead nowhere."""
    name = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    link = b'</sheets><externalReferences><externalReference xmlns:r="%s" r:id="nowhere"/></externalReferences>' % name
    path = rewritten(**{"xl/workbook.xml": lambda text: text.replace(b"</sheets>", link)})
    assert read_whole(path).to_pandas().equals(FRAME)


def test_damaged_bytes_are_an_error_of_ours_or_read(rewritten):
    path = rewritten()
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        damaged = np.frombuffer(whole, np.uint8).copy()
        damaged[rng.integers(len(whole), size=3)] = rng.integers(256, size=3)
        path.write_bytes(damaged[: None if rng.random() < 0.8 else rng.integers(len(whole))].tobytes())
        try:
            open_table(path)
        except InputError:
            refused += 1
    assert refused > 30


def test_a_hidden_sheet_is_read_only_by_its_name(tmp_path):
    book = openpyxl.Workbook()
    hidden, shown = book.active, book.create_sheet("shown")
    hidden.title, hidden.sheet_state = "hidden", "hidden"
    for sheet, value in ((hidden, 1), (shown, 2)):
        sheet.append(["x"])
        sheet.append([value])
    book.active = 1
    book.save(tmp_path / "t.xlsx")
    for name, value in ((None, 2), ("hidden", 1), ("1", 1), ("2", 2)):
        assert excel.read_workbook(tmp_path / "t.xlsx", name).rows == [[value]]
