import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from sdulearn.cli.output import print_json


class Place(NamedTuple):
    row: int
    name: str


@dataclass(frozen=True)
class Part:
    value: float
    where: Path


@dataclass(frozen=True)
class Whole:
    parts: list[Part]
    place: Place


def printed(data, capsys):
    print_json(data)
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_results_come_back_as_plain_data(capsys):
    data = Whole([Part(0.5, Path("a") / "b"), Part(float("nan"), Path("c"))], Place(3, "x"))
    assert printed(data, capsys) == {
        "parts": [{"value": 0.5, "where": str(Path("a") / "b")}, {"value": None, "where": "c"}],
        "place": [3, "x"],
    }


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.float64(0.25), 0.25),
        (np.float32("inf"), None),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan], [-np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        (np.array(["a", "b"]), ["a", "b"]),
        ({1: (2, 3), np.int64(4): {"b", "a"}}, {"1": [2, 3], "4": ["a", "b"]}),
        ({True: None}, {"True": None}),
        ("Łódź", "Łódź"),
        ([], []),
    ],
)
def test_values(data, expected, capsys):
    assert printed({"value": data}, capsys) == {"value": expected}


def test_what_json_has_no_word_for_is_refused():
    with pytest.raises(TypeError, match="not JSON serializable"):
        print_json({"value": object()})
