"""Writes the everyday files beside it: python tests/files/write.py. Each function documents one quirk.

All tables hold the same 36 people and all files of answers the same 40 answers, so that each must give what the plain
one gives, or be refused with a remedy; tests/test_everyday_files.py says which.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
FILES: dict[str, Callable[[], str | bytes]] = {}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    tall = np.arange(36) % 2
    return pd.DataFrame(
        {
            "id": [f"0{101 + 7 * k}" for k in range(36)],
            "height": (160 + 18 * tall + rng.normal(0, 5, 36)).round(1),
            "income": (31000 + 9000 * tall + rng.normal(0, 4000, 36)).round(2),
            "joined": pd.Timestamp("2020-01-13") + pd.to_timedelta(rng.integers(0, 900, 36), "D"),
            "member": np.where(rng.random(36) < 0.3 + 0.4 * tall, "yes", "no"),
            "city": np.array(["Köln", "Genève", "Málaga"])[rng.integers(0, 3, 36)],
        }
    )


def answers() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    ends = np.array([rng.choice(36, 2, replace=False) for _ in range(40)])
    ids = people().id.to_numpy()
    return pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": (ends.sum(axis=1) % 2 == 0)})


def texts(date: str = "%Y-%m-%d", decimal: str = ".", thousands: str = "", **words: dict[str, str]) -> pd.DataFrame:
    """All cells as text."""
    frame = people()

    def spelled(value: float, digits: int) -> str:
        return f"{value:,.{digits}f}".replace(",", "T").replace(".", decimal).replace("T", thousands)

    frame["height"] = [spelled(one, 1) for one in frame.height]
    frame["income"] = [spelled(one, 2) for one in frame.income]
    frame["joined"] = frame.joined.dt.strftime(date)
    return frame.replace(words)


def lines(frame: pd.DataFrame, sep: str = ",", quoting: int = 0, end: str = "\n") -> str:
    return frame.to_csv(index=False, sep=sep, quoting=quoting, lineterminator=end)


def words_of(same: str, different: str) -> str:
    frame = answers()
    return lines(frame.assign(label=np.where(frame.label, same, different)))


def workbook(sheets: dict[str, pd.DataFrame], above: int = 0) -> bytes:
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine="openpyxl") as writer:
        for name, frame in sheets.items():
            frame.to_excel(writer, sheet_name=name, index=False, startrow=above)
            if above:
                writer.sheets[name].cell(1, 1, "Members of the club, spring survey")
    return buffer.getvalue()


def zipped(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("people.csv"), text)
    return buffer.getvalue()


FILES |= {
    # Tables: delimiters and line ends.
    "plain.csv": lambda: lines(texts()),
    "tabs.tsv": lambda: lines(texts(), "\t"),
    "tabs-named-csv.csv": lambda: lines(texts(), "\t"),
    "bars.csv": lambda: lines(texts(), "|"),
    "windows-lines.csv": lambda: lines(texts(), end="\r\n"),
    "everything-quoted.csv": lambda: lines(texts(), quoting=1),
    "delimiter-at-the-end.csv": lambda: lines(texts()).replace("\n", ",\n"),
    # Encodings.
    "utf-8-mark.csv": lambda: lines(texts()).encode("utf-8-sig"),
    "utf-16.csv": lambda: lines(texts(), "\t").encode("utf-16"),
    "windows-1252.csv": lambda: lines(texts(), ";").encode("cp1252"),
    # Numbers.
    "german.csv": lambda: lines(texts("%d.%m.%Y", ",", member={"yes": "ja", "no": "nein"}), ";"),
    "german-thousands.csv": lambda: lines(texts("%d.%m.%Y", ",", "."), ";"),
    "english-thousands.csv": lambda: lines(texts(thousands=",")),
    "french-thousands.csv": lambda: lines(texts("%d/%m/%Y", ",", "\u202f", member={"yes": "oui", "no": "non"}), ";"),
    "swiss-thousands.csv": lambda: lines(texts("%d.%m.%Y", ".", "'"), ";"),
    # Dates and booleans.
    "date-and-time.csv": lambda: lines(texts("%Y-%m-%dT00:00:00")),
    "true-false.csv": lambda: lines(texts(member={"yes": "TRUE", "no": "FALSE"})),
    # Around the table.
    "title-above.csv": lambda: "Members of the club\n\n" + lines(texts()),
    "blank-rows.csv": lambda: lines(texts()).replace("\n", "\n,,,,,\n", 9) + "\n\n",
    "blanks-around-cells.csv": lambda: lines(texts()).replace(",", " , "),
    # Ids under a name that says nothing: the answers tell which column holds them.
    "ids-called-kennung.csv": lambda: lines(texts().rename(columns={"id": "Kennung"})),
    # Packed, and other formats.
    "packed.csv.gz": lambda: gzip.compress(lines(texts()).encode(), mtime=0),
    "packed.zip": lambda: zipped(lines(texts())),
    "lines.jsonl": lambda: people().to_json(orient="records", lines=True, date_format="iso", force_ascii=False),
    "plain.xlsx": lambda: workbook({"people": people()}),
    "title-above.xlsx": lambda: workbook({"people": people()}, above=2),
    "second-sheet.xlsx": lambda: workbook({"notes": pd.DataFrame({"note": ["see people"]}), "people": people()}),
    # Refused.
    "header-twice.csv": lambda: lines(texts()).replace("income", "height", 1),
    "cell-too-many.csv": lambda: lines(texts()).replace("Köln", "Köln,Süd", 1),
    "id-twice.csv": lambda: lines(texts()).replace("0108", "0101", 1),
    "empty.csv": lambda: "",
    # Answers.
    "answers.csv": lambda: words_of("1", "0"),
    "answers-german.csv": lambda: words_of("gleich", "verschieden"),
    "answers-french.csv": lambda: words_of("identique", "différent"),
    "answers-spanish.csv": lambda: words_of("igual", "diferente"),
    "answers-italian.csv": lambda: words_of("uguale", "diverso"),
    "answers-dutch.csv": lambda: words_of("hetzelfde", "verschillend"),
    "answers-yes-no.csv": lambda: words_of("Yes", "No"),
    "answers-crowd.csv": lambda: lines(
        pd.DataFrame({"question": answers().id_a + "|" + answers().id_b, "worker": "ann", "answer": answers().label})
    ),
    "answers-second-sheet.xlsx": lambda: workbook(
        {"notes": pd.DataFrame({"note": ["see answers"]}), "answers": answers().astype({"label": int})}
    ),
    "answers-sheet.xlsx": lambda: workbook({"answers": answers().astype({"label": int})}),
    # Spreadsheets drop zeros in front: refused, with the remedy.
    "answers-without-zeros.csv": lambda: lines(
        answers().apply(lambda column: column.str.lstrip("0") if column.name != "label" else column)
    ),
    "answers-scale.csv": lambda: lines(answers().assign(label=[1 + k % 5 for k in range(40)])),
    "answers-upper-case.csv": lambda: words_of("SAME", "DIFFERENT").replace("id_a,id_b,label", "ID_A,ID_B,LABEL"),
}


def write(folder: Path = HERE) -> None:
    for name, make in FILES.items():
        content = make()
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


if __name__ == "__main__":
    write()
