"""The log of ``sdulearn ask``: nothing acknowledged is lost, whatever happens to the writer."""

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sdulearn.answer_files.download import as_csv
from sdulearn.answer_files.log import parse_log, read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import read_answers
from sdulearn.answers.records import random_ends
from sdulearn.asking.session import continue_asker
from sdulearn.errors import FileError, InputError
from tests.made import store
from tests.reference import refuses

TEXTS = st.text(min_size=1).filter(lambda text: text.strip() == text)


def said(path):
    """Left, right and answer of all that stands."""
    return [(one.left, one.right, one.reply) for one in read_log(path).answers.values()]


def add(log, left, right, word="same", annotator="", why="", **more):
    """Write an answer about two rows."""
    return store(log, left, (right,), word, annotator, why, **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.jsonl"


WORDS = st.sampled_from(["same", "different", "unsure"])
STEPS = st.sampled_from(["answer", "answer", "undo", "change", "reopen"])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(STEPS, TEXTS, TEXTS, st.sampled_from(["same", "different", "unsure"])), max_size=10), st.data()
)
def test_a_log_holds_what_was_done_however_it_is_cut_copied_or_merged(tmp_path_factory, steps, data):
    """In sessions of any number; a later one may undo and change what an earlier one wrote."""
    folder = tmp_path_factory.mktemp("log")
    path, other = folder / "log.jsonl", folder / "other.jsonl"
    standing, n_given = {}, 0
    log = AnswerStore(path)
    for step, left, right, word in steps:
        assume(left != right)
        key = data.draw(st.sampled_from(list(standing))) if standing else None
        if step == "answer":
            n_given += 1
            answer = add(log, left, right, word)
            # A number that was undone is not used again.
            assert answer.given.number == n_given
            standing[answer.key] = left, right, word
        elif step == "reopen":
            log.close()
            log = AnswerStore(path)
        elif key and step == "undo":
            log.undo(key)
            del standing[key]
        elif key:
            log.change({key: word})
            standing[key] = (*standing[key][:2], word)
    log.close()
    assert (said(path), log.contents) == (list(standing.values()), read_log(path))
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    begun = list(parse_log(whole[: whole[:cut].rfind(b"\n") + 1]).answers)
    path.write_bytes(whole + whole)
    assert (said(path), read_log(path).bad_rows) == (list(standing.values()), [])
    # What was undone stays so, though a copy from before that follows.
    path.write_bytes(whole + whole[:cut])
    assert list(read_log(path).answers) == list(standing)
    # All lines before a cut are there, and others may follow: of another log, or of another session.
    path.write_bytes(whole[:cut])
    assert list(read_log(path).answers)[: len(begun)] == begun
    before = said(path)
    with AnswerStore(other) as log:
        log.undo(add(log, "p", "q").key)
        add(log, "x", "y")
    path.write_bytes(whole[:cut] + other.read_bytes())
    assert said(path) == [*before, ("x", "y", "same")]
    assert not read_log(path).bad_rows
    path.write_bytes(whole[:cut])
    with AnswerStore(path) as log:
        add(log, "x", "y")
    assert said(path) == [*before, ("x", "y", "same")]
    assert not read_log(path).bad_rows


def test_an_answer_of_a_session_without_a_name_can_be_changed_and_taken_back_once(path):
    path.write_text('{"event": "answer", "number": 1, "left": "a", "right": "b", "answer": "same", "session": ""}\n')
    key = ("", 1)
    with AnswerStore(path) as log:
        log.change({key: "different"})
        assert said(path) == [("a", "b", "different")]
        with pytest.raises(InputError):
            log.change({key: "perhaps"})
        log.undo(key)
        for refused in (log.undo, lambda key: log.change({key: "same"})):
            with refuses(shows=["answer 1"]):
                refused(key)
    assert (said(path), read_log(path).bad_rows) == ([], [])
    assert len(path.read_text().splitlines()) == 3


def test_a_second_writer_is_refused_and_a_reader_is_not(path):
    with AnswerStore(path) as log:
        add(log, "a", "b", "same")
        with refuses(error=FileError):
            AnswerStore(path)
        assert said(path) == [("a", "b", "same")]
    AnswerStore(path).close()


