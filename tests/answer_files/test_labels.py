"""A few true labels: what files may hold, and what the classes are called."""

import pandas as pd
import pytest

from sdulearn.answer_files.rows import class_names, class_numbers, read_labels
from sdulearn.errors import InputError


def why(unknown, whose):
    return f"{', '.join(unknown)} of the {whose}"


@pytest.mark.parametrize("source", ["csv", "tsv", "jsonl", "frame", "mapping"])
def test_labels_by_row(tmp_path, source):
    frame = pd.DataFrame({"id": ["x", "y", "z"], "label": ["yes", "no", "yes"]})
    labels = {"frame": frame, "mapping": dict(frame.to_numpy())}.get(source, tmp_path / f"few.{source}")
    if source == "jsonl":
        frame.to_json(labels, orient="records", lines=True)
    elif source in ("csv", "tsv"):
        frame.to_csv(labels, index=False, sep="," if source == "csv" else "\t")
    found = read_labels(labels)
    assert found.ids == {"x", "y", "z"} | ({"id"} if source.endswith(("sv", "jsonl")) else set())
    assert found.of_rows({"x": 5, "y": 7, "z": 9, "w": 1}, why) == {5: "yes", 7: "no", 9: "yes"}
    with pytest.raises(InputError, match="`labels`: y, z of the labels"):
        found.of_rows({"x": 5}, why)


@pytest.mark.parametrize(
    ("ending", "text"),
    [("csv", "id,label\n"), ("csv", "id,label\na,\n"), ("csv", "id,label\na\n"), ("csv", "nobody,cat\nr1,dog\nr2,cat"),
     ("jsonl", '{"id": "a", "label": "x"}\nno JSON\n')],
)  # fmt: skip
def test_files_that_cannot_be_used(tmp_path, ending, text):
    (tmp_path / f"few.{ending}").write_text(text)
    with pytest.raises(InputError, match="id,label"):
        read_labels(tmp_path / f"few.{ending}")


def test_a_first_line_that_is_a_row(tmp_path):
    (tmp_path / "few.csv").write_text("r0,cat\nr1,dog\n\n'=1+1,dog")
    labels = read_labels(tmp_path / "few.csv")
    assert labels.by_id == {"r1": "dog", "=1+1": "dog"}
    with pytest.raises(InputError, match="begin with the label of 'r0'"):
        labels.of_rows({"r0": 0, "r1": 1}, why)
    # Called as ids are, it is a header, whatever its second cell.
    (tmp_path / "few.csv").write_text("id,cat\nr1,cat\n")
    assert read_labels(tmp_path / "few.csv").by_id == {"r1": "cat"}


@pytest.mark.parametrize(
    ("labels", "found", "names"),
    [
        ({"a": 0, "b": 1}, ("0", "1"), (0, 1)), ({"a": "0", "b": "1"}, ("0", "1"), ("0", "1")),
        ({"a": 3.0}, ("not 3", "3"), ("not 3", "3")), ({"a": "yes"}, ("not yes", "yes"), ("not yes", "yes")),
        (pd.DataFrame({"id": ["a", "b"], "y": [10, 9]}), ("9", "10"), (9, 10)),
        ("id,y\na,-1\nb,1\n", ("-1", "1"), (-1, 1)),
        ("id,y\na,007\nb,1\n", ("007", "1"), ("007", "1")),
        (f"id,y\na,1{'0' * 20}\nb,{'9' * 5000}\n", (f"1{'0' * 20}", "9" * 5000), (f"1{'0' * 20}", "9" * 5000)),
    ],
)  # fmt: skip
def test_names_have_the_type_of_the_labels(tmp_path, labels, found, names):
    """Whole numbers are numbers, in a text file where they look so; 007 is a name."""
    if isinstance(labels, str):
        (tmp_path / "few.csv").write_text(labels)
        labels = tmp_path / "few.csv"
    read = read_labels(labels)
    assert class_numbers(list(read.by_id.values()), 2)[1] == found
    assert read.names(found) == names


@pytest.mark.parametrize(
    ("found", "n_classes", "names"),
    [
        (["a", "b", "c"], 3, ("a", "b", "c")), (["a", "b", "c"], 5, ("a", "b", "c", "4", "5")),
        (["1", "2", "4"], 5, ("1", "2", "4", "5", "6")), (["a"], 3, ("a", "2", "3")), (["0", "1"], 2, ("0", "1")),
        (["No", "a"], 2, ("No", "a")), (["a", "no"], 2, ("no", "a")), (["TRUE", "a"], 2, ("a", "TRUE")),
        (["false"], 2, ("false", "1")), (["1"], 2, ("-1", "1")), (["x"], 2, ("not x", "x")),
    ],
)  # fmt: skip
def test_names_of_classes(found, n_classes, names):
    assert class_names(found, n_classes) == names
