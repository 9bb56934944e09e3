"""The findings of a model: terminal, page and JSON show the same."""

import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, TableModel, fit_table
from sdulearn.answers.answer_model import Rate
from sdulearn.cli.main import main
from sdulearn.findings import NamesUncertain, NoBetterThanGuessing, RepeatedQuestions, TiedQuestions
from sdulearn.io.typed import plain, read
from sdulearn.metrics import AnswerCounts, ClassAgreement, Share
from sdulearn.metrics.accuracy import ENOUGH_RANDOM
from sdulearn.report.page import whole_page
from sdulearn.report.records import MAX_DEPENDENCE_ROWS, AnnotatorReport, ColumnDependence, ColumnImportance, FitReport
from sdulearn.report.results import Chart, findings_of_model, lines
from sdulearn.table_model import AskedRows
from sdulearn.tables.columns import Column
from sdulearn.tables.spelling import Spelling
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
    p = np.column_stack([sure, 1 - sure])
    asked = AskedRows([f"<{k}>" for k in range(60)], p, p, p, np.arange(1, 61))
    return TableModel(fitted, unscaled(COLUMNS, "id"), ("no", "yes"), report, asked)


@pytest.fixture(scope="module")
def many_classes(table_model):
    """The same with three classes, of which only answers are known."""
    counts = AnswerCounts((1, 2, 3), ((9.0, 1.0, 0.0), (1.0, 8.0, 2.0), (0.0, 2.0, 7.0)),
                          ((1.0, 20.0, 0.0), (20.0, 2.0, 11.0), (0.0, 11.0, 3.0)))  # fmt: skip
    found = ClassAgreement(Share(0.91, 0.85, 0.95, 77), Share(0.8, 0.7, 0.9, 30), Share(0.95, 0.9, 0.99, 47),
                           None, None, 0.95, counts)  # fmt: skip
    report = replace(
        table_model.report,
        accuracy=None,
        prior=None,
        agreement=found,
        class_shares=(0.5, 0.3, 0.2),
        classes=("a", "b", "c"),
        n_classes_interval=(3, 4),
        dependences=(),
        n_labels=20,
        n_labels_right=19,
    )
    estimator = PairLogisticRegression()
    estimator.coef_ = np.arange(63.0).reshape(3, 21)
    estimator.prior_ = None
    estimator.classes_ = np.array([1, 2, 3])
    estimator.answer_model_ = table_model.estimator.answer_model_
    return replace(table_model, estimator=estimator, classes=("a", "b", "c"), report=report, asked=None)


def page(model):
    """The report page as text."""
    return whole_page("<m>", findings_of_model(model))


def by_code(found):
    return {fact.code: fact for fact in found}


def changed(model, **change):
    return replace(model, report=replace(model.report, **change))


def finding(model, code, **change):
    """The finding of a code where the report is another one, if there is one."""
    return by_code(findings_of_model(changed(model, **change))).get(code)


def test_findings_come_in_the_order_to_be_read(table_model, many_classes):
    results = [fact.code for fact in findings_of_model(table_model)]
    assert results == [
        "learned", "headline", "next", "fit_warning", "other_population", "majority", "agreement_with_answers", "prior",
        "annotators", "model_kind", "answers_used", "understood", "table_read", "columns_read",
        "settings", "answered", "doubtful", "strengths", "importances", "dependence", "dependence",
    ]  # fmt: skip
    assert [fact.code for fact in findings_of_model(many_classes) if fact.severity == "result"] == [
        "learned", "headline", "next", "class_shares", "annotators", "labels_used", "model_kind", "answers_used",
        "understood", "table_read", "columns_read", "settings", "held_out_counts", "doubtful", "strengths",
        "importances",
    ]  # fmt: skip
    noted = (RepeatedQuestions(count=2, by_majority=True), *table_model.report.findings)
    found = findings_of_model(changed(table_model, findings=noted))
    assert [fact.severity for fact in found[2:7]] == ["result", "warning", "warning", "info", "result"]


