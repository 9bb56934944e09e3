"""The page in a real browser: by keyboard alone, after a kill, with two people, and for everybody.

Needs Playwright and a Chromium of the system (``SDULEARN_CHROMIUM`` or one in the path).
"""

import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sdulearn.answer_files.log import read_log
from sdulearn.io.media import grey_png

# Where a browser is named, a package that is missing is an error and no reason to skip.
REQUIRED = "SDULEARN_CHROMIUM" in os.environ
if not REQUIRED:
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
playwright = importlib.import_module("playwright.sync_api")
BROWSER = os.environ.get("SDULEARN_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium in the path")

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
PATIENCE_MS = 600_000  # a busy machine is slow, not wrong
# Where pictures of the pages go, for looking at them.
PICTURES = os.environ.get("SDULEARN_SCREENSHOTS")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open a window of its own; what the page complains of or asks of others is an error."""
    contexts = []
    complaints = []

    def open_(address, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        host = address.split("/")[2]
        page.on("request", lambda request: complaints.append(request.url) if host not in request.url else None)
        page.goto(address)
        playwright.expect(page.locator("#pair")).not_to_be_empty(timeout=PATIENCE_MS)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def press(page, key, says):
    """Press a key and wait until the page says what it did."""
    page.keyboard.press(key)
    playwright.expect(page.locator("#status")).to_contain_text(says, timeout=PATIENCE_MS)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "answers.jsonl"


def words(log):
    return [one.reply for one in read_log(log).answers.values()]


def pair(page):
    """Ids of the question before a person."""
    return page.locator("#pair article h2").all_inner_texts()


def test_answers_by_keyboard_undo_change_reload_kill_and_go_on(start_server, open_page, log):
    options = ("--demo", "--classes", "2", "--seed", "1", "-o", log, "--annotator", "ann")
    server = start_server(*options)
    page = open_page(server.address)
    keys = ["s", "d", "u", "ArrowLeft", "ArrowRight", "ArrowDown", "S", "D"]
    meaning = ["same", "different", "unsure", "same", "different", "unsure", "same", "different"]
    for k, (key, word) in enumerate(zip(keys, meaning, strict=True)):
        press(page, key, f"Answer {k + 1} saved: {word}")
    expected = list(meaning)
    assert words(log) == expected

    before = pair(page)
    for _ in range(3):
        press(page, "z", "Undone")
        page.locator("#status").evaluate("element => { element.textContent = ''; }")
    assert words(log) == expected[:5]
    press(page, "k", "Skipped")
    press(page, "z", "Undone")
    assert words(log) == expected[:4]
    assert pair(page) != before

    page.locator("nav a", has_text="History").click()
    second = page.locator("#list select").nth(2)
    assert second.input_value() == expected[1]
    second.select_option("same")
    playwright.expect(page.locator("#status")).to_contain_text("changed to same", timeout=PATIENCE_MS)
    expected[1] = "same"
    assert words(log) == expected[:4]

    page.reload()
    page.locator("nav a", has_text="Ask").click()
    playwright.expect(page.locator("#n-answers")).to_have_text("4 answers", timeout=PATIENCE_MS)
    server.kill()
    page.keyboard.press("s")
    playwright.expect(page.locator("#status")).to_contain_text("Not saved yet", timeout=PATIENCE_MS)
    assert words(log) == expected[:4]
    server = start_server(*options)
    page = open_page(server.address)
    playwright.expect(page.locator("#status")).to_contain_text("4 answers so far")
    press(page, "d", "Answer 5 saved: different")
    assert words(log) == [*expected[:4], "different"]


def test_the_demonstration_begins_with_what_to_do_and_ends_with_classes(start_server, open_page, log):
    server = start_server("--demo", "-o", log, "--seed", "1")
    page = open_page(server.address)
    playwright.expect(page.locator("#instructions div")).to_contain_text("open Finish")
    playwright.expect(page.locator("#instructions div")).to_be_visible()
    server.kill()
    call = [sys.executable, "-m", "sdulearn", "ask", "--demo", "-o", str(log), "--quiet"]
    subprocess.run([*call, "--oracle", "target", "--questions", "60"], check=True)
    page = open_page(start_server("--demo", "-o", log).address, viewport={"width": 1120, "height": 680})
    playwright.expect(page.locator("#numbers")).to_contain_text("%", timeout=PATIENCE_MS)
    playwright.expect(page.locator("#numbers")).not_to_contain_text("Being estimated", timeout=PATIENCE_MS)
    take_picture(page, "demo")
    page.locator("nav a", has_text="Finish").click()
    page.locator("#fit").click()
    playwright.expect(page.locator(".found")).to_have_count(4, timeout=2 * PATIENCE_MS)


def test_private_answers_a_log_that_is_gone_and_keys_that_are_no_answers(start_server, open_page, log):
    page = open_page(start_server("--demo", "--classes", "2", "--private", "0.5", "-o", log).address)
    page.get_by_label("You are").press_sequentially("sduz")
    page.get_by_role("button", name="Set").click()
    playwright.expect(page.locator("#ask-title")).to_be_focused(timeout=PATIENCE_MS)
    page.keyboard.press("Control+s")
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 's', repeat: true, bubbles: true}))")
    press(page, "p", "Paused")
    page.keyboard.press("s")
    press(page, "p", "You can continue")
    page.get_by_label("answer by keys").uncheck()
    page.keyboard.press("s")
    assert words(log) == []
    page.get_by_label("answer by keys").check()
    page.get_by_role("button", name="Same").click()
    playwright.expect(page.locator("#status")).to_contain_text("Answer 1 saved.", timeout=PATIENCE_MS)
    playwright.expect(page.locator("#privacy")).to_contain_text("A row is in at most 1 answer", timeout=PATIENCE_MS)
    log.rename(log.with_suffix(".away"))
    press(page, "s", "was moved or removed")
    log.with_suffix(".away").rename(log)
    press(page, "s", "Answer 2 saved.")
    assert [one.annotator for one in read_log(log).answers.values()] == ["sduz"] * 2


NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two clouds with a text that would be code, a picture or a link, and fields."""
    folder = tmp_path_factory.mktemp("things")
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame({"id": [f"r{k}" for k in range(60)], "size": y + rng.normal(0, 0.2, 60).round(3)})
    frame["colour"] = np.where(rng.random(60) < 0.5, "red", "blue")
    frame["note"] = [f"{NASTY} number {k}" for k in range(60)]
    frame["picture"] = ["a.png" if k % 3 else "https://pictures.example/x.png" for k in range(60)]
    frame["label"] = np.where(y, "big", "small")
    frame.to_csv(folder / "things.csv", index=False)
    (folder / "a.png").write_bytes(grey_png(rng.random((9, 9))))
    return folder / "things.csv"


