"""What the pages say of the project is so: links, tables, names, commands, the citation."""

import importlib
import inspect
import itertools
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import sdulearn
from sdulearn import errors
from sdulearn.answers.y import COLUMNS
from sdulearn.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Built by sphinx, or written by `make reproduce`.
WRITTEN = {"_build", "gallery", "generated", "reproduction"}
# Guidance; pages of evidence are written by benchmarks.
PARTS = ("tutorials", "howto", "explain", "reference")
GUIDE = [DOCS / "index.md", DOCS / "faq.md", *(path for part in PARTS for path in sorted((DOCS / part).glob("*.md")))]
PAGES = [path for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if not WRITTEN & set(path.relative_to(ROOT).parts)]


def prose(path):
    """A page without its code blocks."""
    return re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def between(path, name):
    return path.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path):
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(path)):
        built = "gallery/" in link or "generated/" in link
        assert "://" in link or built or (path.parent / link).exists(), f"{path.name} links to {link}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_are_whole(path):
    """A block of rows starts with a head and its rule, and all of its rows are as wide."""
    for block in re.findall(r"(?:^\|.*\n)+", prose(path), re.MULTILINE):
        lines = block.splitlines()
        widths = {len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`|\$[^$]*\$", "", line))) for line in lines}
        assert len(lines) > 2, f"{path.name}: {block}"
        assert re.fullmatch(r"[|\s:-]+", lines[1]), f"{path.name}: no rule under {lines[0]}"
        assert len(widths) == 1, f"{path.name}: {block}"


def test_every_command_is_documented_and_has_a_worked_example():
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    worked = "\n".join(path.read_text(encoding="utf-8") for path in GUIDE)
    for name in COMMANDS:
        assert f"## {name}\n" in page, name
        assert f"```{{command-help}} {name}\n" in page
        assert re.search(rf"```{{worked}}\n(?:.*\n)*?\$.*sdulearn {name} ", worked), name


def test_every_public_name_is_documented_once():
    pages = [path for path in (DOCS / "reference" / "api").glob("*.md") if path.stem != "index"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    listed = re.findall(r"^   (sdulearn\.[\w.]+)$", text, re.MULTILINE)
    assert {f"sdulearn.{name}" for name in sdulearn.__all__} <= set(listed)
    classes = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    own = {value.__name__ for value in classes if value.__module__ == errors.__name__}
    assert {f"sdulearn.errors.{name}" for name in own} <= set(listed)
    assert len(listed) == len(set(listed))
    first = (DOCS / "reference" / "api" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^   (sdulearn\.[\w.]+)$", first, re.MULTILINE)) <= set(listed)


def test_every_page_is_in_a_table_of_contents():
    """Pages and, of the API, their folder."""
    listed = set()
    for path in (*GUIDE, DOCS / "evidence" / "index.md", DOCS / "reference" / "api" / "index.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(path.parent / f"{line}.md").resolve() for line in lines}
    pages = {path.resolve() for path in DOCS.rglob("*.md") if not WRITTEN & set(path.relative_to(ROOT).parts)}
    assert pages - {DOCS / "index.md"} <= listed


def test_guidance_is_at_most_20_000_words():
    """Counted with code, and without what has no letter or digit."""
    assert sum(len(re.findall(r"\S*\w\S*", path.read_text(encoding="utf-8"))) for path in GUIDE) <= 20_000


def test_options_in_the_pages_exist(capsys):
    """Every option of a command that a page shows, in code blocks and in the text."""
    options = {"--version"}
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        options |= set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    for path in (*GUIDE, ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        shown = re.findall(r"(?:sdulearn|`|\s)(--[a-z][a-z-]+)", re.sub(r"make [^`\n]*", "", text))
        assert set(shown) - {"--debug"} <= options, path.name


def test_the_columns_of_y_are_documented_under_their_names():
    page = (DOCS / "reference" / "y.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \d \| (\w+) \|", page, re.MULTILINE)) == COLUMNS


def test_each_section_of_evidence_belongs_to_a_script():
    """A script of benchmarks/ writes what is between two marks of a page."""
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py"))
    marks = [
        mark
        for path in (DOCS / "evidence").glob("*.md")
        for mark in re.findall(r"^<!-- ([^/].*) -->$", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(marks) > 20
    for mark in marks:
        name = "boosting-{condition}" if re.fullmatch(r"boosting-(?!scale).*", mark) else mark
        assert f'"{name}"' in scripts, mark


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_that_the_pages_mention_exist(path):
    text = path.read_text(encoding="utf-8")
    for name in set(re.findall(r"(?<![\w./-])sdulearn(?:\.[a-zA-Z_]\w*)+", text)):
        assert resolves(name), f"{path.name} speaks of {name}"


def resolves(name):
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_the_table_of_rooms_is_the_tree():
    """Every file and folder of the package is named once, and nothing else is; files of a folder stand beside it."""
    package = ROOT / "src" / "sdulearn"
    rows = re.findall(r"^\| (`[^|]+) \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    rooms = [(name, text) for names, text in rows for name in re.findall(r"`([\w/]+(?:\.py|/))`", names)]
    there = {path.name + "/" * path.is_dir() for path in package.iterdir() if path.suffix in ("", ".py")}
    assert sorted(name for name, _ in rooms) == sorted(there - {"__init__.py", "__pycache__/"})
    for name, text in rooms:
        for file in re.findall(r"`(\w+\.py)`", text):
            assert (package / name / file).exists(), f"{name} has no {file}"


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {sdulearn.__version__}\n" in text
    assert f"version = {{{sdulearn.__version__}}}," in (DOCS / "reference" / "support.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nlicense: {project['license']}\n" in text
    assert f"\nrepository-code: {project['urls']['Homepage']}\n" in text


def test_the_conda_recipe_is_of_this_version_and_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f'version: "{sdulearn.__version__}"' in recipe
    needed = re.findall(r"^    - ([\w-]+) (>=[\d.]+)$", recipe.partition("\n  run:\n")[2], re.MULTILINE)
    assert {"".join(each) for each in needed} == {*project["dependencies"], f"python{project['requires-python']}"}


def test_the_extras_that_the_pages_name_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for path in PAGES:
        for extras in re.findall(r"pip install '?(?:\.|sdulearn)\[([\w,]+)\]", path.read_text(encoding="utf-8")):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), path.name


def test_parameters_of_other_docstrings_are_written_out(monkeypatch):
    """Also of methods; and every entry has a text."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import check_docstrings
    import shared_text

    left = []
    documented = check_docstrings.documented()
    for name in itertools.chain.from_iterable(map(check_docstrings.with_methods, documented)):
        value = check_docstrings.find(name)
        owner = getattr(value, "__qualname__", "").rpartition(".")[0] or None
        lines = (inspect.getdoc(value) or "").splitlines()
        text = shared_text.expanded(lines, getattr(value, "__module__", None) or "", owner)
        left += [f"{name}: {line}" for line in text if re.match(r"\s+As (in|there)\b", line)]
        for first, last in shared_text.sections(text).values():
            entries = shared_text.entries(text[first:last])
            left += [f"{name}: {entry.names}" for entry in entries if not "".join(entry.text)]
    assert left == []


def test_the_check_of_the_site_finds_faults(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import check_site

    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><a href="https://x.y/#z">y</a>')
    (tmp_path / "b.html").write_text('<p id="here"><img src="p.png" alt="A picture">')
    (tmp_path / "p.png").write_bytes(b"")
    assert check_site.faults(tmp_path) == []
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a><a href="c.html">y</a><img src="p.png" alt="">')
    assert check_site.faults(tmp_path) == [
        "a.html: p.png has no alt text",
        "a.html: b.html#there has no such anchor",
        "a.html: c.html leads nowhere",
    ]


@pytest.mark.parametrize("name", ["errors", "intervals", "labels", "learners", "paper", "speed"])
def test_the_chart_of_a_page_of_evidence_is_drawn_from_its_tables(name, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.syspath_prepend(DOCS / "figures")
    with plt.rc_context({"backend": "Agg"}):
        getattr(importlib.import_module("charts"), name)()
        assert all(axis.has_data() for axis in plt.gcf().axes)
        plt.close("all")
    assert f"charts.{name}()" in (DOCS / "evidence" / f"{name}.md").read_text(encoding="utf-8")
