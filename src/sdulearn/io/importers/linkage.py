"""Tools that link records of the same entity: dedupe, Zingg, Splink, recordlinkage."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from sdulearn.errors import quoted
from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import (
    RecordPair,
    RecordPairs,
    Sheet,
    by_plain_name,
    pair_columns,
    refuse_two_sources,
    sheet_of,
)
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE

# Formats whose answers are about entities by their purpose.
ENTITY_FORMATS = ("dedupe", "zingg", "splink", "recordlinkage")


def is_dedupe(content: Content) -> bool:
    """The training file of dedupe: an object of two lists, ``distinct`` and ``match``."""
    document = content.document
    if document is None or set(document) != {"distinct", "match"}:
        return False
    return all(isinstance(pairs, list) for pairs in document.values())


def read_dedupe(content: Content) -> RecordPairs:
    """Pairs of records; one that stands in both lists was answered "unsure"."""
    read: list[RecordPair] = []
    bad: list[tuple[int, str]] = []
    for number, label, pair in _listed_pairs(content.document or {}):
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, dict) for one in pair):
            read.append(RecordPair(number, pair[0], pair[1], label))
        else:
            bad.append((number, "not a pair of two records"))
    words = {"match": SIMILAR, "distinct": DISSIMILAR, "unsure": UNSURE}
    return RecordPairs("dedupe", words, _with_unsure(read), bad)


def _listed_pairs(document: Record) -> Iterator[tuple[int, str, object]]:
    number = 0
    for label, pairs in document.items():
        assert isinstance(pairs, list)
        for pair in pairs:
            number += 1
            yield number, label, _unwrapped(pair)


def _unwrapped(value: object) -> object:
    """Tuples and sets, which dedupe wraps into objects, as lists."""
    if isinstance(value, dict):
        if set(value) == {"__class__", "__value__"}:
            inner = _unwrapped(value["__value__"])
            is_set = value["__class__"] == "frozenset" and isinstance(inner, list)
            return sorted(inner, key=str) if is_set else inner  # type: ignore[call-overload]
        return {key: _unwrapped(inner) for key, inner in value.items()}
    return [_unwrapped(inner) for inner in value] if isinstance(value, list) else value


def _with_unsure(pairs: list[RecordPair]) -> list[RecordPair]:
    """Each pair of a match and a distinct about the same two records as one "unsure"."""
    counts = Counter((_key(pair), pair.label) for pair in pairs)
    left = {key: min(counts[key, "match"], counts[key, "distinct"]) for key, _ in counts}
    unsure = dict(left)
    dropped = dict(left)
    found = []
    for pair in pairs:
        key = _key(pair)
        if pair.label == "match" and unsure[key]:
            unsure[key] -= 1
            found.append(RecordPair(pair.line, pair.left, pair.right, "unsure"))
        elif pair.label == "distinct" and dropped[key]:
            dropped[key] -= 1
        else:
            found.append(pair)
    return found


def _key(pair: RecordPair) -> tuple[str, ...]:
    return tuple(sorted(json.dumps(one, sort_keys=True) for one in (pair.left, pair.right)))


def is_zingg(content: Content) -> bool:
    """Zingg's marked data: two rows per ``z_cluster``, with ``z_isMatch``."""
    return {"z_cluster", "z_ismatch"} <= set(by_plain_name(content.header))


def read_zingg(content: Content) -> RecordPairs:
    """The two rows of each cluster as a pair; -1 is not yet answered."""
    names = by_plain_name(content.header)
    clusters: dict[str, list[tuple[int, Record]]] = {}
    bad: list[tuple[int, str]] = []
    for number, row in content.records():
        if isinstance(row, str):
            bad.append((number, row))
        else:
            clusters.setdefault(as_text(row.get(names["z_cluster"])), []).append((number, row))
    pairs = []
    n_unanswered = 0
    for rows in clusters.values():
        number = rows[0][0]
        labels = {as_text(row.get(names["z_ismatch"])) for _, row in rows}
        if len(rows) != 2 or len(labels) != 1:
            bad.append((number, f"{len(rows)} rows in its z_cluster, with {len(labels)} values of z_isMatch"))
        elif labels == {"-1"}:
            n_unanswered += 1
        else:
            left, right = (_own_fields(row) for _, row in rows)
            pairs.append(RecordPair(number, left, right, *labels))
    words = {"1": SIMILAR, "0": DISSIMILAR, "2": UNSURE}
    return RecordPairs("zingg", words, pairs, bad, n_unanswered)


