"""The page's server, request by request."""

import json
import re
from types import SimpleNamespace
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

from sdulearn.answer_files.download import as_csv
from sdulearn.answer_files.log import read_log
from sdulearn.asking.records import are_examples
from sdulearn.errors import FileError, InputError
from sdulearn.io.media import grey_png, media_type
from sdulearn.web import LANGUAGES
from sdulearn.web.app import STATIC
from sdulearn.web.things import Things, things_of_table


def test_static_files(page):
    for name, kind in (("", "text/html"), ("page.js", "text/javascript"), ("style.css", "text/css")):
        response = page.get(name)
        assert response.status == 200
        assert response.headers["content-type"].startswith(kind)
        assert response.body == (STATIC / (name or "index.html")).read_bytes()
    for name in ("../app.py", "app.py", "static/page.js", "%2e%2e/app.py", "/etc/passwd", "..%2f..%2fapp.py"):
        assert page.get(name).status == 404


def test_answer_undo_change_skip(page):
    first = page.ask("ann")
    result = page.answer("same", "ann")
    assert result["written"]
    assert result["answers"] == 1
    assert result["question"]["token"] != first["token"]
    undone = page.post("undo", {"annotator": "ann"}).json()
    assert undone["undone"]
    assert undone["question"]["items"] == first["items"]
    page.answer("different", "ann")
    (logged,) = page.get("api/history").json()["answers"]
    assert logged["reply"] == "different"
    changed = page.post("change", {"key": logged["key"], "reply": "unsure"})
    assert changed.json()["answer"]["reply"] == "unsure"
    token = page.ask("ann")["token"]
    assert page.post("skip", {"annotator": "ann", "token": token}).json()["question"]["token"] != token
    assert page.post("change", {"key": ["x", 1], "reply": "same"}).status == 400
    for comment, status in (("both red", 200), (" ", 200), ("x" * 1000, 200), ("x" * 1001, 400), (5, 400)):
        sent = {"token": page.ask()["token"], "reply": "same", "comment": comment}
        assert page.post("answer", sent).status == status
    comments = ["", "both red", "", "x" * 1000]
    assert [one["comment"] for one in page.get("api/history").json()["answers"]] == comments[::-1]
    assert [one.given.comment for one in read_log(page.session.store.path).answers.values()] == comments


def ids(question):
    return [item["id"] for item in question["items"]]


def change(page, logged, name, reply="unsure"):
    return page.post("change", {"key": logged["key"], "annotator": name, "reply": reply})


def test_only_one_s_own_answers_can_be_changed(page):
    """A single person may change all, with a name or without: on this machine it can be nobody else."""
    page.answer("same", "ann")
    (logged,) = page.get("api/history").json()["answers"]
    assert logged["may_change"]
    assert change(page, logged, "", "same").status == 200
    page.answer("same", "bob")
    of_bob, of_ann = page.get("api/history", annotator="bob").json()["answers"]
    assert (of_bob["may_change"], of_ann["may_change"]) == (True, False)
    for name in ("", "bob", "cid"):
        refused = change(page, of_ann, name)
        assert refused.status == 400
        assert "only your own" in refused.json()["error"]
    assert change(page, of_ann, "ann").json()["answer"]["reply"] == "unsure"
    assert not page.post("undo", {"annotator": ""}).json()["undone"]
    assert [one["reply"] for one in page.get("api/history").json()["answers"]] == ["same", "unsure"]


def test_in_a_team_nobody_is_without_a_name(open_session, make_page):
    session = open_session(for_team=True)
    page = make_page(session)
    assert page.get("api/start").json()["need_name"]
    token = page.ask("ann")["token"]
    for name, data in (("answer", {"token": token, "reply": "same"}), ("undo", {}), ("skip", {"token": token})):
        refused = page.post(name, data)
        assert "name first" in (refused.json().get("error") or refused.json()["reason"])
    page.answer("same", "ann")
    (logged,) = page.get("api/history").json()["answers"]
    assert change(page, logged, "").status == 400


