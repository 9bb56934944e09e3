import csv
import json
import re
import warnings

import numpy as np
import pytest

from sdulearn import estimate_prior
from sdulearn.answers import AnswerModel, Rate


def test_a_file_full_of_mistakes(tmp_path, call, capsys):
    rows = "a,b,same b,c,same a,c,different a,a,same a,b,same c,d,same d,c,different a,x,perhaps a,,same a,q,unsure"
    (tmp_path / "p.csv").write_text("\n".join(["left,right,label", *rows.split()]))
    (tmp_path / "t.csv").write_text("name,x\na,1\nb,2\nc,3\nd,4\n")
    assert call("check", tmp_path / "p.csv", "--limit", 1) == 1
    assert "... and 1 more (sdulearn check --limit 2)" in capsys.readouterr().out
    assert call("check", tmp_path / "p.csv", "--table", tmp_path / "t.csv", "--id-column", "name", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    read = found["findings"][0]["numbers"]
    assert (read["n_similar"], read["n_dissimilar"], read["n_unsure"]) == (5, 2, 1)
    assert found["unreadable"] == [
        {"line": 9, "reason": "label 'perhaps' is not one that is known"},
        {"line": 10, "reason": "id_b is empty"},
    ]
    assert found["unknown_ids"] == [{"line": 11, "id": "q"}]
    assert (found["self_pairs"], found["repeats"]) == ([5], [6])
    assert found["contradictions"] == {"both_ways": [[7, 8]], "closure": [[4, 3, 2]], "odd_cycles": []}


STAR = [f"hub,p{k},{int(k % 3 > 0)}" for k in range(30)]
# 200 records twice, each row beside two others.
ENTITIES = [f"a{k},b{k},1" for k in range(200)]
ENTITIES += [f"{side}{k},a{(k + step) % 200},0" for k in range(200) for side, step in (("a", 1), ("b", 7))]
FLIPPED = [row[:-1] + str(1 - int(row[-1])) for row in ENTITIES]


@pytest.mark.parametrize(
    ("rows", "code", "found", "text"),
    [
        (STAR, 0, {"shared_points", "hubs"}, "1 row is in many of the 30 answers (hub: 30)"),
        (ENTITIES, 1, {"entities"}, "connect 200 groups of rows, half of them of 2 rows or fewer"),
        # A sixth of the answers is wrong, which many classes would explain.
        (ENTITIES * 5 + FLIPPED, 1, {"entities", "contradictions"}, "connect 200 groups of rows"),
    ],
)
def test_answers_that_share_points_and_answers_about_entities(tmp_path, call, capsys, rows, code, found, text):
    (tmp_path / "p.csv").write_text("\n".join(["id_a,id_b,label", *rows]))
    assert call("check", tmp_path / "p.csv") == code
    assert text in capsys.readouterr().out
    call("check", tmp_path / "p.csv", "--json")
    codes = {fact["code"] for fact in json.loads(capsys.readouterr().out)["findings"]}
    assert found <= codes
    # No number of classes is claimed for entities.
    assert ("crowd" in codes) != ("entities" in found)


@pytest.fixture
def prior_of(tmp_path, call, capsys):
    """The details of the prior that ``check --json`` finds in a file of these lines; None without one."""

    def read(lines, name="p.csv", code=0, options=()):
        (tmp_path / name).write_text("\n".join(lines))
        assert call("check", tmp_path / name, "--json", *options) == code
        facts = json.loads(capsys.readouterr().out)["findings"]
        return next((fact["numbers"] for fact in facts if fact["code"] == "prior"), None)

    return read


def loose(n_similar, n_dissimilar):
    return ["id_a,id_b,label", *(f"a{k},b{k},{int(k < n_similar)}" for k in range(n_similar + n_dissimilar))]


def star(kinds):
    """A log of questions about 60 rows and one hub: 41 rows are in the hub's class, 19 in the other."""
    answers = ["same"] * 41 + ["different"] * 19
    shared = {"event": "answer", "annotator": "", "time": "", "session": "s", "right": "hub"}
    rows = zip(answers, kinds, strict=True)
    return [
        json.dumps({**shared, "number": k + 1, "left": f"r{k}", "answer": answer, "kind": kind})
        for k, (answer, kind) in enumerate(rows)
    ]


def test_the_prior_of_loose_pairs(prior_of, tmp_path, call, capsys):
    for counts in ((580, 420), (58, 42)):
        # Nothing tells how many answers are wrong: 2%, or 0.5 to 30%.
        value, low, high = (estimate_prior(*counts, error_rate=rate) for rate in (0.02, 0.005, 0.3))
        details = prior_of(loose(*counts))
        assert details["value"] == value.value
        assert low.low <= details["low"] <= value.low < value.high < details["high"] <= high.high
        assert (details["identified"], details["n_answers"]) == (low.identified, sum(counts))
    assert prior_of(loose(*counts), options=("--classes", 3)) is None
    call("check", tmp_path / "p.csv", "-o", tmp_path / "page.html")
    shown = re.search(r"^Prior: 70\.4% .* larger class .*", capsys.readouterr().out, re.MULTILINE)[0]
    assert shown in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_prior_of_a_log_is_that_of_its_random_questions(prior_of):
    """Of the random ones 15 of 20 are in one class; the 40 chosen ones are half and half."""
    details = prior_of(star(["linked"] * 26 + ["random"] * 20 + ["explore"] * 14), "log.jsonl")
    assert details["n_answers"] == 20
    assert details["value"] == pytest.approx(0.75, abs=0.02)
    unknown = prior_of(star([""] * 60), "log.jsonl")
    assert (unknown["n_answers"], unknown["low"], unknown["high"]) == (0, 0, 1)


@pytest.fixture
def crowd(tmp_path):
    """Twelve people answer questions about 40 points of two classes: one presses a button, one hurries, one guesses."""
    rng = np.random.default_rng(0)
    classes = rng.random(40) < 0.3
    rows = []
    for person in range(12):
        for _ in range(60):
            a, b = rng.choice(40, 2, replace=False)
            wrong = rng.random() < (0.5 if person in (3, 5) else 0.03)
            same = person == 7 or (classes[a] == classes[b]) != wrong
            seconds = rng.uniform(0.4, 0.9) if person == 5 else rng.uniform(2, 6)
            rows.append((f"p{a}", f"p{b}", "same" if same else "different", f"w{person}", f"{seconds:.2f}"))
    rows += [("p0", "p1", "same" if k > 5 else "different", f"w{k}", "") for k in range(12) for _ in range(2)]
    with (tmp_path / "crowd.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id_a", "id_b", "label", "annotator", "seconds"), *rows])
    return tmp_path / "crowd.csv"


