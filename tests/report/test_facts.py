"""One list of facts: every code has a sentence, every number that is shown is in the details, and all show the same."""

import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, TableModel
from sdulearn.answers import read_answers
from sdulearn.answers.answer_model import Rate
from sdulearn.cli.options import OPTIONS, in_options
from sdulearn.columns import Column, Columns
from sdulearn.diagnostics import Finding
from sdulearn.io.typed import plain
from sdulearn.metrics import AnswerCounts, ClassAgreement, Share
from sdulearn.report import facts as module
from sdulearn.report.facts import CHARTS, as_data, facts, facts_of_answers, lines, sentence
from sdulearn.report.page import sections, whole_page
from sdulearn.report.records import AnnotatorReport, ColumnDependence, ColumnImportance, ModelChoice
from sdulearn.spelling import Spelling

COLUMNS = (
    *(Column(f"x{k}", "number") for k in range(17)),
    Column("price", "number", text=Spelling(",", ("?", "n/a"))),
    Column("member", "boolean"),
    Column("city", "category", ("Köln", "Łódź")),
)


@pytest.fixture(scope="module")
def fitted(waveform):
    return PairLogisticRegressionCV().fit(*waveform)


@pytest.fixture(scope="module")
def table_model(fitted, fit_report):
    report = replace(
        fit_report,
        importances=(ColumnImportance("price", 0.123, 0.01), ColumnImportance("<b>", -0.02, 0.03)),
        dependences=(
            ColumnDependence("price", (1.5, 2.5, 9.0), (0.1, 0.3, 0.8)),
            ColumnDependence("city", tuple(f"c{k}" for k in range(10)), tuple(k / 10 for k in range(10))),
        ),
    )
    sure = np.linspace(0.51, 0.99, 60)
    asked = [f"<{k}>" for k in range(60)], np.column_stack([sure, 1 - sure]), np.arange(1, 61)
    return TableModel(fitted, Columns.unscaled(COLUMNS, "id"), ("no", "yes"), report, asked)


@pytest.fixture(scope="module")
def many_classes(table_model):
    """The same with three classes, of which only answers are known."""
    counts = AnswerCounts((1, 2, 3), ((9.0, 1.0, 0.0), (1.0, 8.0, 2.0), (0.0, 2.0, 7.0)),
                          ((1.0, 20.0, 0.0), (20.0, 2.0, 11.0), (0.0, 11.0, 3.0)))  # fmt: skip
    found = ClassAgreement(Share(0.91, 0.85, 0.95, 77), Share(0.8, 0.7, 0.9, 30), Share(0.95, 0.9, 0.99, 47),
                           None, None, 0.95, counts)  # fmt: skip
    report = replace(table_model.report, accuracy=None, prior=None, agreement=found, class_shares=(0.5, 0.3, 0.2),
                     n_classes_interval=(3, 4), dependences=(), n_labels=20, n_labels_right=19)  # fmt: skip
    estimator = PairLogisticRegression()
    estimator.coef_ = np.arange(63.0).reshape(3, 21)
    estimator.prior_ = None
    estimator.classes_ = np.array([1, 2, 3])
    estimator.answer_model_ = table_model.estimator.answer_model_
    return replace(table_model, estimator=estimator, classes=("a", "b", "c"), report=report, asked=None)


def page(model):
    """The report page as text."""
    return whole_page("<m>", sections(facts(model)).values())


def by_code(found):
    return {fact.code: fact for fact in found}


def changed(model, **change):
    return replace(model, report=replace(model.report, **change))


def said(model, code, **change):
    """What a model says under a code where its report is another one; None where it says nothing."""
    found = by_code(facts(changed(model, **change)))
    return sentence(found[code]) if code in found else None


def numbers(text):
    """The numbers of a sentence, as digits without commas, in per cent or not."""
    return {float(one.replace(",", "").rstrip(".")) for one in re.findall(r"(?<![\w.])\d[\d,]*\.?\d*", text)}