def test_a_question_that_is_left_open_goes_to_others_in_the_end(open_session, make_page, monkeypatch):
    """A name that takes a question and never comes back must not keep its rows from all others."""
    now = [0.0]
    monkeypatch.setattr("sdulearn.asking.session.time", SimpleNamespace(monotonic=lambda: now[0]))
    session = open_session(n_points=6)
    page = make_page(session)
    token, *_ = [page.ask(name)["token"] for name in ("ann", "bob", "cid")]
    assert page.ask("dan") is None
    now[0] = 3600.0
    while page.ask("dan"):
        page.answer("same", "dan")
    assert session.n_answers == 3
    late = page.post("answer", {"annotator": "ann", "token": token, "reply": "same"}).json()
    assert late["written"] is None
    assert session.people() == ["ann", "dan"]


def test_the_page_of_private_answers(open_session, make_page):
    """It says what rows and people reveal; comments and names of classes would undo the flips."""
    session = open_session(n_points=20, private=0.5)
    page = make_page(session, fit=lambda names: {})
    refused = page.post("answer", {"token": page.ask()["token"], "reply": "same", "comment": "both red"})
    assert "give one away" in refused.json()["error"]
    assert not session.n_answers
    asked = []
    for name in ("ann", "ann", "bob"):
        asked += ids(page.ask(name))
        page.answer("same", name)
    assert page.post("undo", {"annotator": "bob"}).json()["undone"]
    assert "ann 2 answers, epsilon 1, bob 1 answer" in page.get("api/numbers").json()["privacy"]
    logged, _ = page.get("api/history", annotator="ann").json()["answers"]
    assert not logged["may_change"]
    assert change(page, logged, "ann").status == 400
    assert session.numbers(wait=True)["review"] == []
    refused = page.post("finish", {"labels": {asked[0]: "cat"}, "annotator": "ann"})
    assert "give away" in refused.json()["error"]
    assert not read_log(session.store.path).labels
    session.close()
    # What was taken back is still in the log: nobody is asked about these rows again.
    again = make_page(open_session(n_points=20, private=0.5))
    assert again.session.undo("ann") is None
    while question := again.ask("cid"):
        assert not set(ids(question)) & set(asked)
        again.answer("same", "cid")
    assert again.session.n_answers == 2 + 7


