"""One list of facts: every code has a sentence, every number that is shown is in the details, and all show the same."""

import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, TableModel
from sdulearn.answers.answer_model import Rate
from sdulearn.cli.options import OPTIONS, in_options
from sdulearn.columns import Column
from sdulearn.diagnostics import Finding
from sdulearn.io.typed import plain
from sdulearn.metrics import AnswerCounts, ClassAgreement, Share
from sdulearn.report import facts as module
from sdulearn.report.facts import CHARTS, as_data, facts, lines, sentence
from sdulearn.report.page import sections, whole_page
from sdulearn.report.records import AnnotatorReport, ColumnDependence, ColumnImportance
from sdulearn.spelling import Spelling
from tests.reference import unscaled

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
    return TableModel(fitted, unscaled(COLUMNS, "id"), ("no", "yes"), report, asked)


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


def details(model, code, **change):
    """The details of a code where the report is another one; None if it is not among the facts."""
    found = by_code(facts(changed(model, **change)))
    return found[code].details if code in found else None


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
        "left:60.0%;width:30.0%", "<td>no</td><td class='number'>30.0%</td>", "width:70.0%",
        "<td>Ann</td><td>60</td><td>10.0%</td><td>5.0% to 20.0%</td>",
        "<td>r1</td><td>r2</td><td>same</td><td>Ann</td><td>60.0%</td>",
        "<td>&lt;0&gt;</td><td>no</td><td>51.0%</td><td>1</td>", "<td>&lt;49&gt;</td>", "And 10 more:",
        "12.3 ± 2.0", "-2.0 ± 6.0", "M36.0,119.6 L72.8,94.8 L312.0,32.8", "<td>c9</td><td class='number'>90%</td>",
        "and 2 below 10%", "<title>&lt;m&gt;</title>", "+ speaks for yes",
        # Bars from zero to the loss, two standard errors either way.
        '<span class="bar down" style="left:26.9%;width:9.0%"></span><i style="left:0.0%;width:53.8%">',
    ):  # fmt: skip
        assert part in text, part
    assert "&lt;50&gt;" not in text
    low = page(changed(table_model, accuracy=replace(table_model.report.accuracy, low=0.4)))
    assert "left:40.0%;width:55.0%" in low
    text = page(many_classes)
    for part in (
        "9 / 1</td>", "7 / 3</td>", "var(--up) 35%", "<td>x16</td><td class='number'>+16</td>", "+ speaks for c",
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


def test_the_headline_is_the_accuracy_or_the_agreement_and_says_where_neither_is_known(table_model, many_classes):
    accuracy = table_model.report.accuracy
    for change, unknown in (
        ({}, False),
        ({"basis": "random questions"}, False),
        ({"basis": "random questions", "n_answers": 9}, True),
        ({"n_answers": 0}, True),
    ):
        found = details(table_model, "headline", accuracy=replace(accuracy, **change))
        assert (found["measure"], found["value"], found["unknown"]) == ("accuracy", 0.9, unknown)
    assert details(table_model, "agreement_of_two") == {"value": 0.82, "assumed": None}
    guessed = {"annotators": (AnnotatorReport("", 0.02, 0.0, 0.5, False, 60),), "error_rate": Rate(0.02, 0.0, 0.5, 60)}
    assert details(table_model, "agreement_of_two", **guessed)["assumed"] == 0.02
    agreement = many_classes.report.agreement
    assert details(many_classes, "headline")["measure"] == "agreement"
    known = replace(agreement, accuracy=Share(0.7, 0.6, 0.8, 12.4), basis="labels")
    found = details(many_classes, "headline", agreement=known)
    assert (found["measure"], found["value"], found["n"], found["basis"]) == ("accuracy", 0.7, 12.4, "labels")
    assert details(many_classes, "agreement", agreement=known)["value"] == 0.91
    none = replace(agreement, agreement=Share(np.nan, 0.0, 1.0, 0))
    assert details(many_classes, "headline", agreement=none)["unknown"]


def test_the_next_step_is_the_first_that_is_needed(table_model):
    accuracy = table_model.report.accuracy
    named = {"findings": (), "n_labels": 1}
    for change, step in (
        ({}, "look"),
        (named, "more"),
        ({**named, "accuracy": replace(accuracy, low=0.88)}, "predict"),
        ({"findings": (Finding("names_uncertain", "warning", {}),)}, "name"),
        ({"findings": (Finding("no_better_than_guessing", "warning", {"low": 0.4}),)}, "separate"),
        ({"accuracy": replace(accuracy, n_answers=0)}, "random"),
        ({"accuracy": replace(accuracy, basis="chosen pairs")}, "random"),
    ):
        assert details(table_model, "next", **change)["step"] == step
    # One annotator who is never wrong is not worth a sentence.
    assert details(table_model, "annotators", annotators=(AnnotatorReport("", 0.0, 0.0, 0.1, True, 60),)) is None


def test_a_report_prints_as_its_model_does(table_model, many_classes):
    for model in (table_model, many_classes):
        report = replace(model.report, classes=model.classes)
        printed = str(report).split("\n")
        assert printed == model.summary().split("\n")[: len(printed)]
        assert printed[-1].startswith("  Columns of the answers")
    assert repr(replace(table_model, report=None)) == "TableModel(PairLogisticRegressionCV, 21 features, ('no', 'yes'))"


READ = {"name": "p.csv", "format": "csv", "n_similar": 3, "n_dissimilar": 4, "n_unsure": 5, "n_unanswered": 0}
PERSON = AnnotatorReport("Ann", 0.1, 0.05, 0.2, True, 60)
RATE = {"value": 0.258, "low": 0.24, "high": 0.275, "identified": True}
LEARNED = {"kind": "linear", "n_classes": 2, "n_answers": 60, "classes": [], "answers": "p.csv", "table": "t.csv",
           "n_rows": 1000, "n_labels": 0}  # fmt: skip
NEXT = {"n_warnings": 3, "wide": True}
HEADLINE = {"value": 0.9, "low": 0.8, "high": 0.95, "confidence": 0.95, "n": 60, "unknown": False}
OF_ANSWERS = {**HEADLINE, "measure": "accuracy", "unit": "answers", "basis": "held-out answers"}
OF_ROWS = {**HEADLINE, "measure": "accuracy", "unit": "rows"}
PRIOR = {"name": "a", "value": 0.7, "low": 0.6, "high": 0.8, "identified": True, "confidence": 0.95, "n_answers": 60}
SHARES = {"n_classes": 3, "shares": {"a": 0.5, "b": 0.3, "c": 0.2}, "interval": None}
KIND = {"name": "boosted", "scores": {"linear": -0.4, "boosted": -0.5}, "gap_error": 0.02}
SETTINGS = {"method": "joint", "settings": {"alpha": 0.25}, "estimator": "E", "loss": "squared"}
COUNTS = {"n_similar": 40, "n_dissimilar": 60, "level": 0.01}
SHARED = {"share": 0.4, "n_points": 30, "level": 0.01}
ODD = {"both_ways": 2, "closure": 0, "odd_cycles": 1}
CROWD = {**RATE, "n_classes": 5, "n_people": 300, "answers_each": [3.0, 30.0, 1200.0]}
POINTS = {"n_answers": 9, "n_points": 8, "n_components": 1, "n_independent": 7, "n_cut": 0, "n_splits": 5}
HUBS = {"n_hubs": 1, "n_answers": 32, "n_answers_of_each": [30]}
COLUMNS_READ = {"number": list("abcdefghijk"), "category": {"city": 2}, "gaps": {}, "marks": {"a": ["?"]}}
# By code: details in all the forms that its sentence has.
SAMPLES = {
    "answers_read": [READ, {**READ, "n_unanswered": 2}, {**READ, "n_questions": 7},
                     {**READ, "epsilon": 1.0, "flip_rate": 0.269}],
    "learned": [LEARNED, {**LEARNED, "kind": "boosted"}, {**LEARNED, "n_labels": 1, "classes": ["no", "yes"]},
                {**LEARNED, "table": "the table"}],
    "next": [{**NEXT, "step": step} for step in ("random", "separate", "look", "name", "more", "predict")],
    "headline": [OF_ANSWERS, {**OF_ANSWERS, "n": 0}, {**OF_ANSWERS, "unknown": True}, {**OF_ANSWERS, "basis": "other"},
                 {**OF_ANSWERS, "basis": "chosen pairs"}, {**OF_ANSWERS, "measure": "agreement", "same": 0.8},
                 *({**OF_ROWS, "basis": basis} for basis in ("labels", "groups", "random questions", "crowd"))],
    "agreement": [{**HEADLINE, "same": 0.8, "different": 0.85}],
    "agreement_of_two": [{"value": 0.82, "assumed": None}, {"value": 0.82, "assumed": 0.02}],
    "majority": [{"majority": 0.7, "beaten": True}, {"majority": 0.7, "beaten": False}],
    "prior": [PRIOR, {**PRIOR, "confidence": None}, {**PRIOR, "n_answers": None}, {**PRIOR, "identified": False},
              {**PRIOR, "n_answers": 0}, {**PRIOR, "name": None}],
    "class_shares": [SHARES, {**SHARES, "interval": (3, 3)}, {**SHARES, "shares": {}, "interval": (3, 4)}],
    "model_kind": [KIND, {**KIND, "gap_error": None}],
    "settings": [SETTINGS, {**SETTINGS, "method": "su"}, {**SETTINGS, "settings": {}},
                 *({**SETTINGS, "start": "kernel", "settings": {"n_rounds": n}} for n in (0.0, 3.0)),
                 {**SETTINGS, "start": "linear", "settings": {"n_rounds": 3.0}}],
    "annotators": [*({"annotators": [replace(PERSON, **more)], **RATE}
                     for more in ({}, {"identified": False}, {"low": 0.2}, {"name": ""})),
                   *({"annotators": [PERSON] * 9, **RATE, "identified": known} for known in (True, False))],
    "labels_used": [{"classes": names, "n_labels": 20, "n_right": 19} for names in (["a", "b", "c"], ["a", "b"])],
    "doubtful": [{"least": 0.01, "answers": []}],
    "annotators_excluded": [{"names": ["Bob"], "n_answers": 80, "before": (0.81, 0.2), "after": (0.9, 0.0)}],
    "too_few_similar": [COUNTS, SHARED],
    "ratio_against_prior": [{**one, "prior": 0.7, "expected_share": 0.58} for one in (COUNTS, SHARED)],
    "balanced_answers": [COUNTS],
    "pairs_by_features": [{"features": ["age"], "correlations": [0.98], "n_answers": 9, "level": 0.001}],
    "contradictions": [ODD, {**ODD, "closure": 1}, {**ODD, "items": ["x"]}, {**ODD, "both_ways": 11, "items": ["x"]}],
    "crowd": [CROWD, {**CROWD, "identified": False, "n_people": 1, "value": 0.02}, {**CROWD, "value": 0.0},
              {**CROWD, "answers_each": [3.0, 3.0, 3.0]}],
    "people": [{"count": 0, "people": [{}] * 7}, {"count": 2, "people": [{}] * 7}],
    "disputed": [{"count": 3, "level": 0.01}],
    "listed": [{"title": "Odd rows", "count": 1234, "remedy": "Go."}],
    "left_out": [{"what": "self_pairs", "count": n, "lines": [3, 5]} for n in (7, 2)],
    "passed_over": [{"above": 2, "sheet": "Data", "n_blank": 1, "columns": ["a"]}, {"n_blank": 4, "columns": []}],
    "repeated_questions": [{"count": 3}, {"count": 3, "by_majority": False}],
    "few_random": [{"n_random": 0, "n_answers": 9}],
    "shared_points": [POINTS, {**POINTS, "n_independent": 9}, {**POINTS, "n_cut": 4}],
    "hubs": [HUBS, {**HUBS, "points": ["hub"]}, {**HUBS, "n_hubs": 3, "n_answers_of_each": [9, 8]}],
    "linear_alone": [{"reason": one, "limit": 50} for one in ("classes", "lightgbm", "answers", "features", "folds")],
    "columns_read": [COLUMNS_READ, {**COLUMNS_READ, "decimal_commas": ["a"]},
                     *({**COLUMNS_READ, "gaps": {"a": 4}, "gaps_kept": kept} for kept in (True, False))],
    "classes_found": [{"n_ids": 9, "n_classes": 2, "sizes": {"1": 5, "2": 3}, "n_open": n, "probability": 0.9}
                      for n in (0, 1)],
    "audit": [{"name": "judge", "n": 60, "n_wrong": 7, "value": 0.12, "low": 0.05, "high": 0.22}],
    "entities": [{"n_groups": 200, "median_size": 2.0, "n_apart": 5, "n_expected": 400}],
    "many_classes": [{"n_similar": 3, "n_answers": 400, "n_classes": 50, "level": 0.01}],
    "chosen_questions": [{"n_chosen": 3, "n_answers": 40}],
    "many_chosen": [{"n_chosen": 30, "n_rows": 40}],
    "flipped_answers": [{"epsilon": 1.0, "flip_rate": 0.27}],
    "tied_questions": [{"count": 4}],
    "table_grew": [{"before": 100, "now": 120}],
    "asked_rows_changed": [{"count": 1, "n_asked": 50, "items": ["7"]}],
    "unconnected_parts": [{"n_ids": 4, "n_parts": 2}, {"n_ids": 1, "n_parts": 1}],
    "answer_table": [{}],
    "no_better_than_guessing": [{"low": 0.4}],
    "no_better_than_majority": [{"low": 0.4, "majority": 0.7}],
    "prior_not_identified": [{"low": 0.4, "high": 0.6}],
    "names_uncertain": [{}],
    "prior_of_other_class": [{"prior": 0.3}],
    "labels_disagree": [{"n_right": 3, "n_labels": 20}],
    "fit_warning": [{"message": "look out"}],
}  # fmt: skip


def test_every_code_has_a_sentence_for_each_form_of_its_details():
    """No two forms are said alike."""
    for code, forms in SAMPLES.items():
        said = [sentence(Finding(code, "info", form)) for form in forms]
        assert len(set(said)) == len(forms), code
        assert not any(text.startswith(f"{code}: ") for text in said), code


def test_sentences_name_parameters_that_have_options_and_numbers_that_are_in_the_details(table_model, many_classes):
    samples = [Finding(code, "info", form) for code, forms in SAMPLES.items() for form in forms]
    samples += [*facts(table_model), *facts(many_classes)]
    assert {fact.code for fact in samples} == set(module._SENTENCES)
    for fact in samples:
        text = sentence(fact)
        assert not re.search(r"--\w|\{|\}", text)
        assert all(name in OPTIONS for name in re.findall(r"`(\w+)", text))
        assert "`" not in in_options(text)
        there = {abs(value) for value in numbers_in(plain(fact.details))} | {95.0, 1.0, 2.0}
        there |= {a + b for a in there for b in there} | {abs(a - b) for a in there for b in there}
        rounded = {round(scale * value, digits) for value in there for scale in (1, 100) for digits in range(6)}
        # How many random questions are enough, and how large groups are that no entities have.
        assert numbers(text) <= rounded | {10.0, 6.0}, (fact.code, numbers(text) - rounded)


def test_what_is_unknown_or_malformed_is_shown_as_it_is():
    assert sentence(Finding("unheard_of", "info", {"a": 1})) == "unheard_of: {'a': 1}"
    malformed = ({}, {"features": 7}, {"features": ["a"], "standard_scores": []}, {"features": [1], "n_features": {}})
    for details in malformed:
        assert sentence(Finding("other_population", "info", details)).startswith("other_population: {")
    assert lines([Finding("tied_questions", severity, {"count": 1}) for severity in ("info", "warning", "error")]) == [
        f"{mark}Left out: 1 questions answered both ways equally often." for mark in ("note: ", "warning: ", "error: ")
    ]
    assert as_data([Finding("x", "info", {})]) == [{"code": "x", "severity": "info", "details": {}, "text": "x: {}"}]
