"""Findings: one typed record from where it is found to where it is printed."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdulearn.answers.answer_model import Rate
from sdulearn.cli.options import OPTIONS, OTHER_NAMES, in_options
from sdulearn.findings import (
    _CLASSES,
    AnnotatorsExcluded,
    AnswersAlike,
    AnswerTable,
    AskedRowsChanged,
    Audit,
    BalancedAnswers,
    ClassNumberOpen,
    Contradictions,
    Crowd,
    Disputed,
    EmptyIds,
    Entities,
    EntityGroups,
    ErrorRateTooHigh,
    FarFromTraining,
    FewRandom,
    Finding,
    FitWarning,
    FlippedAnswers,
    ForcedChoicesUnused,
    Hubs,
    IdsTaken,
    LabelsDisagree,
    LeftOut,
    LinearAlone,
    Listing,
    ManyChosen,
    ManyClasses,
    MoreLabelsThanClasses,
    NamesUncertain,
    NoAnswers,
    NoBetterThanGuessing,
    NoBetterThanMajority,
    NoClassesShown,
    OddValue,
    OtherFinding,
    OtherPopulation,
    PairsByFeatures,
    PassedOver,
    People,
    Person,
    PriorNotIdentified,
    PriorOfOtherClass,
    RatioAgainstPrior,
    Reason,
    RelatedRows,
    RepeatedIds,
    RepeatedQuestions,
    Repeats,
    SelfPairs,
    SharedPoints,
    TableGrew,
    TextsByWords,
    TiedQuestions,
    TooFewSimilar,
    UnknownIds,
    UnreadableRows,
    UnusedColumns,
)
from sdulearn.io.typed import plain, read
from sdulearn.report.page import whole_page
from sdulearn.report.records import AnnotatorReport, ColumnDependence, DoubtfulAnswer, ModelChoice
from sdulearn.report.results import (
    AgreementWithAnswers,
    Annotators,
    Answered,
    AnswersRead,
    AnswersUsed,
    Chart,
    ClassesFound,
    ClassShares,
    ColumnsRead,
    Dependence,
    Doubtful,
    Headline,
    HeldOutCounts,
    Importances,
    LabelsUsed,
    Learned,
    Majority,
    ModelKind,
    Next,
    Opening,
    Prior,
    Settings,
    Step,
    Strengths,
    TableRead,
    UnconnectedParts,
    Understood,
    of_hundred,
)

RATE = Rate(0.258, 0.24, 0.275, 60)
UNKNOWN = Rate(0.02, 0.0, 0.5, 60)
PERSON = AnnotatorReport("Ann", 0.1, 0.05, 0.2, True, 60)
LEARNED = Learned(
    kind="linear", n_classes=2, n_answers=60, n_labels=0, n_rows=1000, classes=(), answers="p.csv", table="t.csv"
)
HEADLINE = Headline(
    measure="accuracy", value=0.9, low=0.8, high=0.95, confidence=0.95, n=60, basis="held-out answers", unknown=False
)
PRIOR = Prior(name="a", value=0.7, low=0.6, high=0.8, identified=True, confidence=0.95, n_answers=60)
SHARES = ClassShares(n_classes=3, shares={"a": 0.5, "b": 0.3, "c": 0.2}, interval=None)
READ = AnswersRead(name="p.csv", format="csv", n_similar=3, n_dissimilar=4, n_unsure=5, n_unanswered=0)
USED = AnswersUsed(
    answers="p.csv", n_similar=3, n_dissimilar=4, n_unsure=5, n_points=14, n_independent=7, n_questions=None
)
TABLE = TableRead(table="t.csv", n_rows=1000, n_unlabeled=900, n_columns=3, n_features=4, id_column="id")
COLUMNS = ColumnsRead(
    number=tuple("abcdefghijk"),
    boolean=(),
    date=("day",),
    category={"city": 2},
    text={"note": 9},
    image={},
    decimal_commas=(),
    missing_texts={"a": ("?",)},
    missing={},
    missing_kept=False,
)
SETTINGS = Settings(estimator="E", method="joint", loss="squared", settings={"alpha": 0.25})
ODD = Contradictions(count=3, both_ways=2, closure=0, odd_cycles=1)
CROWD = Crowd(
    n_classes=5, n_people=300, value=0.258, low=0.24, high=0.275, identified=True, answers_each=(3.0, 30.0, 1200.0)
)
POINTS = SharedPoints(n_answers=9, n_points=8, n_components=1, n_independent=7, n_cut=0, n_splits=5)
HUBS = Hubs(n_hubs=1, n_answers=32, n_answers_of_each=(30,))
FEW = TooFewSimilar(n_answers=100, share=0.38, n_points=None, level=0.01)
AGAINST = RatioAgainstPrior(n_answers=100, share=0.38, n_points=None, level=0.01, prior=0.7, expected_share=0.58)
SQUARE = {"classes": ("1", "2"), "same": ((9.0, 1.0), (1.0, 8.0)), "different": ((1.0, 9.0), (9.0, 2.0))}
FOUND = ClassesFound(n_ids=9, n_classes=2, sizes={"1": 5, "2": 3}, n_open=0, probability=0.9)
# Each sentence in all its forms.
SAMPLES = [
    EntityGroups(low=900, high=1100),
    ClassNumberOpen(value=5, low=4, high=9),
    ForcedChoicesUnused(count=1),
    ForcedChoicesUnused(count=7),
    NoClassesShown(count=28620),
    MoreLabelsThanClasses(column="species", n_labels=3, n_classes=2),
    LEARNED,
    replace(LEARNED, kind="boosted", n_labels=1, classes=("no", "yes"), table="the table"),
    HEADLINE,
    replace(HEADLINE, value=0.995, low=0.744, high=1.0),
    replace(HEADLINE, n=0, unknown=True),
    replace(HEADLINE, n=6, basis="random questions", unknown=True),
    replace(HEADLINE, groups="person", n_groups=25),
    replace(HEADLINE, n=0, unknown=True, groups="person", n_groups=25),
    replace(HEADLINE, basis="chosen pairs"),
    replace(HEADLINE, measure="agreement", value=0.979, always_different=0.9),
    *(replace(HEADLINE, n=41.7, basis=basis) for basis in ("labels", "groups", "rows of random questions", "crowd")),
    *(Next(step=step, n_warnings=n) for step, n in zip(get_args(Step), (0, 0, 1, 0, 0, 0), strict=True)),
    Majority(majority=0.5, high=0.613, beaten=False),
    Majority(majority=0.7, high=0.7, beaten=True),
    AgreementWithAnswers(value=0.82),
    AgreementWithAnswers(value=0.82, assumed_error_rate=0.02),
    AgreementWithAnswers(value=0.979, low=0.96, high=0.99, same=0.8, different=0.99, always_different=0.9),
    PRIOR,
    replace(PRIOR, confidence=None),
    replace(PRIOR, n_answers=None, identified=False),
    replace(PRIOR, n_answers=0),
    replace(PRIOR, name=None),
    SHARES,
    replace(SHARES, interval=(3, 3)),
    replace(SHARES, shares={}, interval=(3, 4)),
    *(
        Annotators(annotators=(replace(PERSON, **more),), rate=RATE)
        for more in ({}, {"identified": False}, {"low": 0.2, "name": ""})
    ),
    *(Annotators(annotators=(PERSON,) * 9, rate=rate) for rate in (RATE, UNKNOWN)),
    LabelsUsed(classes=("a", "b"), n_labels=20, n_right=19),
    LabelsUsed(classes=("a", "b", "c"), n_labels=20, n_right=19),
    ModelKind(choice=ModelChoice("boosted", {"linear": -0.5, "boosted": -0.4}, 0.02)),
    ModelKind(choice=ModelChoice("boosted", {"linear": -0.5, "boosted": -0.4})),
    READ,
    replace(READ, n_unanswered=1, n_questions=7, epsilon=1.0),
    Understood(columns={"id_a": "left"}, words={"1": (1, 40), "0": (-1, 20)}),
    Understood(columns={}, words={}),
    USED,
    replace(USED, n_points=8, n_independent=5, n_questions=3),
    TABLE,
    replace(TABLE, id_column=None, n_columns=1),
    COLUMNS,
    replace(COLUMNS, missing={"a": 4}),
    replace(COLUMNS, missing={"a": 4}, missing_kept=True, decimal_commas=("a",)),
    SETTINGS,
    replace(SETTINGS, method="su", settings={}),
    *(replace(SETTINGS, start=start, settings={"n_rounds": n}) for start, n in (("kernel", 0.0), ("linear", 3.0))),
    Answered(n_rows=60, mean=0.93, rows=()),
    FOUND,
    replace(FOUND, n_open=1),
    UnconnectedParts(n_ids=1, n_parts=1),
    HeldOutCounts(**SQUARE),
    Doubtful(answers=()),
    Doubtful(answers=(DoubtfulAnswer("r1", "r2", True, "Ann", 0.6),)),
    Strengths(strengths={}),
    Importances(measure="accuracy", columns=()),
    Dependence(name="yes", curve=ColumnDependence("price", (1.5, 2.5), (0.1, 0.3))),
    UnreadableRows(count=1),
    SelfPairs(count=2),
    UnusedColumns(columns=("Wer", "comment"), people=("Wer",)),
    UnusedColumns(columns=("comment",), people=()),
    NoAnswers(n_unsure=0),
    NoAnswers(n_unsure=2),
    UnknownIds(count=1),
    UnknownIds(count=3, cause="Zeros were lost."),
    Repeats(count=2),
    LeftOut(fault="self_pairs", count=7, lines=(3, 5)),
    LeftOut(fault="unknown_ids", count=1, lines=(1,)),
    LeftOut(fault="unreadable", count=2, lines=(1, 2)),
    RepeatedQuestions(count=3, by_majority=True),
    RepeatedQuestions(count=1, by_majority=False),
    TiedQuestions(count=4),
    ODD,
    replace(ODD, closure=9),
    PassedOver(columns=("a",), n_blank=1, sheet="Data", above=2),
    PassedOver(n_blank=4),
    PassedOver(encoding="windows-1252"),
    IdsTaken(column="Kundennr."),
    TableGrew(before=100, now=120),
    AskedRowsChanged(count=1, n_asked=50),
    FitWarning(message="look out"),
    OddValue(column="age", value=-999.0, count=31, low=18.0, high=93.0),
    OddValue(column="x", value=1234.5, count=1, low=-3.0, high=3.1),
    EmptyIds(count=2, first="line 7"),
    RepeatedIds(count=1, name="r5", first="line 9"),
    RepeatedIds(count=3, name="r5", first="line 9", among=1048576),
    FarFromTraining(shares={"price": 0.98, "weight": 0.6}, limit=3.0),
    FEW,
    replace(FEW, n_points=30),
    AGAINST,
    replace(AGAINST, n_points=30),
    BalancedAnswers(n_similar=50),
    OtherPopulation(features=("a", "b"), standard_scores=(5.5, -4.0), n_features=3, level=0.01),
    PairsByFeatures(features=("age",), correlations=(0.98,), n_answers=9, level=0.001),
    RelatedRows(column="person", n_rows=390, n_asked=400, n_groups=25),
    RelatedRows(column="", n_rows=390, n_asked=400, n_groups=25),
    TextsByWords(columns=("message", "note"), installed=False),
    TextsByWords(columns=("message",), installed=True),
    POINTS,
    replace(POINTS, n_independent=9, n_cut=4),
    HUBS,
    replace(HUBS, names=("hub",)),
    replace(HUBS, n_hubs=3, n_answers_of_each=(9, 8)),
    FewRandom(n_random=0, n_answers=9),
    ManyChosen(n_chosen=30, n_rows=40),
    Entities(n_similar=400, n_answers=900, n_groups=200, median_size=2.0, n_apart=5, n_expected=400),
    ManyClasses(n_similar=3, n_answers=400, n_classes=50, level=0.01),
    Audit(name="judge", n=60, n_wrong=7, value=0.12, low=0.05, high=0.22),
    AnswersAlike(first="p1", second="p2", n=150),
    FlippedAnswers(epsilon=1.0, flip_rate=0.27),
    CROWD,
    replace(CROWD, identified=False, n_people=1),
    replace(CROWD, value=0.0, answers_each=(3.0, 3.0, 3.0)),
    People(people=(Person("Bob", 0.4, 0.3, 0.5, 60, ("60% careless",)),), count=1),
    People(people=(), count=0),
    AnswerTable(**SQUARE, count=2),
    Disputed(count=3, level=0.01),
    AnnotatorsExcluded(names=("Bob",), n_answers=80, measure="accuracy", before=(0.81, 0.2), after=(0.9, 0.0)),
    NoBetterThanGuessing(low=0.4, chance=0.5),
    NoBetterThanMajority(low=0.4, majority=0.7),
    PriorNotIdentified(low=0.4, high=0.6),
    NamesUncertain(),
    PriorOfOtherClass(prior=0.3),
    ErrorRateTooHigh(error_rate=0.3, agreement=0.95, n_answers=100.0, level=0.01),
    LabelsDisagree(n_right=3, n_labels=20),
    *(LinearAlone(reason=reason, limit=50) for reason in get_args(Reason)),
]
SENTENCES = Path(__file__).parent / "files" / "sentences.txt"
KINDS = {code: kind for code, kind in _CLASSES.items() if kind not in (Listing, OtherFinding, Opening, Chart)}
STORED = [code for code, kind in KINDS.items() if kind._severity != "result"]


def values_of(hint):
    """Values that a field of this type may have."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        low, high = arguments[1].low, arguments[1].high
        return st.integers(low, high) if arguments[0] is int else st.floats(low, high)
    if origin in (Union, UnionType):
        return st.one_of(*map(values_of, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if origin is Mapping:
        return st.dictionaries(*map(values_of, arguments), max_size=4)
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if hint is str:
        return st.text(st.characters(codec="utf-8"), max_size=9)
    if hint is int:
        return st.integers(0, 2**62)
    return instances(hint) if is_dataclass(hint) else st.from_type(hint)


# Fields whose values depend on each other.
SPECIAL = {
    ModelChoice: {"scores": st.just({"linear": -0.4, "boosted": -0.5})},
    ColumnDependence: {"values": st.just((1.0, 2.0)), "probability": st.just((0.1, 0.2))},
    Settings: {"settings": st.just({"n_rounds": 3.0})},
    AnswersRead: {"epsilon": st.none() | st.floats(0.001, 100)},
    AnswerTable: {name: st.just(value) for name, value in SQUARE.items()},
    Understood: {"words": st.just({"1": (1, 40)})},
    Learned: {"kind": st.sampled_from(["linear", "boosted"])},
}


def instances(kind):
    """Records of this kind, by the types of their fields."""
    hints = get_type_hints(kind, include_extras=True)
    named = {field.name: values_of(hints[field.name]) for field in fields(kind)}
    return st.builds(kind, **(named | SPECIAL.get(kind, {})))


@pytest.mark.parametrize("code", KINDS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_every_value_of_a_field_has_a_sentence(code, data):
    finding = data.draw(instances(KINDS[code]))
    assert isinstance(str(finding), str)
    assert set(finding.as_json()) == {"code", "severity", "numbers", "text"}
    assert finding.code == code


@pytest.mark.parametrize("code", STORED)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_finding_of_a_file_is_the_finding_that_was_stored_and_has_a_page(code, data):
    finding = data.draw(instances(KINDS[code]))
    stored = json.loads(json.dumps(plain(finding)))
    again = read(Finding, stored)
    assert type(again) is type(finding)
    assert again.as_json() == stored
    assert "<h1>x</h1>" in whole_page("x", [again])


@pytest.mark.parametrize(
    "change",
    [
        {"code": "of_another_version"},
        {"numbers": {}},
        {"numbers": {"count": "many"}},
        {"code": "headline"},
        {"code": "answer_table", "numbers": {"count": 1, "classes": ["a"], "same": [], "different": [[1.0]]}},
        {"code": "strengths"},
    ],
)
def test_a_finding_of_another_version_keeps_its_text(change):
    stored = {"code": "tied_questions", "severity": "warning", "numbers": {"count": 2}, "text": "Two <b>tied</b> `x`."}
    found = read(Finding, stored | change)
    assert isinstance(found, OtherFinding)
    assert (found.code, found.severity, str(found)) == ((stored | change)["code"], "warning", stored["text"])
    page = whole_page("x", [found])
    assert "Two &lt;b&gt;tied&lt;/b&gt; <code>x</code>." in page


@pytest.mark.parametrize("change", [{"severity": "fatal"}, {"text": 3}, {"numbers": []}, {"code": None}])
def test_a_forged_finding_is_refused(change):
    with pytest.raises((TypeError, ValueError)):
        read(Finding, {"code": "x", "severity": "info", "numbers": {}, "text": "t"} | change)


def test_the_lower_end_of_the_interval_comes_first():
    assert of_hundred(0.999, 0.74) == "at least 74 of 100 new rows, probably nearly all"
    assert of_hundred(0.9, 0.8) == "at least 80 of 100 new rows, probably about 90"
    assert of_hundred(0.9, 0.9) == "about 90 of 100 new rows"


def test_sentences_name_parameters_that_have_options():
    known = {*(option.name for option in OPTIONS), *OTHER_NAMES}
    for finding in SAMPLES:
        text = str(finding)
        assert not re.search(r"--\w|\{|\}", text)
        assert all(name in known for name in re.findall(r"`(\w+)", text)), text
        assert "`" not in in_options(text)
        # A page for browser users names no function.
        assert not re.search(r"`(predict|check_answers|fit_table|read_answers)\b|\w\(\)", text), text


def test_the_sentences_are_those_of_the_golden_file():
    """For new wording, run this test with ``SDULEARN_GOLDEN=1``, which writes the file, and read the difference."""
    written = "".join(f"{finding.code} [{finding.severity}]\n  {finding}\n" for finding in SAMPLES)
    if "SDULEARN_GOLDEN" in os.environ:
        SENTENCES.write_text(written, encoding="utf-8")
    assert written == SENTENCES.read_text(encoding="utf-8")
    assert {finding.code for finding in SAMPLES} == set(KINDS)
