import csv
import re
from html.parser import HTMLParser

import pytest

from reproduction.pages import write_report
from reproduction.protocol import PROTOCOLS, QUICK, TABLE
from reproduction.report import build_report
from reproduction.runner import Results, run
from reproduction.tables import agreement, far_cells, paper_table


class Checker(HTMLParser):
    """Every element that is opened is closed, in order; nothing is loaded from elsewhere."""

    void = frozenset({"meta", "br", "path", "use", "line", "rect"})

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.counts = [], [], [], {}

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if "id" in values:
            self.ids.append(values["id"])
        if tag in ("script", "link", "img", "iframe"):
            raise AssertionError(f"<{tag}> loads something")
        if tag == "a":
            self.links.append(values["href"])
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag


def as_measured(difference):
    """Results that lie ``difference`` points from the paper, two trials each."""
    meta = {"error": None, "seconds": 0.2, "n_test": 500, "warnings": []}
    for (dataset, n_pairs, method), printed in paper_table().items():
        for trial, shift in enumerate((-1, 1)):
            accuracy = (printed.accuracy + difference + shift) / 100
            yield {
                "dataset": dataset, "n_pairs": n_pairs, "n_unlabeled": 500, "prior": 0.7, "flip": 0.0,
                "trial": trial, "method": method, "assumed": "counts", "accuracy": accuracy,
                "matched": accuracy, **meta,
            }  # fmt: skip


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """All experiments in miniature, on one bundled set."""
    folder = tmp_path_factory.mktemp("small")
    protocols = [
        p.with_changes(
            datasets=("breast_cancer",), trials=2, methods=tuple(m for m in p.methods if not m.endswith("logistic"))
        )
        for p in QUICK.values()
    ]
    for protocol in protocols:
        run(protocol, folder, progress=False)
    report = build_report(folder, protocols, ["adult is left out: <where> is it?"])
    return report, write_report(report, folder / "out")


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory):
    """The paper's own table, five points off."""
    folder = tmp_path_factory.mktemp("paper")
    results = Results(folder, TABLE)
    results.open({})
    results.append(as_measured(5))
    report = build_report(folder, [TABLE.with_changes(trials=2)])
    return report, write_report(report, folder / "out")


def test_every_experiment_runs(small_run):
    """Only the marginal risks at prior 0.5 have no answer, with both assumed priors and draws."""
    assert {line.protocol: line.failed for line in small_run[0].provenance if line.failed} == {"priors": 6}
    assert {line.protocol for line in small_run[0].provenance} == set(PROTOCOLS)


def test_page_is_self_contained_and_well_formed(small_run):
    text = small_run[1].read_text()
    page = Checker()
    page.feed(text)
    assert page.open == []
    assert page.counts["svg"] == 5
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert not re.search(r"(src|href)=\"http", text)
    assert "viewport" in text


def test_page_has_every_part(small_run):
    text = small_run[1].read_text()
    parts = ["The paper's claims", "How to read", "Table 1", "Appendix table", "What did not reproduce", "Running time"]
    parts += [PROTOCOLS[name].title for name in ("figure2", "figure3", "wrong_prior", "priors", "noise")]
    parts += ["SDDU is the best mixture", "This is a small run", "adult is left out: &lt;where&gt; is it?"]
    for part in parts:
        assert part.replace("'", "&#x27;") in text, part


def test_other_files(small_run):
    folder = small_run[1].parent
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    figures = {"figure2", "figure3", "wrong_prior", "priors", "noise"}
    expected = {"report.html", "report.md", "table.csv", *(f"{name}.csv" for name in figures)}
    assert names == expected | {f"figures/{name}.png" for name in figures}
    assert (folder / "figures/figure2.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "report.md").read_text()
    assert "![Figure 2" in text
    assert "| breast_cancer 50 pairs |" in text


def test_same_results_same_files(small_run, tmp_path):
    report, page = small_run
    assert write_report(report, tmp_path).read_bytes() == page.read_bytes()


def test_papers_numbers_stand_beside_ours(paper_run):
    report, page = paper_run
    assert len(report.rows) == 20
    for row in report.rows:
        for method, entry in row.entries.items():
            if entry.paper_accuracy is not None:
                assert entry.difference == pytest.approx(5), method
    text = page.read_text()
    assert re.search(r"66\.9.*?\(1\.0\).*?61\.9 <span class=\"far\">\+5\.0</span>", text)
    assert "quadratic program printed in the paper&#x27;s appendix B" in text


def test_agreement_with_the_paper(paper_run):
    found = agreement(paper_run[0].rows)
    assert [a.cells for a in found] == [20] * 10
    assert all(a.bias == pytest.approx(5) and a.distance == pytest.approx(5) for a in found)
    assert all(a.over_2 == a.over_4 == 20 for a in found)
    assert len(far_cells(paper_run[0].rows)) == 200


def test_as_printed_stands_beside_the_papers_double_hinge(tmp_path):
    """Two columns of ours against one of the paper, each with its own distance, and neither bold nor new."""
    results = Results(tmp_path, TABLE)
    results.open({})
    double_hinge = [line for line in as_measured(-6) if line["method"].endswith("double_hinge")]
    closer = [
        {**line, "method": line["method"].replace("double_hinge", "printed"), "accuracy": line["accuracy"] + 0.09}
        for line in double_hinge
    ]
    results.append([*double_hinge, *closer])
    report = build_report(tmp_path, [TABLE.with_changes(trials=2)])
    found = {a.method: (a.cells, round(a.bias, 6), round(a.distance, 6)) for a in agreement(report.rows)}
    risks = ("sdsu", "sddu", "sudu")
    assert found == {
        **{f"{risk}-double_hinge": (20, -6.0, 6.0) for risk in risks},
        **{f"{risk}-printed": (20, 3.0, 3.0) for risk in risks},
    }
    assert len(far_cells(report.rows)) == 60
    entries = [row.entries[f"{risk}-printed"] for row in report.rows for risk in risks]
    assert not any(entry.bold or entry.better for entry in entries)
    write_report(report, tmp_path / "out")
    markdown, page = ((tmp_path / "out" / name).read_text() for name in ("report.md", "report.html"))
    assert all("penalty 1, and the bias" in text for text in (markdown, page))
    assert "| SDDU double hinge | 20 | -6.0 | 6.0 | 20 | 20 |" in markdown
    assert "| SDDU double hinge as printed | 20 | +3.0 | 3.0 | 20 | 0 |" in markdown
    assert "<td>+3.0</td>" in page
    claims = {claim.name: claim for claim in report.claims}
    labels = [c.label for c in claims["SDDU is the best mixture"].comparisons]
    assert "SDDU double hinge as printed against SDSU double hinge as printed (table)" in labels


def test_csv_has_the_difference(paper_run):
    lines = list(csv.DictReader((paper_run[1].parent / "table.csv").read_text().splitlines()))
    assert len(lines) == 200
    assert {line["difference"] for line in lines} == {"+5.00"}
    assert {line["trials"] for line in lines} == {"2"}


def test_other_sizes_are_not_set_beside_the_paper(small_run):
    assert all(entry.paper_accuracy is None for row in small_run[0].rows for entry in row.entries.values())


def test_without_an_answer_is_a_gap_not_a_number(small_run):
    lines = list(csv.DictReader((small_run[1].parent / "priors.csv").read_text().splitlines()))
    balanced = {line["method"]: line for line in lines if line["prior"] == "0.5"}
    assert (balanced["sd-squared"]["accuracy"], balanced["sd-squared"]["failed"]) == ("", "2")
    assert float(balanced["supervised"]["accuracy"]) > 80