def numbers_in(data):
    if isinstance(data, dict):
        return set().union(*map(numbers_in, [*data.keys(), *data.values()]), {len(data)})
    if isinstance(data, list):
        return set().union(*map(numbers_in, data), {len(data)})
    if isinstance(data, str):
        return numbers(data)
    return {float(data)} if isinstance(data, int | float) else set()


def test_facts_come_in_the_order_to_be_read(table_model, many_classes):
    results = [fact.code for fact in facts(table_model)]
    assert results == [
        "learned", "headline", "next", "fit_warning", "other_population", "majority", "agreement_of_two", "prior",
        "class_shares", "annotators", "model_kind", "answers_used", "understood", "table_read", "columns_read",
        "settings", "answered", "doubtful", "strengths", "importances", "dependence", "dependence",
    ]  # fmt: skip
    assert [fact.code for fact in facts(many_classes) if fact.severity == "result"] == [
        "learned", "headline", "next", "class_shares", "annotators", "labels_used", "model_kind", "answers_used",
        "understood", "table_read", "columns_read", "settings", "answer_counts", "doubtful", "strengths", "importances",
    ]  # fmt: skip
    noted = (Finding("repeated_questions", "info", {"count": 2}), *table_model.report.findings)
    found = facts(changed(table_model, findings=noted))
    assert [fact.severity for fact in found[2:7]] == ["result", "warning", "warning", "info", "result"]


def test_every_number_that_is_shown_is_in_the_details(table_model, many_classes):
    allowed = {95.0, 1.0, 2.0}
    for fact in (*facts(table_model), *facts(many_classes)):
        there = numbers_in(plain(fact.details)) | allowed
        if fact.code == "answers_used":
            there.add(60.0)  # similar and dissimilar together
        shown = numbers(sentence(fact))
        rounded = {round(abs(scale * value), digits) for value in there for scale in (1, 100) for digits in range(6)}
        differences = {round(abs(a - b), 3) for a in there for b in there}
        assert shown <= rounded | differences, (fact.code, shown - rounded)


def test_the_page_and_the_summary_hold_every_sentence(table_model, many_classes):
    for model in (table_model, many_classes):
        text = page(model)
        assert not re.search(r"(src|href)=|<script|@import|url\(|<b>", text)
        escaped = text.replace("&#x27;", "'").replace("&quot;", '"').replace("<code>", "`").replace("</code>", "`")
        for fact in facts(model):
            assert sentence(fact).replace("<", "&lt;").replace(">", "&gt;") in escaped
        opening, rest = lines(facts(model))[:3], lines(facts(model))[3:]
        assert model.summary().split("\n") == [*opening, *(f"  {line}" for line in rest)]
        assert repr(model) == "TableModel: " + "\n".join(opening)
        assert all(escape(line.partition("`")[0]) in model._repr_html_() for line in opening)
        assert not any(sentence(fact) in model.summary() for fact in facts(model) if fact.code in CHARTS)
        assert f"{by_code(facts(model))['headline'].details['value']:.1%} (95% interval" in model._repr_html_()


