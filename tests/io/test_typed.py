"""Data to JSON and back: what was written comes back equal, and nothing else is taken for it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from sdulearn.io.typed import plain, read
from sdulearn.types import Between, Count, Probability


@dataclass(frozen=True)
class Part:
    name: str
    share: Probability = 0.5
    size: Annotated[float, Between(0, 9, nan=True)] = 1.0


@dataclass(frozen=True)
class Whole:
    kind: Literal["whole"]
    parts: tuple[Part, ...]
    limits: tuple[int, int] | None
    counts: Mapping[str, Count]
    values: tuple[float, ...] | tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


WHOLE = Whole("whole", (Part("a", 0.0), Part("b", 1.0, 9.0)), (2, 3), {"x": 0}, ("p", "q"), {"any": [None, {}]})


def test_what_was_written_comes_back_equal():
    assert read(Whole, json.loads(json.dumps(plain(WHOLE)))) == WHOLE
    numbers = Whole("whole", (), None, {}, (1.0, 2.5))
    assert read(Whole, json.loads(json.dumps(plain(numbers)))) == numbers
    gap = read(Part, plain(Part("a", size=math.nan)))
    assert math.isnan(gap.size)


def test_defaults_and_unknown_keys():
    found = read(Whole, {"kind": "whole", "parts": [{"name": "a", "new": 7}], "limits": None, "counts": {}, "new": 7})
    assert found == Whole("whole", (Part("a"),), None, {})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, 1), (str, None), (str, "\ud800"), (int, 1.0), (int, True), (int, "1"), (bool, 1), (None.__class__, 0),
        (float, True), (float, "1"), (float, None), (float, math.nan), (float, math.inf),
        (Probability, -0.001), (Probability, 1.001), (Probability, None), (Count, -1), (Count, 2**62 + 1),
        (Literal[0, 1], True), (Literal[0, 1], 2), (Literal["a"], "b"), (Literal["a"], ["a"]),
        (tuple[int, int], [1]), (tuple[int, int], [1, 2, 3]), (tuple[int, ...], "12"), (tuple[int, ...], (1, 2)),
        (list[str], {"a": 1}), (Sequence[str], "ab"), (dict[str, int], [1]), (dict[str, int], {"a": "b"}),
        (int | None, "1"), (tuple[float, ...] | tuple[str, ...], [1, "a"]), (Part, {}), (Part, []),
        (Part, {"name": 3}), (Part, {"name": "a", "share": 2}), (complex, 1),
    ],
)  # fmt: skip
def test_anything_else_is_refused(kind, value):
    with pytest.raises((TypeError, ValueError)):
        read(kind, value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.float64(0.25), 0.25), (np.float32("inf"), None), (np.int64(7), 7), (np.bool_(True), True),
        (np.array([[1.0, np.nan], [-np.inf, 2.0]]), [[1.0, None], [None, 2.0]]), (np.array(["a", "b"]), ["a", "b"]),
        ({1: (2, 3), np.int64(4): "a"}, {"1": [2, 3], "4": "a"}), ({True: None}, {"True": None}),
        ([Part("Łódź", math.nan), Path("a") / "b"], [{"name": "Łódź", "share": None, "size": 1.0}, str(Path("a/b"))]),
    ],
)  # fmt: skip
def test_plain_data(data, expected):
    found = plain(data)
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected
