"""JSON lines: an object a line, checked before pyarrow's reader sees it, which crashes on some that are none."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice

from sdulearn.errors import InputError, quoted
from sdulearn.extras import require
from sdulearn.io.files import Location, decoded, open_bytes
from sdulearn.types import ArrowTable, ArrowType

# Objects and lists within each other; a cell of a table is neither.
_DEEPEST = 100
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


def json_schema(path: Location, rows: int) -> ArrowType:
    """Names and types of all columns, over all rows; ``rows`` are looked at at a time."""
    pa = require("pyarrow", "files")
    found = pa.schema([])
    for batch in json_batches(path, rows, found, "infer"):
        found = pa.unify_schemas([found, batch.schema], promote_options="permissive")
    if not found.names:
        raise InputError(f"{path} is empty. It needs a JSON object a line.")
    return found


def json_batches(path: Location, rows: int, schema: ArrowType, others: str = "ignore") -> Iterator[ArrowTable]:
    """So many rows at a time, with the columns of a schema and whichever others are wanted."""
    json = require("pyarrow.json", "files")
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
    for lines in checked_chunks(path, rows):
        yield json.read_json(io.BytesIO(lines), json.ReadOptions(block_size=len(lines)), options)


def checked_chunks(path: Location, rows: int) -> Iterator[bytes]:
    """So many lines at a time without the blank ones, each of them an object in UTF-8."""
    number = 0
    with open_bytes(path) as file:
        while lines := list(islice(file, rows)):
            kept = []
            for line in lines:
                number += 1
                if text := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
                    _check(path, number, text)
                    kept.append(text)
            if kept:
                yield b"\n".join(kept) + b"\n"


def _check(path: Location, number: int, line: bytes) -> None:
    text = decoded(path, line, f", line {number:,},")
    if text[0] != "{" or text[-1] != "}":
        raise InputError(
            f"{path}, line {number:,}: {quoted(text)} is no JSON object. Each line must be one, such as "
            '{"id": "p1", "height": 1.5}; remove the others.'
        )
    if line.count(b"[") + line.count(b"{") > _DEEPEST and _depth(line) > _DEEPEST:
        raise InputError(f"{path}, line {number:,}: objects are nested more than {_DEEPEST} deep. Leave them out.")


def _depth(line: bytes) -> int:
    """How deep objects and lists are nested."""
    depth = deepest = 0
    for token in _TOKEN.findall(line):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token, 0)
        deepest = max(deepest, depth)
    return deepest