def test_charts_show_the_numbers(table_model, many_classes):
    text = page(table_model)
    for part in (
        "margin:0\">90.0%</p>", "left:60.0%;width:30.0%", "left:80.0%",
        "<td>no</td><td class='number'>30.0%</td>", "width:70.0%",
        "<td>Ann</td><td>60</td><td>10.0%</td><td>5.0% to 20.0%</td>",
        "<td>r1</td><td>r2</td><td>same</td><td>Ann</td><td>60.0%</td>",
        "<td>&lt;0&gt;</td><td>no</td><td>51.0%</td><td>1</td>", "<td>&lt;49&gt;</td>",
        "And 10 more: <code>sdulearn fit --answered FILE</code>",
        "12.3 ± 2.0", "-2.0 ± 6.0", "M36.0,119.6 L72.8,94.8 L312.0,32.8", "<td>c9</td><td class='number'>90%</td>",
        "and 2 below 10%", "<title>&lt;m&gt;</title>", "+ speaks for yes",
    ):  # fmt: skip
        assert part in text, part
    for part in (  # bars from zero to the loss, two standard errors either way; lines of the curve at 0, 50 and 100%
        '<span class="bar up" style="left:35.9%;width:55.2%"></span><i style="left:82.1%;width:17.9%">',
        '<span class="bar down" style="left:26.9%;width:9.0%"></span><i style="left:0.0%;width:53.8%">',
        'y1="132" y2="132"/><text x="32" y="136" text-anchor="end">0%<', 'y1="70" y2="70"/><text x="32" y="74"',
        'y1="8" y2="8"/><text x="32" y="12" text-anchor="end">100%<',
    ):  # fmt: skip
        assert part in text, part
    assert "&lt;50&gt;" not in text
    assert "60 rows were asked about. By features and answers together, the mean probability of their" in text
    assert "classes is 75.0%. See" in text
    text = page(changed(table_model, accuracy=replace(table_model.report.accuracy, low=0.4)))
    assert "left:40.0%;width:55.0%" in text
    assert "<span>0%</span>" in text
    text = page(many_classes)
    for part in (
        "margin:0\">91.0%</p>", "9 / 1</td>", "<td></td>", "7 / 3</td>", "var(--up) 35%",
        "<td>x16</td><td class='number'>+16</td>", "+ speaks for c", "<td>city=Łódź</td><td class='number'>+62</td>",
    ):  # fmt: skip
        assert part in text, part
    assert "9 / 1</td><td" not in text  # the half below the diagonal


def test_a_model_without_findings_and_a_report_of_a_file(table_model, tmp_path):
    model = changed(table_model, findings=())
    model.write_report(tmp_path / "r.html", model_path="model.sdu")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Nothing in the data disagrees" in text
    assert "<summary><h2>To look at (nothing)</h2></summary>" in text
    shown, _, folded = page(table_model).partition("<details>")
    assert shown.count('class="warning"') == 2
    assert "<h2>To look at (2)</h2>" in shown
    assert "<h2>Strongest features</h2>" in folded
    assert "<h1>model.sdu</h1>" in text
    assert "sdulearn predict model.sdu TABLE" in text
    model.write_report(tmp_path / "r.html")
    assert "<h1>r.html</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_headline_says_what_it_is_based_on(table_model, many_classes):
    accuracy = table_model.report.accuracy
    for change, words in (
        ({}, "90.0% (95% interval 80.0% to 95.0%), by 60 held-out answers."),
        ({"basis": "random questions"}, "90.0% (95% interval 80.0% to 95.0%), by 60 random questions."),
        ({"basis": "random questions", "n_answers": 9}, "unknown by 9 random questions. It takes 10; ask more."),
        ({"n_answers": 0}, "unknown. No question"),
    ):
        text = said(table_model, "headline", accuracy=replace(accuracy, **change))
        assert text.startswith(f"Estimated accuracy: {words}")
    agrees = "The model agrees with 82.0% of the held-out answers."
    assert said(table_model, "agreement_of_two") == agrees
    unknown = AnnotatorReport("", 0.02, 0.0, 0.5, False, 60)
    assert "2.0% are assumed to be" in said(
        table_model, "agreement_of_two", annotators=(unknown,), error_rate=Rate(0.02, 0.0, 0.5, 60)
    )
    agreement = many_classes.report.agreement
    assert said(many_classes, "headline") == (
        'Agreement with held-out answers: 91.0% (95% interval 85.0% to 95.0%); 80.0% of "same" and 95.0% of '
        '"different" answers; the accuracy of more than two classes is unknown without `labels`.'
    )
    for basis, words in (("labels", "labelled rows"), ("groups", "slightly too high"), ("random questions", "follow")):
        known = replace(agreement, accuracy=Share(0.7, 0.6, 0.8, 12.4), basis=basis)
        text = said(many_classes, "headline", agreement=known)
        assert text.startswith("Estimated accuracy: 70.0% (95% interval 60.0% to 80.0%), by ")
        assert words in text
        assert "effective number of rows: 12" in text
        assert said(many_classes, "agreement", agreement=known).startswith("Agreement with held-out answers: 91.0%")
    none = replace(agreement, agreement=Share(np.nan, 0.0, 1.0, 0))
    assert "unknown" in said(many_classes, "headline", agreement=none)