def test_texts_pictures_links_and_fields(start_server, open_page, log, table):
    options = ("--text", "note", "--images", "picture", "--show", "size,colour", "--drop", "label")
    options = (*options, "--missing", "mean")  # of links the page makes no features
    page = open_page(start_server(table, "-o", log, *options, "--seed", "4").address)
    assert page.locator("#pair .text").first.inner_text().startswith(NASTY)
    assert page.locator("#pair script, #pair img[onerror]").count() == 0
    kinds = set()
    for k in range(6):
        kinds |= {"link"} if page.locator("#pair article a[rel~=noreferrer]").count() else set()
        for image in page.locator("#pair img").all():
            image.evaluate("image => image.decode()")
            kinds.add("image")
        size, colour = page.locator(".fields tbody tr").all()
        first, second, difference = size.locator("td").all_inner_texts()
        apart = abs(float(first) - float(second)) / np.std(pd.read_csv(table)["size"])
        assert difference == "=" if first == second else abs(float(difference) - apart) < 0.06
        first, second, difference = colour.locator("td").all_inner_texts()
        assert colour.locator("mark").all_inner_texts() == ([] if first == second else [first, second])
        numbers = [text.split()[-1] for text in page.locator("#pair .text").all_inner_texts()]
        assert page.locator("#pair .text mark").all_inner_texts() == numbers
        press(page, "s", f"Answer {k + 1} saved")
    assert kinds == {"link", "image"}