def test_a_crowd_at_a_glance(crowd, call, capsys):
    """Doubtful people and disputed questions are found; contradictions among reliable people come first."""
    assert call("check", crowd, "--classes", 2, "--json") == 1
    facts = {fact["code"]: fact["numbers"] for fact in json.loads(capsys.readouterr().out)["findings"]}
    assert 0.1 < facts["crowd"]["value"] < 0.2
    doubted = {one["name"]: " ".join(one["reasons"]) for one in facts["people"]["people"] if one["reasons"]}
    assert set(doubted) == {"w3", "w5", "w7"}
    assert 'all "same"' in doubted["w7"]
    assert " s an answer" in doubted["w5"]
    assert (facts["disputed"]["count"], len(facts["contradictions"]["items"])) == (1, 10)
    assert not re.search(r"\((w3|w5|w7)\)", " ".join(facts["contradictions"]["items"][:2]))
    assert call("check", crowd, "--classes", 2) == 1
    assert len(capsys.readouterr().out.splitlines()) < 40


def test_the_page_of_a_crowd(crowd, call, capsys, monkeypatch, tmp_path):
    def estimate(graph, n_classes):
        warnings.warn("look: `n_classes`", stacklevel=1)
        rates = {k: Rate(0.01 * k, 0.0, 0.01 * k + 0.1, 9, careless=0.6 * (k == 50)) for k in range(1, 51)}
        return AnswerModel(Rate(0.2, 0.1, 0.3, 9), rates, np.array([[0.9, 0.69, 0.1], [0.69, 0.6, 0.0], [0.1, 0.0, 1]]))

    monkeypatch.setattr(AnswerModel, "estimate", estimate)
    rows = [f"a{k},b{k},{k % 2},<w{k}>\n" for k in range(50)]
    (tmp_path / "many.csv").write_text("id_a,id_b,label,annotator\n" + "".join(rows))
    assert call("check", tmp_path / "many.csv", "-o", tmp_path / "page.html", "--classes", 3) == 1
    out = capsys.readouterr().out
    assert "warning: look: --classes\n" in out
    assert "  <w49>: 50% of 1 wrong (0% to 60%); 60% careless\n" in out
    confused = ['classes 1 and 2: called "same" 69%', 'class 2: called "different" 40%']
    assert "\n  ".join(confused) in out
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    cells = re.findall(r"<(?:td|li|h2)[^>]*>([^<]*)", text)
    assert not re.search(r"(src|href)=|<script|@import|url\(|<w", text)
    assert {"People", "Confused classes", *(one.replace('"', "&#34;") for one in confused)} <= set(cells)
    # The forty with the highest rates, the last of them the one with 11%; the others in one line.
    assert sum(cell.endswith("% of 1") for cell in cells) == 40
    assert "and 10 more, 1% to 10%" in text
    assert {"50% of 1", "69 / 31", "60 / 40", "100 / 0"} <= set(cells)
    assert 'class="bar down" style="left:0.0%;width:83.3%"></span><i style="left:0.0%;width:100.0%">' in text