def test_the_page_and_the_summary_hold_every_sentence(table_model, many_classes):
    for model in (table_model, many_classes):
        text = page(model)
        assert not re.search(r"(src|href)=|<script|@import|url\(|<b>", text)
        escaped = text.replace("&#39;", "'").replace("&#34;", '"').replace("<code>", "`").replace("</code>", "`")
        for fact in findings_of_model(model):
            assert str(fact).replace("<", "&lt;").replace(">", "&gt;") in escaped
        opening, rest = lines(findings_of_model(model))[:3], lines(findings_of_model(model))[3:]
        assert model.summary().split("\n") == [*opening, *(f"  {line}" for line in rest)]
        assert repr(model) == "TableModel: " + "\n".join(opening)
        assert all(
            escape(line.partition("`")[0], quote=False).replace('"', "&#34;") in model._repr_html_() for line in opening
        )
        assert not any(str(fact) in model.summary() for fact in findings_of_model(model) if isinstance(fact, Chart))
        assert f"{by_code(findings_of_model(model))['headline'].value:.1%}, 95% interval" in model._repr_html_()


def test_charts_show_the_numbers(table_model, many_classes):
    text = page(table_model)
    for part in (
        "left:60.0%;width:30.0%",
        "<td>Ann</td><td>60</td><td>10.0%</td><td>5.0% to 20.0%</td>",
        "<td>r1</td><td>r2</td><td>same</td><td>Ann</td><td>60.0%</td>",
        "<td>&lt;0&gt;</td><td>no</td><td>51.0%</td><td>1</td>", "<td>&lt;49&gt;</td>", "And 10 more:",
        "12.3 ± 2.0", "-2.0 ± 6.0", "M36.0,119.6 L72.8,94.8 L312.0,32.8", "<td>c9</td><td class=\"number\">90%</td>",
        "and 2 below 10%", "<title>&lt;m&gt;</title>", "Positive values favour yes.",
        # Bars from zero to the loss, two standard errors either way.
        '<span class="bar down" style="left:26.9%;width:9.0%"></span><i style="left:0.0%;width:53.8%">',
    ):  # fmt: skip
        assert part in text, part
    assert "&lt;50&gt;" not in text
    low = page(changed(table_model, accuracy=replace(table_model.report.accuracy, low=0.4)))
    assert "left:40.0%;width:55.0%" in low
    text = page(many_classes)
    for part in (
        "9 / 1</td>", "7 / 3</td>", "var(--up) 35%", '<td>x16</td><td class="number">+16</td>', "favour c.",
    ):  # fmt: skip
        assert part in text, part
    assert "9 / 1</td><td" not in text  # the half below the diagonal


def test_a_model_without_findings_and_a_report_of_a_file(table_model, tmp_path):
    model = changed(table_model, findings=())
    model.write_report(tmp_path / "r.html", model_path="model.sdu")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Nothing in the data disagrees" in text
    assert "<summary><h2>Warnings and notes (nothing)</h2></summary>" in text
    shown, _, folded = page(table_model).partition("<details>")
    assert shown.count('class="warning"') == 2
    assert "<h2>Warnings and notes (2)</h2>" in shown
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
        ({"basis": "random questions", "n_answers": ENOUGH_RANDOM - 1}, True),
        ({"basis": "random questions", "n_answers": ENOUGH_RANDOM}, False),
        ({"n_answers": 0}, True),
    ):
        found = finding(table_model, "headline", accuracy=replace(accuracy, **change))
        assert (found.measure, found.value, found.unknown) == ("accuracy", 0.9, unknown)
    found = finding(table_model, "agreement_with_answers")
    assert (found.value, found.assumed_error_rate) == (0.82, None)
    guessed = {"annotators": (AnnotatorReport("", 0.02, 0.0, 0.5, False, 60),), "error_rate": Rate(0.02, 0.0, 0.5, 60)}
    assert finding(table_model, "agreement_with_answers", **guessed).assumed_error_rate == 0.02
    agreement = many_classes.report.agreement
    assert finding(many_classes, "headline").measure == "agreement"
    known = replace(agreement, accuracy=Share(0.7, 0.6, 0.8, 12.4), basis="labels")
    found = finding(many_classes, "headline", agreement=known)
    assert (found.measure, found.value, found.n, found.basis) == ("accuracy", 0.7, 12.4, "labels")
    assert finding(many_classes, "agreement_with_answers", agreement=known).value == 0.91
    none = replace(agreement, agreement=Share(np.nan, 0.0, 1.0, 0))
    assert finding(many_classes, "headline", agreement=none).unknown