def test_what_was_acknowledged_is_on_the_disk_and_a_full_disk_is_no_acknowledgement(page, monkeypatch):
    assert page.answer("same")["written"]
    assert len(read_log(page.session.store.path).answers) == 1

    def full(*arguments):
        raise FileError("cannot be written: No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr("sdulearn.answer_files.store._LogFile._write", full)
        response = page.post("answer", {"token": page.ask()["token"], "reply": "same"})
        assert response.status == 507
        assert "No space left" in response.json()["error"]
    assert page.session.n_answers == 1
    assert page.answer("same")["answers"] == 2


def test_history_comes_in_pages(page, monkeypatch):
    monkeypatch.setattr("sdulearn.web.app._PAGE", 4)
    for _ in range(7):
        page.answer("same")
    first = page.get("api/history").json()
    assert (len(first["answers"]), first["total"], first["begin"]) == (4, 7, 0)
    rest = page.get("api/history", begin=4).json()
    assert [one["key"][1] for one in rest["answers"]] == [3, 2, 1]
    for begin in ("x", "-1", "1" * 16):
        assert page.get("api/history", begin=begin).status == 400
    assert page.get("api/history", begin="1" * 15).json()["answers"] == []


def test_numbers_people_and_classes_and_a_fit_that_names_them(open_session, make_page, tmp_path):
    """Rows are of one class where their numbers are both even or both odd."""
    linked = make_page(open_session(n_points=40, design="linked"))
    for k in range(12):
        question = linked.ask("ann")
        ends = [int(name[1:]) % 2 for name in ids(question)]
        linked.answer("same" if ends[0] == ends[1] else "different", "ann" if k else "")
    linked.session.numbers(wait=True)
    numbers = linked.get("api/numbers").json()
    assert (numbers["n_answers"], numbers["estimating"]) == (12, False)
    # NaN is not JSON, and a few answers tell no share.
    assert len(numbers["classes"]) == 2
    assert [one["name"] for one in linked.get("api/people").json()["people"]] == ["", "ann"]
    for found in linked.get("api/classes").json()["classes"]:
        assert len({int(row_id[1:]) % 2 for row_id in found["ids"]}) == 1
    assert linked.get("api/start").json()["people"] == ["", "ann"]
    assert linked.post("finish", {"labels": {}}).status == 400
    report = tmp_path / "report.html"
    answered = tmp_path / "log.answered.csv"
    answered.write_text("id,label\né,cat\n", encoding="utf-8")

    def fit(labels):
        report.write_text("<h1>fitted</h1>")
        asked = {"asked": [{"id": "r3", "class": "cat", "probability": 0.7, "n_answers": 2}], "answered": str(answered)}
        asked["classes"] = [{"name": "cat", "share": 0.4, "ids": ["r3"]}]
        return {"lines": [f"{name}={label}" for name, label in labels.items()], "report": str(report), **asked}

    linked.page.fit = fit
    assert (linked.get("report").status, linked.get("answered").status) == (404, 404)
    (first, *_), (second, *_) = (one["ids"] for one in linked.get("api/classes").json()["classes"])
    result = linked.post("finish", {"labels": {first: "cat", second: " "}}).json()
    assert result["lines"] == [f"{first}=cat"]
    thing = {"id": "r3", "title": "r3", "picture": None}
    assert len(result["classes"]) == 1
    assert result["classes"][0].items() >= {"name": "cat", "share": 0.4, "ids": ["r3"], "examples": [thing]}.items()
    assert result["asked"] == [{"id": "r3", "class": "cat", "probability": 0.7, "n_answers": 2, "thing": thing}]
    response = linked.get("answered")
    assert response.body.decode() == "id,label\né,cat\n"
    assert response.headers["content-disposition"] == 'attachment; filename="answered.csv"'
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    response = linked.get("report")
    assert response.body == b"<h1>fitted</h1>"
    assert "script-src" not in response.headers["content-security-policy"]
    assert linked.get("api/classes").json()["classes"][0]["name"] == "cat"
    assert linked.session.numbers(wait=True)["classes"][0]["name"] == "cat"
    shared = linked.post("finish", {"labels": {first: "cat", second: "cat"}})
    assert "Two classes are named 'cat'" in shared.json()["error"]
    for labels in ({"nobody": "cat"}, {first: 5}, [], {first: "x" * 61}, {first: "a\nb"}):
        assert linked.post("finish", {"labels": labels}).status == 400


def test_what_is_shown_of_a_table(open_session, tmp_path, make_page):
    (tmp_path / "a.png").write_bytes(grey_png(np.eye(2)))
    session = open_session(n_points=20)
    table = pa.table(
        {
            "id": session.ids,
            "text": ["a text\nof two lines"] * 20,
            "picture": ["a.png", "../b.png", "https://x.example/c.png", "", *["none.png"] * 16],
            "size": [1.0, 2.5, 1 / 3, None, *range(4, 20)],
            "long": ["0.8160000000000001", "12"] + ["3"] * 18,
            "code": ["1.23456789012345"] * 20,
            "label": ["cat"] * 20,
        }
    )
    things = things_of_table(
        table, session.ids, "id", text=["text"], image=["picture"], columns=["size"], root=tmp_path
    )
    image, text, fields = things.show(0)
    assert image == {"kind": "image", "src": "image/0/0", "name": "a.png"}
    assert text == {"kind": "text", "text": "a text\nof two lines"}
    assert fields["fields"] == [["size", "1", None]]
    assert things.show(2)[2]["fields"] == [["size", "0.333333", None]]
    assert things.show(3)[1]["fields"] == [["size", "", None]]
    # Several texts are parts of their own, and one text for a program.
    both = things_of_table(table, session.ids, "id", text=["text", "label"])
    assert [part["text"] for part in both.show(0)] == ["a text\nof two lines", "cat"]
    assert both.data(0)["text"] == "a text\nof two lines\n\ncat"
    page = make_page(session, things)
    assert media_type(page.get("image/0").body, "image") == "image/png"
    for row in (1, 2, 3, 4, 99):
        assert page.get(f"image/{row}").status == 404
    for row in ("-1", "9" * 5000, "x", "1.0", "\u0661"):
        assert page.get(f"image/{quote(row)}").status == 404
    pictures = Things(session.ids, table, image=("picture",), columns=("size",), root=tmp_path)
    assert pictures.title(0) == "r0"
    # All columns but the hidden ones by default; long numbers are short, with their deviations.
    hidden = ["label", "long", "code"]
    things = things_of_table(table, session.ids, "id", hidden=hidden, root=tmp_path)
    assert things.columns == ("text", "picture", "size")
    assert things.title(0) == "a text\nof two lines, a.png, 1"
    deviations = {"long": np.linspace(-1, 1, 20)}
    things = Things(session.ids, table, columns=("long", "code"), deviations=deviations)
    assert things.show(0)[0]["fields"] == [["long", "0.816", -1.0], ["code", "1.23456789012345", None]]
    assert things.show(1)[0]["fields"][0] == ["long", "12", -0.895]
    with pytest.raises(InputError):
        things_of_table(table, session.ids, "id", text=["nothing"], root=tmp_path)
    # Long texts are cut.
    things = Things(["a", "b", "c"], pa.table({"text": ["x" * 20_001, "x" * 20_000, "x" * 80]}), text=["text"])
    assert [things.show(row)[0]["text"] for row in range(2)] == ["x" * 19_999 + "…", "x" * 20_000]
    assert [things.title(row) for row in (1, 2)] == ["x" * 79 + "…", "x" * 80]


def test_several_pictures_and_sounds_of_a_row(open_session, tmp_path, make_page):
    (tmp_path / "a.png").write_bytes(grey_png(np.eye(2)))
    (tmp_path / "b.png").write_bytes(grey_png(np.ones((3, 3))))
    (tmp_path / "a.wav").write_bytes(b"RIFF$\0\0\0WAVEfmt " + bytes(100))
    (tmp_path / "a.mp3").write_text("<script>alert(1)</script>")
    session = open_session(n_points=4)
    sounds = ["a.wav", "a.mp3", "../a.wav", ""]
    table = pa.table({"one": ["a.png; b.png", "b.png", "", "a.png"], "two": ["b.png", "", "", "x"], "sound": sounds})
    things = things_of_table(table, session.ids, None, image=["one", "two"], audio="sound", root=tmp_path)
    assert [part.get("src") for part in things.show(0)] == ["image/0/0", "image/0/1", "image/0/2", "audio/0"]
    assert [things.thumbnail(row) for row in range(4)] == ["image/0/0", "image/1/0", None, "image/3/0"]
    page = make_page(session, things)
    files = [grey_png(np.eye(2)), *[grey_png(np.ones((3, 3)))] * 2]
    assert [page.get(f"image/0/{place}").body for place in range(3)] == files
    for address in ("image/0/3", "image/0/x", "image/0/-1", "image/2/0", "audio/2", "audio/3", "audio/4", "audio/x"):
        assert page.get(address).status == 404
    sound = page.get("audio/0")
    assert (sound.status, sound.headers["content-type"]) == (200, "audio/wav")
    assert "media-src 'self'" in sound.headers["content-security-policy"]
    # A browser winds a sound on by asking for a part of it.
    part = page.raw("GET", f"/{page.key}/audio/0", {"Host": "127.0.0.1", "Range": "bytes=8-11"})
    assert (part.status, part.body) == (206, b"WAVE")
    refused = page.get("audio/1")
    assert (refused.status, "not a WAV" in refused.json()["error"]) == (415, True)
    assert make_page(session).get("audio/0").status == 404


def test_texts_of_all_languages(page, make_page):
    """Every one has the keys of the English texts, and in each of them the same places to fill."""
    texts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (STATIC / "texts").glob("*.json")}
    assert tuple(sorted(texts)) == LANGUAGES
    wanted = places(texts["en"])
    used = "".join((STATIC / name).read_text() for name in ("index.html", "page.js", "view.js"))
    assert [key for key in wanted if f'"{key}"' not in used] == []
    for name, found in texts.items():
        assert places(found) == wanted, name
        assert list(found) == sorted(found)
    assert page.get("texts/de.json").json() == texts["de"]
    wording = {"wording": "One fault?", "instructions": "*Look* twice.", "language": "de"}
    start = make_page(page.session, **wording).get("api/start").json()
    assert (start["wording"], start["instructions"], start["language"]) == tuple(wording.values())


