"""Any answers survive the journey through any format, and a fault in one never changes how the others are read."""

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdulearn.answers import read_answers
from sdulearn.errors import SdulearnError

SAME = {1: "same", -1: "different", 0: "unsure"}


def _label_studio(left, right, said, who):
    result = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [SAME[said]]}}
    annotation = {"completed_by": {"id": 1, "email": who}, "result": [result], "was_cancelled": False}
    return {"id": 1, "data": {"left": left, "right": right}, "annotations": [annotation]}


def _label_studio_flat(left, right, said, who):
    own = {"annotation_id": 1, "annotator": who, "lead_time": 2.5, "id": 1}
    return {**own, "left": left, "right": right, "q": SAME[said]}


def _prodigy(left, right, said, who):
    answer = {1: "accept", -1: "reject", 0: "ignore"}[said]
    return {"left": left, "right": right, "answer": answer, "_task_hash": 1, "_annotator_id": who}


def _prodigy_choice(left, right, said, who):
    options = [{"id": code + 7, "text": text} for code, text in SAME.items()]
    task = {"meta": {"left": left, "right": right}, "options": options, "accept": [said + 7], "answer": "accept"}
    return {**task, "_input_hash": 1, "_annotator_id": who}


def _argilla(left, right, said, who):
    responses = {"q": [{"value": SAME[said], "user_id": who}]}
    return {"id": None, "fields": {"left": left, "right": right}, "metadata": {}, "responses": responses}


def _argilla_1(left, right, said, who):
    response = {"user_id": who, "status": "submitted", "values": {"q": {"value": SAME[said]}}}
    return {"fields": {"left": left, "right": right}, "metadata": {}, "responses": [response]}


def _argilla_flat(left, right, said, who):
    return {"left": left, "right": right, "q.responses": [SAME[said]], "q.responses.users": [who]}


def _crowd(left, right, said, who):
    return {"task": f"{left}|{right}", "worker": who, "label": SAME[said]}


def _plain(left, right, said, who):
    return {"left": left, "right": right, "label": SAME[said], "user": who}


def _log(left, right, said, who):
    number = int(left[1:])
    ids = {"event": "answer", "number": number, "left": left, "right": right}
    return {**ids, "answer": SAME[said], "annotator": who, "session": "s"}


def _constraint(left, right, said, who):
    kind = {1: "MUST_LINK", -1: "CANNOT_LINK", 0: "unsure"}[said]
    return {"data": {"id_1": left, "id_2": right}, "constraint_type": kind, "is_hidden": False}


def as_lines(items):
    return "".join(json.dumps(item) + "\n" for item in items)


def as_csv(items):
    items = [item for item in items if isinstance(item, dict)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for item in items for key in item)))
    writer.writeheader()
    writer.writerows(items)
    return text.getvalue()


# How an answer is written, how all are put together, the file's ending, and whether annotators are in it.
FORMATS = {
    "plain": (_plain, as_csv, "csv", True),
    "plain list": (_plain, json.dumps, "json", True),
    "answer_log": (_log, as_lines, "jsonl", True),
    "label_studio": (_label_studio, json.dumps, "json", True),
    "label_studio_flat": (_label_studio_flat, as_csv, "csv", True),
    "label_studio_min": (_label_studio_flat, json.dumps, "json", True),
    "prodigy": (_prodigy, as_lines, "jsonl", True),
    "prodigy choice": (_prodigy_choice, as_lines, "jsonl", True),
    "argilla": (_argilla, json.dumps, "json", True),
    "argilla 1": (_argilla_1, as_lines, "jsonl", True),
    "argilla_flat": (_argilla_flat, as_lines, "jsonl", True),
    "crowd": (_crowd, as_csv, "csv", True),
    "interactive_clustering": (
        _constraint, lambda items: json.dumps({f"({k})": item for k, item in enumerate(items)}), "json", False,
    ),
}  # fmt: skip

saids = st.lists(st.sampled_from([1, -1, 0]), min_size=1, max_size=6)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=3), st.just([]),
    st.just({}), st.just([[]]), st.just({"id": 1}), st.just(["same", "different"]), st.sampled_from(["|", "a|b", "2"]),
)  # fmt: skip


def rows_of(said):
    return [(f"l{k}", f"r{k}", code, f"who{k % 2}") for k, code in enumerate(said)]


def read(folder, text, ending):
    path = folder / f"x.{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_answers(path)


def contents(answers):
    return {tuple(pair): code for pair, code in zip(answers.ids.tolist(), answers.answers.tolist(), strict=True)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=15)
@given(said=saids)
def test_any_answers_survive_the_journey(folder, name, said):
    write, pack, ending, has_annotators = FORMATS[name]
    rows = rows_of(said)
    answers = read(folder, pack([write(*row) for row in rows]), ending)
    assert contents(answers) == {(left, right): code for left, right, code, _ in rows}
    assert not answers.bad_rows
    if has_annotators:
        ids = [left for left, _ in answers.ids.tolist()]
        assert dict(zip(ids, answers.annotators.tolist(), strict=True)) == {row[0]: row[3] for row in rows}


def paths(value, here=()):
    """Every place within an item, the item itself first."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from paths(part, (*here, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=30)
@given(said=saids, data=st.data())
def test_a_fault_in_one_answer_leaves_the_others_as_they_are(folder, name, said, data):
    """Or the file is refused, with an error of ours."""
    write, pack, ending, _ = FORMATS[name]
    rows = rows_of(said)
    items = [write(*row) for row in rows]
    k = data.draw(st.integers(0, len(items) - 1))
    path = data.draw(st.sampled_from(list(paths(items[k]))))
    items[k] = replaced(items[k], path, data.draw(values))
    try:
        answers = read(folder, pack(items), ending)
    except SdulearnError:
        return
    expected = {(left, right): code for left, right, code, _ in rows}
    found = contents(answers)
    for other, row in enumerate(rows):
        if other != k:
            said_now = found.pop(row[:2], None)
            # Of two lines of a log with one number, the second is the unreadable one.
            assert said_now == expected[row[:2]] or (said_now is None and answers.bad_rows)
    # The answer with the fault may be read as what it now says, and no more than that.
    assert len(found) <= 1 + (name in ("label_studio", "argilla"))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20)
@given(data=st.data())
def test_damaged_bytes_are_an_error_of_ours_or_answers(folder, name, data):
    write, pack, ending, _ = FORMATS[name]
    text = bytearray(pack([write(*row) for row in rows_of([1, -1, 0])]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(begin + 8, len(text))))
        text[begin:end] = data.draw(st.binary(max_size=3) | st.sampled_from([b",", b"\n", b"{", b"]", b'"', b"\0"]))
    try:
        answers = read(folder, bytes(text), ending)
    except SdulearnError:
        return
    assert set(answers.answers.tolist()) <= {1, 0, -1}
    assert all(text and isinstance(text, str) for text in answers.ids.ravel())
    assert len(answers.lines) == len(answers.weights) == len(answers.answers)