def test_the_next_step_is_the_first_that_is_needed(table_model):
    accuracy = table_model.report.accuracy
    named = {"findings": (), "n_labels": 1}
    for change, step in (
        ({}, "look"),
        (named, "more"),
        ({**named, "accuracy": replace(accuracy, low=0.88)}, "predict"),
        ({"findings": (NamesUncertain(),)}, "name"),
        ({"findings": (NoBetterThanGuessing(low=0.4, chance=0.5),)}, "separate"),
        ({"accuracy": replace(accuracy, n_answers=0)}, "random"),
        ({"accuracy": replace(accuracy, basis="chosen pairs")}, "random"),
    ):
        assert finding(table_model, "next", **change).step == step
    # One annotator who is never wrong is not worth a sentence.
    assert finding(table_model, "annotators", annotators=(AnnotatorReport("", 0.0, 0.0, 0.1, True, 60),)) is None


def test_a_report_prints_as_its_model_does(table_model, many_classes):
    for model in (table_model, many_classes):
        report = replace(model.report, classes=model.classes)
        printed = str(report).split("\n")
        assert printed == model.summary().split("\n")[: len(printed)]
        assert printed[-1].startswith("  Columns of the answers")
    assert repr(replace(table_model, report=None)) == "TableModel(PairLogisticRegressionCV, 21 features, ('no', 'yes'))"


def test_an_interval_of_a_single_number_of_classes_is_no_range(many_classes):
    one, two = (str(finding(many_classes, "class_shares", n_classes_interval=ends)) for ends in ((3, 3), (3, 4)))
    assert "3 to 4" in two
    assert "3 to 3" not in one
    assert str(finding(many_classes, "class_shares", n_classes_interval=None)) not in (one, two)


def test_files_are_named_and_frames_are_not(table_model):
    text = str(finding(table_model, "learned"))
    assert "(p.csv)" in text
    assert "(t.csv)" in text
    text = str(finding(table_model, "learned", table="the table", answers="the answers"))
    assert "(the " not in text


def test_the_severity_is_printed():
    tied = TiedQuestions(count=1)
    assert lines([tied, RepeatedQuestions(count=1, by_majority=True)]) == [
        f"warning: {tied}",
        "note: 1 repeated question, each counted once by majority.",
    ]


def test_two_classes_have_one_share_and_the_larger_one_may_be_larger_than_estimated(table_model):
    prior = replace(table_model.report.prior, value=0.5, low=0.387, high=0.613, identified=False)
    accuracy = replace(table_model.report.accuracy, majority=0.5)
    found = by_code(findings_of_model(changed(table_model, prior=prior, accuracy=accuracy)))
    assert "class_shares" not in found
    assert (found["prior"].value, found["prior"].high) == (0.5, 0.613)
    assert (found["majority"].majority, found["majority"].high) == (0.5, 0.613)


def test_agreement_stands_beside_what_always_different_has(many_classes):
    counts = AnswerCounts((1, 2), ((6.0, 1.0), (1.0, 3.0)), ((20.0, 60.0), (60.0, 10.0)))
    agreement = replace(many_classes.report.agreement, counts=counts)
    assert finding(many_classes, "headline", agreement=agreement).always_different == 0.9
    known = replace(agreement, accuracy=Share(0.7, 0.6, 0.8, 12.4), basis="labels")
    assert finding(many_classes, "headline", agreement=known).always_different is None
    assert finding(many_classes, "agreement_with_answers", agreement=known).always_different == 0.9