def places(texts):
    """What is filled in, of one and of many."""
    forms = {key: text if isinstance(text, dict) else {"": text} for key, text in texts.items()}
    return {
        key: {form: sorted(re.findall(r"{(\w+)}", text)) for form, text in sorted(one.items())}
        for key, one in forms.items()
    }


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_no_script_makes_html_of_a_text(path):
    unsafe = "innerHTML outerHTML insertAdjacentHTML document.write eval( Function( DOMParser srcdoc setHTML"
    assert not [word for word in unsafe.split() if word in path.read_text(encoding="utf-8")]


def test_what_is_not_known_is_null_or_said(open_session, make_page):
    page = make_page(open_session(n_points=2, design="linked", random_share=0))
    page.answer("same")
    page.session.numbers(wait=True)
    assert [one["share"] for one in page.get("api/numbers").json()["classes"]] == [None]
    assert "nothing is left to ask" in page.get("api/question").json()["reason"]


@pytest.fixture
def match_page(open_session, make_page):
    """Rows are of one class where their numbers leave the same rest by 3; ten questions are answered."""
    page = make_page(open_session(n_points=60, design="match", n_classes="auto"), class_names=["zero", "one"])
    for _ in range(10):
        page.answer(like(page.ask("ann")), "ann")
    return page