def test_words_of_one_s_own_a_language_a_comment_a_goal_and_pictures_to_enlarge(start_server, open_page, log, table):
    note = table.with_name("notes.md")
    note.write_text(
        f"# Rules\n\n- **look** twice {NASTY}\n- [more](https://x.example/) or [less](javascript:alert(1))\n"
    )
    words = ("--question", f"One fault? {NASTY}", "--instructions", note, "--language", "de", "--per-person", "2")
    shown = ("--images", "picture", "--show", "size", "--drop", "label,note", "--missing", "mean", "--seed", "4")
    page = open_page(start_server(table, "-o", log, *words, *shown).address, viewport={"width": 390, "height": 800})
    assert page.locator("html").get_attribute("lang") == "de"
    assert page.locator("h1:visible").inner_text() == f"One fault? {NASTY}"
    rules = page.locator("#instructions li")
    assert rules.all_inner_texts() == [f"look twice {NASTY}", "more or [less](javascript:alert(1))"]
    assert page.locator("#instructions script, #instructions img, #instructions a").count() == 1
    page.keyboard.press("c")
    page.keyboard.type("beide sind rot")
    page.keyboard.press("Enter")
    press(page, "s", "Antwort 1 gespeichert: gleich")
    playwright.expect(page.locator("#progress")).to_contain_text("1 von 2 Fragen")
    assert [one.given.comment for one in read_log(log).answers.values()] == ["beide sind rot"]
    page.locator("#pair .zoom").first.click()
    playwright.expect(page.locator("dialog img")).to_be_visible()
    # In front of the question no key is an answer to it.
    page.keyboard.press("s")
    page.keyboard.press("Escape")
    playwright.expect(page.locator("dialog")).to_have_count(0)
    press(page, "d", "Antwort 2 gespeichert: verschieden")
    playwright.expect(page.locator("#over")).to_contain_text("Vielen Dank")
    page.keyboard.press("s")
    press(page, "z", "Zurückgenommen")
    assert len(read_log(log).answers) == 1
    page.locator("nav a", has_text="Verlauf").click()
    playwright.expect(page.locator("#list .remark")).to_have_text("beide sind rot")
    with page.expect_download() as download:
        page.get_by_role("link", name="Antworten herunterladen").first.click()
    assert pd.read_csv(download.value.path())["comment"].tolist() == ["beide sind rot"]