def test_a_page_does_not_overwrite_the_answers(crowd, refused):
    assert "writing it would overwrite it" in refused("check", crowd, "-o", crowd)
    assert "There is no folder" in refused("check", crowd, "--classes", 2, "-o", crowd.parent / "none" / "p.html")


def test_the_prior_of_answers_that_were_flipped_for_privacy(prior_of):
    """Of 4,000 random pairs at prior 0.8, 68% are similar; flips at epsilon 2 leave 64% of them."""
    n, flipped = 4000, 1 / (1 + np.exp(2))
    n_similar = round(n * (0.68 * (1 - flipped) + 0.32 * flipped))
    shared = {"event": "answer", "annotator": "", "kind": "random", "time": "", "session": "s", "epsilon": 2.0}
    lines = [
        json.dumps({**shared, "number": k + 1, "left": f"a{k}", "right": f"b{k}",
                    "answer": "same" if k < n_similar else "different"})
        for k in range(n)
    ]  # fmt: skip
    details = prior_of(lines, "log.jsonl")
    assert details["value"] == pytest.approx(0.8, abs=0.005)
    assert details["low"] < 0.79 < 0.81 < details["high"]


def test_a_ratio_that_the_prior_does_not_explain(tmp_path, call, capsys):
    loose = [f"a{k},b{k},{int(k < 50)}" for k in range(100)]
    chain = [f"a{k},a{k + 1},1" for k in range(100)]
    for answers, told in ((loose, "50 of 100 pairs are similar"), (chain, "Of the pairs among the 101 points")):
        (tmp_path / "p.csv").write_text("\n".join(["id_a,id_b,label", *answers]))
        assert call("check", tmp_path / "p.csv") == 0
        capsys.readouterr()
        assert call("check", tmp_path / "p.csv", "--prior", 0.8) == 1
        out = capsys.readouterr().out
        assert told in out
        assert "No problems found" not in out


def test_answers_are_counted_not_their_ids(tmp_path, call, capsys):
    (tmp_path / "p.csv").write_text("id_a,id_b,label\nx,y,same\na,b,different\na,z,same\n")
    (tmp_path / "t.csv").write_text("id,x\na,1\nb,2\n")
    assert call("check", tmp_path / "p.csv", "--table", tmp_path / "t.csv", "--json") == 1
    found = {one["code"]: one["numbers"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert found["unknown_ids"]["count"] == 2
    assert found["unknown_ids"]["items"] == ["line 2: x and y", "line 4: z"]


@pytest.mark.parametrize("rows", ["", "a,b,unsure\n"])
def test_a_file_without_answers_is_a_problem(tmp_path, call, capsys, rows):
    (tmp_path / "p.csv").write_text(f"id_a,id_b,label\n{rows}")
    assert call("check", tmp_path / "p.csv", "--json") == 1
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["code"] == "no_answers"]
    assert [one["numbers"] for one in found] == [{"n_unsure": int(bool(rows))}]


def test_forced_choices_alone_are_answers(tmp_path, call, capsys):
    (tmp_path / "p.csv").write_text("x,first,second,chosen\na,b,c,first\nd,b,c,second\n")
    call("check", tmp_path / "p.csv", "--json")
    assert "no_answers" not in [one["code"] for one in json.loads(capsys.readouterr().out)["findings"]]