def like(question):
    left = int(question["items"][0]["id"][1:])
    alike = [k for k, one in enumerate(question["items"][1:]) if int(one["id"][1:]) % 3 == left % 3]
    return alike[0] if alike else "none"


def names_of(question):
    """Name of each class, by the rest that its rows leave."""
    return {int(one["id"][1:]) % 3: one["name"] for one in question["items"][1:]}


def test_match_questions(match_page):
    page = match_page
    start = page.get("api/start").json()
    assert (start["design"], start["class_names"]) == ("match", ["zero", "one"])
    question = page.ask("ann")
    assert set(question) == {"token", "form", "items"}
    assert [set(one) for one in question["items"]] == [{"id", "parts", "name", "place"}] * 4
    # Nothing about the row that is asked about; the classes in the order in which they were found.
    assert [one["place"] for one in question["items"]] == [None, 0, 1, 2]
    found = {int(one["id"][1:]) % 3: one["place"] for one in question["items"][1:]}
    page.session.numbers(wait=True)
    assert sorted(one["place"] for one in page.get("api/numbers").json()["classes"]) == [0, 1, 2]
    classes = page.get("api/classes").json()["classes"]
    assert [one["place"] for one in classes] == [0, 1, 2]
    assert {int(one["ids"][0][1:]) % 3: one["place"] for one in classes} == found
    sent = {"annotator": "ann", "token": question["token"]}
    for reply in ("same", 3, -1, True, 1.5, None, "some", [0, 1], [0, 1, 1, 1], {"a": 1}, [[0], 1, 2, 3]):
        assert page.post("answer", {**sent, "reply": reply}).status == 400
    assert page.session.n_answers == 10
    logged = page.get("api/history", annotator="ann").json()["answers"]
    last = page.session.history()[0]
    assert [one["id"] for one in logged[0]["items"][1:]] == list(last.choices)
    assert logged[0]["reply"] == last.reply
    assert change(page, logged[0], "ann", "none").json()["answer"]["reply"] == "none"
    assert change(page, logged[0], "ann", 99).status == 400
    assert change(page, logged[0], "ann", last.reply).status == 200
    response = page.get("answers")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="answers.csv"'
    assert response.body.decode() == as_csv(page.session.store.contents)