@pytest.fixture(scope="module")
def many_classes(tmp_path_factory):
    """A table of 14 classes, and an example of each of 13."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    names = [f"kind{k:02}" for k in range(14)]
    y = np.repeat(np.arange(14), 6)
    frame = pd.DataFrame(rng.normal(0, 0.1, (84, 3)) + rng.normal(0, 3, (14, 3))[y], columns=["a", "b", "c"]).round(2)
    frame["note"] = [f"{NASTY} {names[k]}" for k in y]
    frame.insert(0, "id", [f"r{k}" for k in range(84)])
    frame.sample(frac=1, random_state=1).to_csv(folder / "many.csv", index=False)
    seeds = pd.DataFrame({"id": [f"r{6 * k}" for k in range(13)], "label": names[:13]})
    seeds.to_csv(folder / "seeds.csv", index=False)
    return folder


def kind_of(text):
    return text.split()[-1]


def test_match_questions_by_keyboard_with_names_a_search_and_a_menu(start_server, open_page, log, many_classes):
    """Fourteen classes: a number answers, beyond twelve one searches."""
    source = axe()
    options = ("--classes", "auto", "--text", "note", "--show", "a,b,c", "--seed", "2", "--annotator", "ann")
    seeds = ("--examples", many_classes / "seeds.csv", "--class-names", "kind13,other")
    server = start_server(many_classes / "many.csv", "-o", log, *options, *seeds)
    page = open_page(server.address, viewport={"width": 1280, "height": 900})
    playwright.expect(page.locator("h1:visible")).to_have_text("Which of these is it like?")
    said = []
    for k in range(1, 30):
        kind = kind_of(page.locator(".new .text").inner_text())
        shown = page.locator(".choice .pick span").all_inner_texts()
        assert len(shown) == 12
        assert page.locator(".choice dd").count() == 36
        if kind == "kind13" and "named" not in said:
            page.keyboard.press("n")
            playwright.expect(page.get_by_role("dialog")).to_contain_text("kind13")
            press(page, "1", f"Answer {k} saved: kind13")
            said.append("named")
        elif k > 2 and kind in shown[:10]:
            press(page, str((shown.index(kind) + 1) % 10), f"Answer {k} saved: {kind}")
            said.append("shown")
        else:
            page.get_by_label("Search the classes").press_sequentially(kind)
            playwright.expect(page.locator(".choice")).to_have_count(1)
            press(page, "Enter", f"Answer {k} saved: {kind}")
            said.append("searched")
        if {"shown", "named", "searched"} <= set(said):
            break
    assert {"shown", "named", "searched"} <= set(said)
    truth = pd.read_csv(many_classes / "many.csv").set_index("id")["note"].map(kind_of)
    for one in read_log(log).answers.values():
        assert one.picked is None or truth[one.picked] == truth[one.left]
    n = len(said)
    press(page, "u", f"Answer {n + 1} saved: unsure")
    press(page, "z", "Undone")

    look_at(page, "ask", source, "#n-answers")
    more = page.locator(".choice .menu").first
    name = page.locator(".choice .pick span").first.inner_text()
    more.press("Enter")
    page.get_by_label("Name", exact=True).fill("renamed")
    page.evaluate(source)
    assert violations(page) == []
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#status")).to_contain_text("The class is named renamed", timeout=PATIENCE_MS)
    assert {"renamed", name} & set(page.locator(".choice .pick span").all_inner_texts()) == {"renamed"}
    page = open_page(server.address, viewport={"width": 390, "height": 800}, color_scheme="dark")
    playwright.expect(page.locator("#status")).to_contain_text(f"{n} answers so far")
    look_at(page, "ask", source, "#n-answers")
    page.locator(".choice", has_text="renamed").click()
    playwright.expect(page.locator("#status")).to_contain_text(f"Answer {n + 1} saved: renamed", timeout=PATIENCE_MS)
    page.locator("nav a[href='#history']").click()
    playwright.expect(page.locator("#list select").first.locator("option:checked")).to_have_text("renamed")
    page.locator("#list select").first.select_option("none")
    playwright.expect(page.locator("#status")).to_contain_text("changed to None of these", timeout=PATIENCE_MS)
    assert list(read_log(log).answers.values())[-1].reply == "none"


def axe():
    """The source of axe-core, where the package that brings it is installed."""
    if not REQUIRED:
        pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


FILLED = {
    "ask": "#numbers .class-share",
    "history": "#list select",
    "people": "#agreement td",
    "finish": "#classes input",
}


def test_every_page_for_everybody_and_a_fit_with_names(start_server, open_page, log, table):
    """Contrast, labels and the like by axe-core on every page, nothing beside the screen; a picture of each."""
    source = axe()
    shown = ("--text", "note", "--images", "picture", "--show", "size,colour", "--missing", "mean")
    call = [sys.executable, "-m", "sdulearn.cli.main", "ask", str(table), "-o", str(log), *shown]
    subprocess.run([*call, "--oracle", "label", "--questions", "40", "--annotator", "ann", "--seed", "1"], check=True)
    address = start_server(table, "-o", log, *shown, "--drop", "label").address
    page = open_page(address)
    press(page, "u", "Answer 41 saved")
    playwright.expect(page.locator("#n-answers")).to_have_text("41 answers", timeout=PATIENCE_MS)
    for scheme, width in (("light", 1280), ("dark", 390)):
        page = open_page(address, color_scheme=scheme, viewport={"width": width, "height": 800})
        for name in FILLED:
            look_at(page, name, source)
            if PICTURES:
                page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png", full_page=True)
    # The narrow page in the dark: names of the classes, a fit, its results and its report.
    labels = page.locator("#classes input")
    playwright.expect(labels).to_have_count(2, timeout=PATIENCE_MS)
    for k in range(2):
        size = float(page.locator("#classes .class").nth(k).locator("article div").first.inner_text().split()[-1])
        labels.nth(k).fill("big" if size > 0.5 else "small")
    page.get_by_role("button", name="Fit a model").click()
    playwright.expect(page.locator("#status")).to_contain_text("Fitted", timeout=2 * PATIENCE_MS)
    headline = r"At least \d+ of 100 new rows will be right, probably (about \d+|nearly all)"
    assert re.fullmatch(headline, page.locator(".headline").inner_text())
    assert re.search(r"\d+ to \d+ in 100, judged by \d+ random questions", page.locator("#result .card").inner_text())
    assert sorted(page.locator(".found h3").all_inner_texts()) == ["big", "small"]
    assert "sdulearn predict" in page.locator("#result pre").first.inner_text()
    assert not page.locator("#result details li").first.is_visible()
    for fold in ("Everything else", "Name the classes and fit"):
        page.get_by_text(fold).click()
    playwright.expect(page.locator("#result details li").first).to_be_visible()
    look_at(page, "finish", source)
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / "result.png", full_page=True)
    truth = pd.read_csv(table).set_index("id")["label"]
    cells = [row.locator("td").all_inner_texts() for row in page.locator("#result tbody tr").all()]
    probabilities = [float(cell[2].rstrip("%")) for cell in cells]
    assert probabilities == sorted(probabilities)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the classes of these rows").click()
    asked = pd.read_csv(download.value.path())
    assert (len(asked), download.value.suggested_filename) == (len(cells), "answered.csv")
    assert np.mean(asked["label"].to_numpy() == truth[asked["id"]].to_numpy()) > 0.9
    for name, read in (("Download the classes of all rows", pd.read_csv), ("Excel", pd.read_excel)):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        every = read(download.value.path())
        assert sorted(every["id"]) == sorted(truth.index)
        np.testing.assert_allclose(every[["probability_big", "probability_small"]].sum(axis=1), 1)
    page.goto(page.url.split("#")[0] + "report")
    playwright.expect(page.locator("h1")).to_have_text("answers.sdu")
    labelled = read_log(log).labels
    assert labelled
    assert {truth[row_id] == name for row_id, name in labelled.items()} == {True}


@pytest.fixture(scope="module")
def fruits(tmp_path_factory):
    """A table of three kinds of fruit, an example of each, and the kind of each row."""
    folder = tmp_path_factory.mktemp("fruits")
    rng = np.random.default_rng(0)
    names = np.array(["apple", "pear", "plum"])[np.arange(90) % 3]
    frame = pd.DataFrame(rng.normal(0, 1, (90, 2)) + 5 * np.eye(3)[np.arange(90) % 3][:, :2], columns=["a", "b"])
    frame.insert(0, "id", [f"m{k}" for k in range(90)])
    frame["note"] = [f"{name} {rng.choice(['pie', 'jam', 'tree'])}" for name in names]
    frame.round(2).to_csv(folder / "fruits.csv", index=False)
    pd.DataFrame({"id": frame["id"][:3], "label": names[:3]}).to_csv(folder / "examples.csv", index=False)
    (folder / "notes.md").write_text("Sort by *kind*.")
    return folder, dict(zip(frame["id"], names, strict=True))


def shown_kinds(page):
    return [text.split()[0] for text in page.locator(".sortable .text").all_inner_texts()]


def drag(page, card, target):
    """With the mouse, by the head of a card, onto the middle of something."""
    begin, end = card.locator(".choice-head").bounding_box(), target.bounding_box()
    page.mouse.move(begin["x"] + 5, begin["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    page.mouse.up()


def test_items_are_sorted_by_keys_by_mouse_and_by_touch(start_server, open_page, log, fruits):
    """Each answer says what was put together; the instructions close after the first one."""
    source = axe()
    folder, kind = fruits
    options = ("--design", "sort", "--classes", "auto", "--text", "note", "--show", "a,b", "--annotator", "ann")
    server = start_server(folder / "fruits.csv", "-o", log, *options, "--instructions", folder / "notes.md")
    page = open_page(server.address)
    notes = page.locator("#instructions div")
    playwright.expect(notes).to_be_visible()
    press(page, "Enter", "Put at least two into groups")

    kinds = shown_kinds(page)
    groups = [list(dict.fromkeys(kinds)).index(name) + 1 for name in kinds]
    for group in groups:
        page.keyboard.press(str(group))
        page.keyboard.press("ArrowRight")
    page.keyboard.press("0")
    playwright.expect(page.locator(".sortable").first).not_to_have_attribute("data-group", str(groups[0]))
    page.keyboard.press("z")
    playwright.expect(page.locator(".sortable").first).to_have_attribute("data-group", str(groups[0]))
    press(page, "Enter", "Answer 1 saved")
    playwright.expect(notes).not_to_be_visible()

    for k in range(2, 8):
        # Onto the boxes; of one kind onto each other.
        cards, boxes = page.locator(".sortable"), page.locator(".group")
        kinds = shown_kinds(page)
        for j, name in enumerate(kinds):
            first = kinds.index(name)
            drag(page, cards.nth(j), boxes.nth(j) if first == j else cards.nth(first))
        page.locator("[data-answer=done]").click()
        playwright.expect(page.locator("#status")).to_contain_text(f"Answer {k} saved", timeout=PATIENCE_MS)
    playwright.expect(page.locator("#numbers")).to_contain_text("Class 3", timeout=PATIENCE_MS)
    playwright.expect(page.locator(".sortable .named").first).to_have_text(re.compile("Class [1-3]"))
    playwright.expect(page.locator("#numbers")).to_contain_text("To sort into groups: about")
    look_at(page, "ask", source, ".sortable")

    page = open_page(
        server.address, viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True, is_mobile=True
    )
    look_at(page, "ask", source, ".sortable")
    kinds = shown_kinds(page)
    for j, name in enumerate(kinds):
        page.locator(".sortable").nth(j).tap()
        page.locator(".group").nth(kinds.index(name)).tap()
    page.locator("[data-answer=done]").tap()
    playwright.expect(page.locator("#status")).to_contain_text("Answer 8 saved", timeout=PATIENCE_MS)
    answers = list(read_log(log).answers.values())
    for answer in answers:
        said = {}
        for item, group in zip(answer.question.items, answer.groups, strict=True):
            said.setdefault(group, set()).add(kind[item])
        assert None not in said
        assert all(len(names) == 1 for names in said.values())
        assert len(said) == len({kind[item] for item in answer.question.items})


def test_the_nearer_one_by_keys_and_a_pause(start_server, open_page, log, fruits):
    """Keys 1 and 2 choose; while paused nothing answers, and nothing looks as if it did."""
    source = axe()
    folder, kind = fruits
    options = ("--design", "nearer", "--classes", "3", "--examples", folder / "examples.csv", "--text", "note")
    page = open_page(start_server(folder / "fruits.csv", "-o", log, *options).address)
    for k in range(1, 6):
        left = page.locator(".new .text").inner_text().split()[0]
        shown = page.locator(".choice .pick span").all_inner_texts()
        press(page, str(shown.index(left) + 1 if left in shown else 1), f"Answer {k} saved: ")
    look_at(page, "ask", source, ".choice")
    press(page, "p", "Paused")
    unsure = page.locator("[data-answer=unsure]")
    playwright.expect(unsure).to_have_attribute("aria-disabled", "true")
    assert float(unsure.evaluate("button => getComputedStyle(button).opacity")) < 0.6
    look_at(page, "ask", source, "#pause")
    page.keyboard.press("1")
    unsure.click(force=True)
    press(page, "p", "You can continue")
    playwright.expect(unsure).to_have_attribute("aria-disabled", "false")
    assert float(unsure.evaluate("button => getComputedStyle(button).opacity")) == 1
    answers = list(read_log(log).answers.values())
    assert len(answers) == 5
    for answer in answers:
        if kind[answer.left] in map(kind.get, answer.choices):
            assert kind[answer.choices[answer.nearer]] == kind[answer.left]


@pytest.fixture
def messages(tmp_path, monkeypatch):
    """The table of the tutorial, and the topic of each text."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "message_files.py"))
    frame = pd.read_csv("messages.csv")
    return tmp_path / "messages.csv", dict(zip(frame["message"], frame["topic"], strict=True))