def test_another_kind_of_file_is_not_written_to(path):
    for text in ('{"left": "a", "right": "b", "answer": "same"}\n', "id_a,id_b,label\n", "[1]\n"):
        path.write_text(text)
        with refuses(shows=["line 1"]):
            AnswerStore(path)
        assert path.read_text() == text


def five_answers(path):
    """The lines of a log: a session and five answers."""
    with AnswerStore(path) as log:
        log.begin(1)
        for k in range(5):
            add(log, f"a{k}", f"b{k}", "same")
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("damage", [lambda line: line[:40] + b"#" + line[42:], lambda line: line[:60] + b"\n"])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_damaged_line_is_no_line_that_was_cut_off(path, damage, at):
    """Within a session nothing was stopped: what the line said was acknowledged."""
    lines = five_answers(path)
    lines[at] = damage(lines[at])
    path.write_bytes(b"".join(lines))
    answers = read_answers(path)
    assert [(row.line, row.reason) for row in answers.bad_rows] == [(at + 1, "damaged")]
    assert len(answers.answers) == (5 if at == 0 else 4)


def test_a_full_disk_leaves_no_half_line(path, monkeypatch):
    with AnswerStore(path) as log:
        add(log, "a", "b", "same")
        before = path.read_bytes()

        def half(fd, data, write=os.write):
            write(fd, data[: len(data) // 2])
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with refuses(error=FileError):
                add(log, "a", "c", "same")
        assert path.read_bytes() == before
        add(log, "a", "d", "same")
    assert said(path) == [("a", "b", "same"), ("a", "d", "same")]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.rename(path.with_suffix(".old")),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"\n"),
        lambda path: (path.rename(path.with_suffix(".old")), path.write_bytes(path.with_suffix(".old").read_bytes())),
    ],
    ids=["moved", "cut short", "longer", "another file"],
)
def test_nothing_is_written_to_a_log_that_another_program_changed(path, change):
    with AnswerStore(path) as log:
        add(log, "a", "b", "same")
        log.check()
        change(path)
        with refuses("sdulearn ask", error=FileError):
            add(log, "a", "c", "same")
        assert len(log.contents.answers) == 1


def test_an_answer_is_synced_before_it_counts(path, monkeypatch):
    """What is handed back was on the disk before, and so was the name of the log in its folder."""
    synced = []

    def sync(fd):
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        synced.append("folder" if is_folder else path.read_text())

    monkeypatch.setattr(os, "fsync", sync)
    with AnswerStore(path) as log:
        assert synced == ["folder"]
        add(log, "a", "b", "same")
        assert '"items": ["a", "b"]' in synced[-1]
        log.change({(log.session, 1): "different"})
        assert '"change"' in synced[-1]


def test_the_random_sample_ends_with_the_last_random_row_of_a_seed(path):
    """Chosen rows that stand before it in the random order belong to it; without ranks the kind alone tells."""
    with AnswerStore(path) as log:
        log.begin(1)
        kinds = ["random", "uncertain", "explore", "random", "uncertain", "uncertain"]
        for rank, kind in zip([4, 2, 5, 7, 9, None], kinds, strict=True):
            add(log, f"a{rank}{kind}", "hub", "same", why=kind, rank=rank)
    with AnswerStore(path) as log:
        # The order of another seed is another one.
        log.begin(2)
        add(log, "b1", "hub", "same", why="uncertain", rank=1)
        add(log, "b0", "hub", "same", why="random", rank=0)
        add(log, "b2", "hub", "same", why="random")
    answers = read_answers(path)
    assert answers.drawn.tolist() == [True, True, True, True, False, False, False, True, True]
    assert (answers.n_chosen, answers.n_unranked) == (5, 1)
    ends = np.array([(k, 9) for k in range(9)])
    marked = random_ends(answers, ends, np.arange(9))
    assert marked[:, 0].tolist() == answers.drawn.tolist()
    assert not marked[:, 1].any()