def test_it_begins_with_what_was_learned_and_what_to_do(table_model, many_classes):
    def opening(model=table_model, **change):
        return said(model, "learned", **change), said(model, "next", **change)

    learned, then = opening()
    assert learned == "Learned 2 classes with a linear model from 60 answers (p.csv) and 1,000 rows (t.csv)."
    assert then == "Next: look at 2 warnings below, then predict the classes of other rows (`predict`)."
    learned, then = opening(findings=(), n_labels=1, table="the table", model_choice=ModelChoice("boosted"))
    assert learned == "Learned 2 classes (no, yes) with boosted trees from 60 answers (p.csv), 1 label and 1,000 rows."
    assert then == "Next: predict the classes of other rows (`predict`), or ask more: the interval is wide."
    narrow = replace(table_model.report.accuracy, low=0.88)
    assert (
        opening(findings=(), n_labels=1, accuracy=narrow)[1] == "Next: predict the classes of other rows (`predict`)."
    )
    named = Finding("names_uncertain", "warning", {})
    assert opening(findings=(named,))[1].startswith(
        "Next: name the classes by a few labelled rows (`labels`), and predict"
    )
    useless = Finding("no_better_than_guessing", "warning", {"low": 0.4})
    assert opening(findings=(useless,))[1].startswith("Next: ask about more pairs, or look for features")
    unknown = replace(table_model.report.accuracy, n_answers=0)
    assert opening(accuracy=unknown)[1].startswith("Next: ask about random rows too")
    assert opening(many_classes)[0].startswith("Learned 3 classes (a, b, c) with a linear model from 60 answers")


def test_a_report_prints_as_its_model_does(table_model, many_classes):
    for model in (table_model, many_classes):
        report = replace(model.report, classes=model.classes)
        printed = str(report).split("\n")
        assert printed == model.summary().split("\n")[: len(printed)]
        assert printed[-1].startswith("  Columns of the answers")
    assert repr(replace(table_model, report=None)) == "TableModel(PairLogisticRegressionCV, 21 features, ('no', 'yes'))"


def test_annotators_are_named_where_there_is_something_to_say(table_model):
    def told(*annotators):
        return said(table_model, "annotators", annotators=annotators)

    sure = AnnotatorReport("Ann", 0.1, 0.05, 0.2, True, 60)
    assert told(sure) == "Wrong answers by annotator: Ann, 10.0% of 60 (95% interval 5.0% to 20.0%)."
    assert told(AnnotatorReport("", 0.0, 0.0, 0.1, True, 60)) is None
    assert told() is None
    unknown = AnnotatorReport("Bob", 0.02, 0.0, 0.5, False, 7)
    assert told(sure, unknown).endswith("; Bob, unknown for 7 answers, as few of them can be compared (2.0% assumed).")
    assert told(AnnotatorReport("", 0.02, 0.02, 0.02, True, 9)) == "Wrong answers by annotator: 2.0% of 9."
    assert "close to" not in told(AnnotatorReport("", 0.02, 0.0, 0.06, True, 9))
    many = [AnnotatorReport(f"w{k}", k / 100, 0.0, 0.2, True, 60) for k in range(9)]
    assert re.match(r"Error rate: .*\. Of 9 people, most often wrong: w8, 8.0% of 60 .*; w7.*; w6", told(*many))
    assert "w5" not in told(*many)