def take_picture(page, name):
    """Keep a picture of what is seen for the docs: SDULEARN_SCREENSHOTS=docs/_static/screens."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_the_tutorial_in_the_browser(start_server, open_page, messages):
    """Match questions until all classes are there, then names, a model and its report."""
    path, topic_of = messages
    options = ("--text", "message", "--drop", "topic", "--classes", "auto", "--seed", "1", "--annotator", "ann")
    server = start_server(path.name, "-o", "answers.jsonl", *options)
    page = open_page(server.address, viewport={"width": 1120, "height": 620})
    n_answers = 70
    for k in range(1, n_answers + 1):
        topic = topic_of[page.locator(".new .text").inner_text()]
        shown = [topic_of[text] for text in page.locator(".choice .text").all_inner_texts()]
        page.keyboard.press(str(shown.index(topic) + 1) if topic in shown else "n")
        playwright.expect(page.locator("#n-answers")).to_have_text(re.compile(rf"{k} answers?"), timeout=PATIENCE_MS)
    assert sorted(shown) == ["delivery", "password", "payment"]
    playwright.expect(page.locator("#numbers")).to_contain_text("%", timeout=PATIENCE_MS)
    playwright.expect(page.locator("#numbers")).not_to_contain_text("Being estimated", timeout=PATIENCE_MS)
    take_picture(page, "match")
    page.locator("nav a[href='#finish']").click()
    labels = page.locator("#classes input")
    playwright.expect(labels).to_have_count(3, timeout=PATIENCE_MS)
    for k in range(3):
        text = page.locator("#classes .class").nth(k).locator(".text").first.inner_text()
        labels.nth(k).fill(topic_of[text])
    page.get_by_role("button", name="Fit a model").click()
    playwright.expect(page.locator(".headline")).to_be_visible(timeout=2 * PATIENCE_MS)
    page.evaluate("scrollTo(0, 0)")
    take_picture(page, "finish")
    page.goto(page.url.split("#")[0] + "report")
    assert {"delivery", "password", "payment"} <= set(re.findall(r"[a-z]+", page.locator("body").inner_text()))
    take_picture(page, "report")


def test_messages_in_pairs(start_server, open_page, messages):
    """Two classes: a message beside another, and a question in one's own words."""
    words = ("--text", "message", "--drop", "topic", "--question", "Are these two messages about the same problem?")
    server = start_server(messages[0].name, "-o", "answers.jsonl", *words, "--seed", "1", "--annotator", "ann")
    page = open_page(server.address, viewport={"width": 1120, "height": 620})
    for k in range(1, 6):
        first, second = (messages[1][text] for text in page.locator("#pair .text").all_inner_texts())
        page.keyboard.press("s" if first == second else "d")
        playwright.expect(page.locator("#n-answers")).to_have_text(re.compile(rf"{k} answers?"), timeout=PATIENCE_MS)
    take_picture(page, "pair")