def test_classes_are_named_on_the_way_merged_and_split(match_page):
    page = match_page
    who = {"annotator": "ann"}
    question = page.ask("ann")
    rests = [int(one["id"][1:]) % 3 for one in question["items"][1:]]
    for choice, rest in zip(question["items"][1:], rests, strict=True):
        named = page.post("rename", {**who, "id": choice["id"], "name": f" rest {rest} "}).json()["question"]
    assert names_of(named) == {rest: f"rest {rest}" for rest in rests}
    assert named["token"] == question["token"]
    first = question["items"][1:][0]["id"]
    assert (
        "Another class is named"
        in page.post("rename", {**who, "id": first, "name": f"rest {rests[1]}"}).json()["error"]
    )
    for name in ("", " ", "x" * 61, "a\nb", 5):
        assert page.post("rename", {**who, "id": first, "name": name}).status == 400
    shown = page.post("example", {**who, "token": question["token"], "position": 0}).json()["question"]
    assert shown["items"][1]["id"] != first
    assert shown["items"][1]["name"] == f"rest {rests[0]}"
    for place in (3, -1, "0"):
        assert page.post("example", {**who, "token": shown["token"], "position": place}).status == 400
    # Whatever example is shown, the class has its name; a new one gives it to all rows.
    page.post("rename", {**who, "id": shown["items"][1]["id"], "name": "first"})
    assert names_of(page.ask("ann"))[rests[0]] == "first"
    assert [one["name"] for one in page.session.numbers(wait=True)["classes"]].count("first") == 1
    merged = page.post("merge", {**who, "id": first, "into": question["items"][1:][1]["id"]}).json()["question"]
    assert sorted(one["name"] for one in merged["items"][1:]) == sorted(f"rest {rest}" for rest in rests[1:])
    leaving = next(one for one in page.session.history() if one.picked is not None)
    before = {one["name"] for one in merged["items"][1:]}
    split = page.post("split", {**who, "id": leaving.left}).json()["question"]
    # It leaves without the name.
    assert sorted(one["name"] for one in split["items"][1:]) == sorted([*before, ""])
    # Rows are called by their ids.
    again = page.post("merge", {**who, "id": first, "into": first}).json()["error"]
    assert again.startswith(f"Nothing to merge: row '{first}' and row '{first}' are of one class already")
    for path, sent in (("split", {"id": "elsewhere"}), ("split", {"id": 7})):
        assert page.post(path, {**who, **sent}).status == 400


@pytest.mark.parametrize("design", ["linked", "match", "sort"])
def test_the_history_names_the_classes_of_examples_and_of_nothing_else(open_session, make_page, design):
    n_classes = 2 if design == "linked" else "auto"
    page = make_page(open_session(n_points=60, design=design, n_classes=n_classes))
    for _ in range(8):
        question = page.ask()
        kinds = [int(item["id"][1:]) % (2 if design == "linked" else 3) for item in question["items"]]
        sorted_or_matched = kinds if design == "sort" else like(question)
        page.answer(kinds[0] == kinds[1] if design == "linked" else sorted_or_matched)
    found = page.get("api/classes").json()["classes"]
    for one in found:
        page.post("rename", {"id": one["ids"][0], "name": f"kind {one['place']}"})
    history = page.get("api/history").json()["answers"]
    for shown, stored in zip(history, page.session.history(), strict=True):
        for item, is_example in zip(shown["items"], are_examples(stored.question), strict=True):
            place = page.session.place_of(page.session.rows[item["id"]]) if is_example else None
            assert item["place"] == place
            assert item["name"] == ("" if place is None else f"kind {place}")
    n_examples = sum(item["place"] is not None for one in history for item in one["items"])
    assert (n_examples == 0) == (design == "linked")


def test_a_new_class_has_the_name_that_is_chosen_until_it_is_taken_back(open_session, make_page):
    page = make_page(open_session(n_points=60, design="match", n_classes="auto"))
    question = page.ask()
    sent = {"token": question["token"], "reply": "none", "name": "cat"}
    following = page.post("answer", sent).json()["question"]
    assert {one["id"]: one["name"] for one in following["items"][1:]}[question["items"][0]["id"]] == "cat"
    page.post("undo", {})
    again = page.answer(0)["question"]
    assert [one["name"] for one in again["items"][1:]] == [""]