def test_the_page_names_the_number_of_rows_that_is_used(table_model):
    assert f"over at most {MAX_DEPENDENCE_ROWS} rows" in page(table_model)


@pytest.mark.parametrize(
    "change",
    [
        {"findings": [{"code": "people", "severity": "info", "numbers": {"count": 1, "people": [{}]}, "text": "<i>"}]},
        {"dependences": [{"column": "<i>", "values": [3.0], "probability": [0.5]}]},
        {"dependences": [{"column": "<i>", "values": [], "probability": []}]},
        {"importances": [{"column": "<i>", "loss": 0.0, "error": 0.0}]},
        {"class_shares": [], "prior": None},
        {"doubtful": [{"id_a": "<i>", "id_b": "", "similar": True, "annotator": "", "wrong": 1.0}]},
        {"answer_words": {"<i>": [0, 0]}},
    ],
)
def test_a_forged_report_has_a_page_or_is_refused(table_model, change):
    report = read(FitReport, json.loads(json.dumps(plain(table_model.report))) | change)
    model = replace(table_model, report=report)
    assert "<i>" not in page(model) + model._repr_html_()
    assert model.summary()


def test_agreement_with_random_pairs_stands_beside_their_share_of_different(no_importances):
    """With shared rows, answers of one kind count as fewer independent ones than those of the other."""
    rng = np.random.default_rng(5)
    classes = np.repeat(np.arange(6), 20)
    table = pd.DataFrame(rng.normal(size=(120, 3)) + 5 * rng.normal(size=(6, 3))[classes], columns=list("abc"))
    pairs = rng.integers(0, 120, size=(200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    answers = pd.DataFrame({"id_a": pairs[:, 0], "id_b": pairs[:, 1], "label": same})
    model = fit_table(table, answers, classes=6, id_column="", model="linear")
    headline = {one.code: one for one in findings_of_model(model)}["headline"]
    assert headline.always_different == pytest.approx(1 - same.mean(), abs=0.02)


def test_a_known_accuracy_is_compared_with_the_largest_class(tmp_path, no_importances):
    """The agreement with chosen pairs says less than the accuracy on rows of random questions."""
    rng = np.random.default_rng(4)
    classes = np.repeat(np.arange(3), 60)
    table = pd.DataFrame(rng.normal(size=(180, 3)) + 3 * rng.normal(size=(3, 3))[classes], columns=list("abc"))
    table.assign(truth=classes).to_csv(tmp_path / "t.csv", index=False)
    log = tmp_path / "log.jsonl"
    given = ["ask", tmp_path / "t.csv", "-o", log, "--oracle", "truth", "--questions", 100, "--classes", 3, "--seed", 1]
    assert main(list(map(str, given))) == 0
    model = fit_table(tmp_path / "t.csv", log, drop=["truth"], model="linear")
    found = {one.code: one for one in findings_of_model(model)}
    assert found["headline"].measure == "accuracy"
    assert found["headline"].low > 0.5
    assert "no_better_than_guessing" not in found
    # Questions that were repeated to see how often people are wrong are no news.
    assert "repeated_questions" not in found


def test_the_larger_class_has_one_share(tmp_path, no_importances):
    rng = np.random.default_rng(4)
    classes = rng.permutation(np.repeat([0, 1], [70, 130]))
    table = pd.DataFrame(rng.normal(size=(200, 3)) + 1.6 * classes[:, None], columns=list("abc"))
    table.assign(truth=classes).to_csv(tmp_path / "t.csv", index=False)
    log = tmp_path / "log.jsonl"
    given = ["ask", tmp_path / "t.csv", "-o", log, "--oracle", "truth", "--questions", 120, "--seed", 3]
    assert main(list(map(str, given))) == 0
    model = fit_table(tmp_path / "t.csv", log, drop=["truth"], model="linear")
    found = {one.code: one for one in findings_of_model(model)}
    prior = found["prior"].value
    assert found["majority"].majority == model.report.accuracy.majority == max(prior, 1 - prior)