def _own_fields(row: Record) -> Record:
    """A record without what Zingg adds, but for its number."""
    return {name: cell for name, cell in row.items() if not name.lower().startswith("z_") or name.lower() == "z_zid"}


def is_splink(content: Content) -> bool:
    """Splink's clerical labels."""
    return "clerical_match_score" in by_plain_name(content.header)


def read_splink(content: Content) -> Sheet:
    """A score over one half is "similar", under it "dissimilar"; how far it is from it, 2|s - 1/2|, is the weight."""
    names = by_plain_name(content.header)
    score = names["clerical_match_score"]
    ends = pair_columns(content.header)
    sources = [names.get("source_dataset_l"), names.get("source_dataset_r")]
    rows: list[tuple[int, Record | str]] = []
    seen: list[tuple[str, object]] = []
    for number, row in content.records():
        rows.append((number, row if isinstance(row, str) else _scored(row, score)))
        if isinstance(row, dict) and ends is not None and None not in sources:
            seen += [(as_text(row.get(end)), as_text(row.get(str(of)))) for end, of in zip(ends, sources, strict=True)]
    refuse_two_sources(content.name, seen)
    words = {_OVER: SIMILAR, _UNDER: DISSIMILAR, _HALF: UNSURE}
    return sheet_of("splink", rows, columns={"label": score, "weight": _WEIGHT}, words=words)


_OVER = "over-0.5"
_UNDER = "under-0.5"
_HALF = "exactly-0.5"
_WEIGHT = "distance of the score from 0.5, doubled"


def _scored(row: Record, column: str) -> Record | str:
    text = as_text(row.get(column))
    try:
        score = float(text)
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        return f"{column} {quoted(text)} is not a number between 0 and 1"
    word = _OVER if score > 0.5 else _UNDER if score < 0.5 else _HALF
    weight = abs(2 * score - 1) if score != 0.5 else 1.0
    return {**row, column: word, _WEIGHT: weight}


def is_recordlinkage(content: Content) -> bool:
    """The file of recordlinkage's annotator: a version and pairs with identifiers."""
    document = content.document
    pairs = (document or {}).get("pairs")
    return isinstance(pairs, list) and "version" in (document or {}) and any(_ends(pair) for pair in pairs)


def read_recordlinkage(content: Content) -> Sheet:
    """A row per pair that has a label; without one it is not answered, or was left open."""
    rows: list[tuple[int, Record | str]] = []
    seen: list[tuple[str, object]] = []
    n_unanswered = 0
    pairs = (content.document or {})["pairs"]
    assert isinstance(pairs, list)
    for number, pair in enumerate(pairs, 1):
        ends = _ends(pair)
        if not ends:
            rows.append((number, "no pair with identifiers a and b"))
            continue
        for side, end in ends.items():
            seen.append((as_text(end.get("record")), (as_text(end.get("dataset")), _values(pair, side))))
        if pair.get("label") is None:
            n_unanswered += 1
        else:
            record = {side: end.get("record") for side, end in ends.items()}
            rows.append((number, {**record, "label": pair["label"]}))
    refuse_two_sources(content.name, seen)
    columns = {"id_a": "a", "id_b": "b", "label": "label"}
    words = {"1": SIMILAR, "0": DISSIMILAR}
    return sheet_of("recordlinkage", rows, columns=columns, words=words, n_unanswered=n_unanswered)


def _ends(pair: object) -> dict[str, Record]:
    """The identifiers of both ends, or nothing."""
    ends = pair.get("identifiers") if isinstance(pair, dict) else None
    if not isinstance(ends, dict) or not all(isinstance(ends.get(side), dict) for side in ("a", "b")):
        return {}
    return {side: ends[side] for side in ("a", "b")}


def _values(pair: Record, side: str) -> tuple[str, ...]:
    """What the fields of one end say: two data frames without names may use an id for two records."""
    fields = pair.get("fields")
    ends = [field.get(side) for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    return tuple(as_text(end.get("value")) for end in ends if isinstance(end, dict))