@pytest.mark.parametrize(
    "more",
    [{"rank": -1}, {"rank": "3"}, {"rank": True}, {"number": True}, {"left": ""}, {"right": ""}, {"epsilon": 0},
     {"answer": 0}, {"choices": ["b", "c"]}, {"choices": ["b", "c"], "answer": 2},
     {"choices": ["b", "c"], "answer": True}, {"choices": ["b", "b"], "answer": 1}, {"choices": "bc", "answer": 0},
     {"choices": ["a", "b"], "answer": 1}, {"choices": ["b", ""], "answer": 1}],
)  # fmt: skip
def test_lines_that_hold_something_else_are_reported(more):
    line = {"event": "answer", "number": 1, "left": "a", "right": "b", "answer": "same", "session": "s"}
    # Also what an answer is to be changed to.
    other = {**line, "event": "change", "answer": 0}
    found = parse_log("\n".join(map(json.dumps, [{**line, **more}, line, other])).encode())
    assert [row.line for row in found.bad_rows] == [1, 3]
    assert [answer.given.line for answer in found.answers.values()] == [2]


def test_a_match_answer_is_one_line_and_tells_of_pairs(tmp_path):
    with AnswerStore(tmp_path / "log.jsonl") as log:
        first = store(log, "b", ("a",), False, why="explore", rank=0)
        store(log, "c", ("b", "a"), "none", why="random", rank=1)
        pick = store(log, "d", ("c", "a", "b"), 1, why="uncertain", rank=5)
        store(log, "e", ("c", "a", "b"), "unsure", why="uncertain", rank=6)
        log.change({pick.key: 2})
        for bad in (3, "same", True):
            with pytest.raises(InputError):
                log.change({pick.key: bad})
        with pytest.raises(InputError):
            store(log, "f", ("a", "b"), 2)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [lines[0][name] for name in ("form", "items", "groups")] == ["pair", ["b", "a"], [0, 1]]
    assert [lines[2][name] for name in ("form", "items", "groups")] == ["match", ["d", "c", "a", "b"], [0, 1, 0, 2]]
    assert lines[3]["groups"] == [None] * 4
    assert (lines[4]["number"], lines[4]["groups"]) == (pick.given.number, [0, 1, 2, 0])
    found = read_answers(tmp_path / "log.jsonl")
    of_c, of_d = [["c", "b"], ["c", "a"]], [["d", "c"], ["d", "a"], ["d", "b"]]
    assert found.ids.tolist() == [["b", "a"], *of_c, *of_d, ["e", "c"]]
    assert found.answers.tolist() == [-1, -1, -1, -1, -1, 1, 0]
    assert found.questions.tolist() == [0, 1, 1, 2, 2, 2, 3]
    assert found.lines.tolist() == [1, 2, 2, 3, 3, 3, 4]
    assert found.kinds.tolist() == ["explore", *["random"] * 2, *["uncertain"] * 4]
    assert found.drawn.tolist() == [True] * 3 + [False] * 4
    # Words are counted by pair, as the answers are.
    assert found.words == {"same": (1, 1), "different": (-1, 5), "unsure": (0, 1)}
    assert (found.n_questions, found.n_similar, found.n_dissimilar, found.n_unsure) == (4, 1, 5, 1)
    assert first.picked is None


FORCED_HEADERS = ([], [{"event": "session", "seed": 1, "design": "match", "session": "s"}])


def forced_line(number, **more):
    """More like a or b?"""
    rows = {"left": f"x{number}", "choices": [f"a{number}", f"b{number}"], "answer": number % 2}
    return {"event": "answer", "number": number, **rows, "annotator": "ann", **more, "session": "s"}


@pytest.mark.parametrize("header", FORCED_HEADERS)
@pytest.mark.parametrize("form", [{}, {"form": "nearer"}])
def test_a_forced_choice_is_never_a_pair(path, header, form):
    """Neither in a file of them, nor beside other answers, for any reader."""
    forced = [forced_line(k, **form) for k in range(1, 21)]
    pair = {"event": "answer", "number": 99, "left": "p", "right": "q", "answer": "same", "session": "pairs"}
    for others in ([], [pair]):
        path.write_text("".join(json.dumps(line) + "\n" for line in [*header, *forced, *others]))
        answers = read_answers(path)
        assert answers.ids.tolist() == [["p", "q"]] * len(others)
        assert answers.nearer.tolist() == [
            [f"x{k}", *((f"b{k}", f"a{k}") if k % 2 else (f"a{k}", f"b{k}"))] for k in range(1, 21)
        ]
    contents = read_log(path)
    assert len(contents.answers) == 21
    text = as_csv(contents)
    assert text.count(",same,") == 1
    assert text.count(",nearer,") == 2 * 20
    (path.parent / "page.csv").write_text(text)
    again = read_answers(path.parent / "page.csv")
    assert (again.ids.tolist(), again.nearer.tolist()) == ([["p", "q"]], answers.nearer.tolist())
    rows = ["p", "q", *(f"{name}{k}" for name in "xab" for k in range(1, 21))]
    with AnswerStore(path) as log:
        asker = continue_asker(np.eye(62), log, rows, random_state=0)
    assert asker.n_answers == 21
    assert asker.stack()[1][:, 0].astype(bool).sum() == 2