def test_files_of_answers(tmp_path):
    bad = "".join(f"a{k},b{k},perhaps\n" for k in range(6))
    (tmp_path / "p.csv").write_text("id_a,id_b,label\na,b,1\nc,d,0\n" + bad)
    found = facts_of_answers(read_answers(tmp_path / "p.csv"))
    assert sentence(found[0]).endswith("p.csv, read as csv: 1 similar, 1 dissimilar, 0 unsure.")
    assert sentence(found[1]).endswith("Labels: '1' = similar (1), '0' = dissimilar (1).")
    title, first, *_, more = lines(found[2:], 5)
    assert title.startswith("warning: Unreadable rows: 6. Correct these lines")
    assert first.startswith("  line 4: ")
    assert more == "  ... and 1 more (sdulearn check --show 6)"
    details = {**found[0].details, "n_unanswered": 2, "epsilon": 1.0, "flip_rate": 0.269}
    assert sentence(replace(found[0], details=details)).endswith(
        "2 questions have no answer yet. Answers were flipped with probability 26.9% (epsilon 1)."
    )


PRIOR = {"name": "a", "value": 0.7, "low": 0.6, "high": 0.8, "identified": True, "confidence": 0.95}
SHARES = {"n_classes": 3, "shares": {"a": 0.5, "b": 0.3, "c": 0.2}}
KIND = {"name": "boosted", "scores": {"linear": -0.4, "boosted": -0.5}}
COUNTS = {"n_similar": 40, "n_dissimilar": 60, "level": 0.01}
CROWD = {"value": 0.258, "low": 0.24, "high": 0.275, "n_classes": 5, "n_people": 300,
         "answers_each": [3.0, 30.0, 1200.0], "identified": True}  # fmt: skip