def test_messages_in_groups(start_server, open_page, messages):
    """A few messages to sort, by keys."""
    options = ("--text", "message", "--drop", "topic", "--classes", "auto", "--design", "sort", "--seed", "1")
    page = open_page(start_server(messages[0].name, "-o", "answers.jsonl", *options, "--annotator", "ann").address)
    page.set_viewport_size({"width": 1120, "height": 660})
    for k in range(1, 5):
        topics = [messages[1][text] for text in page.locator(".sortable .text").all_inner_texts()]
        for topic in topics:
            page.keyboard.press(str(topics.index(topic) + 1))
            page.keyboard.press("ArrowRight")
        groups = [card.get_attribute("data-group") for card in page.locator(".sortable").all()]
        assert groups == [str(topics.index(topic) + 1) for topic in topics]
        if k == 4:
            take_picture(page, "sort")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("#n-answers")).to_have_text(re.compile(rf"{k} answers?"), timeout=PATIENCE_MS)
    assert {one.question.form for one in read_log(Path("answers.jsonl")).answers.values()} == {"sort"}


def look_at(page, name, source, filled=None):
    """Open one of the pages and let axe-core judge it."""
    page.locator(f"nav a[href='#{name}']").click()
    playwright.expect(page.locator(filled or FILLED[name]).first).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate(source)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def violations(page):
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