def test_a_choice_among_three_without_none_cannot_be_used(path):
    line = {"event": "answer", "number": 1, "left": "x", "choices": ["a", "b", "c"], "answer": 0, "session": "s"}
    path.write_text(json.dumps(line) + "\n")
    contents = read_log(path)
    assert (len(contents.answers), [row.line for row in contents.bad_rows]) == (0, [1])


@pytest.mark.parametrize(
    "evidence",
    [
        {"form": "match"},
        {"answer": "none"},
    ],
)
def test_a_pick_is_same_if_none_was_offered(path, evidence):
    """By its form, or because somebody answered so; our own page always offers it."""
    lines = [forced_line(1, **evidence), forced_line(2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = read_answers(path)
    assert not answers.bad_rows
    assert ["x2", "a2"] in answers.ids[answers.answers > 0].tolist()
    assert answers.nearer is None
    with AnswerStore(path) as log:
        store(log, "x3", ("a3", "b3"), 1)
    assert '"form": "match"' in path.read_text().splitlines()[-1]


def test_a_reading_that_cannot_be_read_is_reported(path):
    with AnswerStore(path) as log:
        log.begin(1, reading={"text": 7})
    assert [row.line for row in read_log(path).bad_rows] == [1]


def test_the_privacy_of_a_log(path):
    """All answers must be flipped at one rate, that of their lines or of their session."""
    assert parse_log(b"").next_epsilon is None
    with AnswerStore(path) as log:
        log.begin(1, epsilon=1.0)
        assert log.contents.next_epsilon == 1
        log.undo(add(log, "a", "b", epsilon=2.0).key)
        assert log.contents.next_epsilon == 2
        add(log, "c", "d", epsilon=2.0)
    assert read_answers(path).epsilon == 2
    with AnswerStore(path) as log:
        add(log, "e", "f")
    with pytest.raises(InputError):
        read_answers(path)
    path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": "x"').replace(', "epsilon": 2.0', ""))
    with refuses("epsilon", shows=["line 1"]):
        read_answers(path)


def test_audits_examples_and_changes_of_nothing(path):
    with AnswerStore(path) as log:
        for right in "bcd":
            add(log, "a", right, "same", "machine")
        add(log, "b", "a", "same", "ann", "audit")
        add(log, "a", "c", "different", "ann", "audit")
        add(log, "a", "d", "unsure", "ann", "audit")
        log.label({"a": "cat"}, seed=True)
        log.label({"b": "dog"})
        assert (log.contents.examples, log.contents.labels) == ({"a": "cat"}, {"a": "cat", "b": "dog"})
        store(log, "e", ("a", "b"), 0, "machine")
        store(log, "e", ("b", "a"), 0, "ann", "audit")
    # The order of rows and of choices does not matter.
    assert read_answers(path).audits == {"machine": (3, 2)}
    found = parse_log(b'{"event": "change", "number": 7, "answer": "same", "session": "s"}')
    assert found.bad_rows[0].reason == "changes answer 7, which is not in the log"
    with refuses():
        AnswerStore(path.parent)
    with refuses(error=FileError):
        AnswerStore(path.parent / "no" / "log.jsonl")


def test_the_classes_that_match_questions_have_found(path):
    """One to begin with, and one for each point like none of the choices; a second opinion opens none."""
    with AnswerStore(path) as log:
        for left, choices, picked in (
            ("b", ("a",), False),
            ("c", ("a", "b"), "none"),
            ("d", ("a", "b", "c"), 1),
            ("e", ("a", "b", "c"), 2),
            ("e", ("c", "a", "b"), 1),
            ("f", ("a", "b", "c"), "unsure"),
        ):
            store(log, left, choices, picked)
    assert read_answers(path).n_classes == 3
    with AnswerStore(path) as log:
        # Two of the classes are one after all.
        log.change({list(log.contents.answers)[1]: 0})
    assert read_answers(path).n_classes == 2