SHARED = {"share": 0.4, "n_points": 30, "level": 0.01}
SAMPLES = [
    (
        "pairs_by_features",
        {"features": ["age"], "correlations": [0.98], "n_answers": 9, "level": 0.001},
        "The two rows of an answer resemble each other",
    ),
    ("majority", {"majority": 0.7, "beaten": True}, r"right 70\.0% .*; the model is better\.$"),
    ("majority", {"majority": 0.7, "beaten": False}, "is not shown to be better"),
    ("prior", {**PRIOR, "confidence": None}, r"^Prior: 0\.7 of the rows are of class a, as given\.$"),
    ("prior", {**PRIOR, "n_answers": 60}, r"^Prior: 0\.700 .*\(95% interval 0\.600 to 0\.800, from 60 answers\)\.$"),
    ("prior", {**PRIOR, "n_answers": None, "identified": False}, r"the answers\)\. The interval includes 1/2\.$"),
    ("prior", {**PRIOR, "n_answers": 0}, r"^Prior: unknown\. No question"),
    ("class_shares", {**SHARES, "interval": None}, r"^3 classes; mean .* rows: a 50\.0%, b 30\.0%, c 20\.0%\.$"),
    ("class_shares", {**SHARES, "interval": (3, 3)}, "^3 classes, a number chosen .*, which allow no other number;"),
    ("class_shares", {"n_classes": 3, "shares": {}, "interval": (3, 4)}, r"which allow 3 to 4\.$"),
    ("model_kind", {**KIND, "gap_error": 0.02}, r"boosted, chosen by .*linear -0\.400, boosted -0\.500 "
     r"\(difference -0\.100, standard error 0\.020\)\.$"),
    ("model_kind", {**KIND, "gap_error": None}, "^Model: boosted; held-out"),
    ("settings", {"method": "su", "loss": "double_hinge", "settings": {"alpha": 0.25}, "estimator": "E"},
     r"^Method: risk su, loss double_hinge \(E\): alpha 0\.25\.$"),
    ("labels_used", {"classes": ["a", "b", "c"], "n_labels": 20, "n_right": 19}, "^The model predicts 19 of the 20"),
    ("too_few_similar", COUNTS, "40 of 100 pairs are similar, but with two.*Give `classes='auto'`.*the `prior`"),
    ("too_few_similar", SHARED, "among the 30 points in answers.*40% are similar, but with two.*`classes='auto'`"),
    ("ratio_against_prior", {**COUNTS, "prior": 0.7, "expected_share": 0.58}, "prior 0.7 about 58% of random pairs"),
    ("ratio_against_prior", {**SHARED, "prior": 0.7, "expected_share": 0.58}, "among the 30 points.*about 58%"),
    ("contradictions", {"both_ways": 2, "closure": 0, "odd_cycles": 1}, "2 questions.*, 1 group.*`check_answers`"),
    ("contradictions", {"both_ways": 0, "closure": 3, "odd_cycles": 0}, r"answers: 3 dissimilar.*similar\. List"),
    ("contradictions", {"both_ways": 1, "closure": 3, "odd_cycles": 0, "items": ["x"]}, r"\. At least .* again\.$"),
    ("contradictions", {"both_ways": 9, "closure": 2, "odd_cycles": 0, "items": ["x"]},
     r"similar\. These are too many .*one by one: let more people answer .* Start with these, .*:$"),
    ("crowd", CROWD, r"^Error rate: 25.8% \(95% interval 24.0% to 27.5%\)\. By the answers alone, with 5 "
     r"classes\. 300 people gave 3 to 1,200 answers each \(median 30\)\.$"),
    ("crowd", {**CROWD, "identified": False, "n_people": 1, "value": 0.02}, "unknown.* 2.0% is assumed"),
    ("people", {"count": 0, "people": [{}] * 7}, "^None of the 7 people stands out"),
    ("people", {"count": 2, "people": [{}] * 7}, "^Doubtful people: 2 of 7.*`exclude_annotators`"),
    ("disputed", {"count": 3, "level": 0.01}, r"level 0.01 over all questions\): 3\."),
    ("listed", {"title": "Odd rows", "count": 1234, "remedy": "Go."}, r"^Odd rows: 1,234\. Go\.$"),
    ("left_out", {"what": "self_pairs", "count": 7, "lines": [3, 5]}, r"7 pairs of a point.*\(lines 3, 5, \.\.\.\)"),
    ("left_out", {"what": "unknown_ids", "count": 2, "lines": [3, 5]}, r"\(lines 3, 5\)"),
    ("passed_over", {"above": 2, "sheet": "Data", "n_blank": 1, "columns": ["Unnamed: 0"]},
     "sheets other than 'Data'; 2 lines above the header; 1 blank row; columns that .*, 'Unnamed: 0'"),
    ("repeated_questions", {"count": 3}, "3 repeated questions, each counted once"),
    ("repeated_questions", {"count": 3, "by_majority": False}, "of which every answer counts"),
    ("few_random", {"n_random": 0, "n_answers": 9}, "^0 of the 9 answers"),
    ("shared_points", {"n_answers": 9, "n_points": 8, "n_components": 1, "n_independent": 7, "n_cut": 0, "n_splits": 5},
     r"9 answers share 8 points, in 1 connected group\. .*7 of the 9 are independent.*for this\.$"),
    ("shared_points", {"n_answers": 9, "n_points": 8, "n_components": 2, "n_independent": 9, "n_cut": 4, "n_splits": 5},
     "2 connected groups.*all are independent.*4 connect points of two of the 5 folds"),
    ("hubs", {"n_hubs": 1, "n_answers": 32, "n_answers_of_each": [30], "points": ["hub"]}, r"^1 point is.*\(hub: 30\)"),
    ("hubs", {"n_hubs": 3, "n_answers": 32, "n_answers_of_each": [9, 8], "points": [1, 2]},
     r"^3 points are.*\(9, 8, \.\.\.\)"),
    ("hubs", {"n_hubs": 1, "n_answers": 32, "n_answers_of_each": [24]}, r"^1 point is in many of the 32 .*\(24\)"),
    ("linear_alone", {"reason": "answers", "limit": 50}, "fewer than 50 answers"),
    ("doubtful", {"least": 0.01, "answers": []}, "each is right with 99% or more"),
    ("columns_read", {"number": list("abcdefghijk"), "category": {"city": 2}, "decimal_commas": ["a"], "gaps": {},
                      "marks": {"a": ["?"]}},
     r"numbers: a, b, .* h, \.\.\. \(11 in all\); categories, .*: city \(2\); decimal .*; read as missing: a '\?'\.$"),
    ("labels_used", {"classes": ["a", "b"], "n_labels": 4, "n_right": 3}, "^a is -1, b is .1; the model predicts 3"),
    ("settings", {"method": "joint", "start": "kernel", "settings": {"n_rounds": 0.0}, "estimator": "E", "loss": ""},
     r"boosted trees \(none kept\) on a kernel map \(E\): n_rounds 0"),
    ("crowd", {**CROWD, "value": 0.0, "low": 0.0, "high": 0.1}, r"^Error rate: 0.0% \(95% .* 10.0%\)\. 300"),
    ("annotators_excluded",
     {"names": ["Bob"], "n_answers": 80, "before": (0.81, 0.2), "after": (0.9, 0.0)},
     "80 answers of Bob. Accuracy.*: 81.0% with them, 90.0% without; wrong answers: 20.0% with them, 0.0% without"),
    ("classes_found", {"n_ids": 9, "n_classes": 2, "sizes": {"1": 5, "2": 3}, "n_open": 1, "probability": 0.9},
     r"2 classes of 9 connected ids \(1: 5, 2: 3\); mean probability 90.0%\. 1 id has no class"),
]  # fmt: skip
PLAIN = {
    "audit": {"name": "judge", "n": 60, "n_wrong": 7, "value": 0.12, "low": 0.05, "high": 0.22},
    "entities": {"n_groups": 200, "median_size": 2.0, "share_large": 0.4},
    "many_classes": {"n_similar": 3, "n_answers": 400, "n_classes": 50, "level": 0.01},
    "chosen_questions": {"n_chosen": 3, "n_answers": 40},
    "flipped_answers": {"epsilon": 1.0, "flip_rate": 0.27},
    "tied_questions": {"count": 4},
    "table_grew": {"before": 100, "now": 120},
    "asked_rows_changed": {"count": 1, "n_asked": 50, "items": ["7"]},
    "unconnected_parts": {"n_ids": 4, "n_parts": 2},
    "answer_table": {},
    "no_better_than_guessing": {"low": 0.4},
    "no_better_than_majority": {"low": 0.4, "majority": 0.7},
    "prior_not_identified": {"low": 0.4, "high": 0.6},
    "names_uncertain": {},
    "prior_of_other_class": {"prior": 0.3},
    "labels_disagree": {"n_right": 3, "n_labels": 20},
    "fit_warning": {"message": "look out"},
}


@pytest.mark.parametrize(("code", "details", "words"), SAMPLES)
def test_sentences_that_have_forms(code, details, words):
    assert re.search(words, sentence(Finding(code, "info", details)))


def test_every_code_has_a_sentence_and_names_parameters_that_have_options(table_model, many_classes):
    samples = [Finding(code, "info", details) for code, details, _ in SAMPLES]
    samples += [Finding(code, "info", details) for code, details in PLAIN.items()]
    samples += [*facts(table_model), *facts(many_classes)]
    known = {fact.code for fact in samples}
    assert set(module._SENTENCES) - known == {"answers_read", "agreement"}
    for fact in samples:
        text = sentence(fact)
        assert not text.startswith(fact.code)
        assert not re.search(r"--\w|\{|\}", text)
        for name in re.findall(r"`(\w+)", text):
            assert name in OPTIONS
        assert "`" not in in_options(text)


def test_what_is_unknown_or_malformed_is_shown_as_it_is():
    assert sentence(Finding("unheard_of", "info", {"a": 1})) == "unheard_of: {'a': 1}"
    for details in (
        {},
        {"features": 7},
        {"features": ["a"], "standard_scores": []},
        {"features": [1], "n_features": {}},
    ):
        assert sentence(Finding("other_population", "info", details)).startswith("other_population: {")
    assert lines([Finding("tied_questions", severity, {"count": 1}) for severity in ("info", "warning", "error")]) == [
        f"{mark}Left out: 1 questions answered both ways equally often." for mark in ("note: ", "warning: ", "error: ")
    ]
    assert as_data([Finding("x", "info", {})]) == [{"code": "x", "severity": "info", "details": {}, "text": "x: {}"}]
