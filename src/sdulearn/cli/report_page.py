"""The page that ``fit`` writes beside a model: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np

from sdulearn.cli.words import (
    NO_RANDOM,
    describe_agreement,
    describe_annotators,
    describe_basis,
    describe_choice,
    describe_finding,
    describe_majority,
    describe_method,
    describe_number,
    describe_points,
    describe_table,
    prior_source,
    understood,
)
from sdulearn.fit_report import ColumnDependence, ColumnImportance, FitReport
from sdulearn.io.files import written_whole
from sdulearn.metrics import ClassAgreement
from sdulearn.prior import PriorEstimate
from sdulearn.table_model import TableModel
from sdulearn.types import Array

_FEATURES_SHOWN = 20
_FEATURES_OF_A_CLASS = 5
_CATEGORIES_SHOWN = 8
# Less likely to be wrong than this, an answer is not worth asking again.
_DOUBTFUL = 0.01
_HOW_JUDGED = {
    "held-out answers": "For random pairs that share no points, 2 × agreement − 1 = (2 × accuracy − 1)²; where they "
    "do, the points were held out and the answers about them judged together.",
    "random questions": "The rows that were drawn at random were held out, and count; rows that were chosen, most of "
    "them hard ones, only train.",
}
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --paper: #fff; --line: #d7dce1; --up: #0b6e99;
  --down: #b4511d; --mark: #fff4d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #9aa4ae; --paper: #14171a; --line: #353c43;
  --up: #58b4dc; --down: #e58a55; --mark: #3a3115; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 46rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .5rem .25rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; } th { font-weight: 500; color: var(--soft); }
.big { font-size: 2.2rem; font-weight: 600; } .soft { color: var(--soft); }
.scale { position: relative; height: 1.2rem; background: var(--line); border-radius: .2rem; }
.scale span { position: absolute; top: 0; bottom: 0; background: var(--up); opacity: .5; }
.scale i { position: absolute; top: -.2rem; bottom: -.2rem; width: 3px; background: var(--ink); }
.ends { display: flex; justify-content: space-between; margin-top: .2rem; }
.bar { display: inline-block; height: .8rem; } .up { background: var(--up); } .down { background: var(--down); }
li { padding: .4rem .6rem; margin: .4rem 0; list-style: none; border-radius: .2rem; }
li.warning, li.error { background: var(--mark); }
.worth { position: relative; display: block; height: 1.2rem; min-width: 5rem; }
.worth i { position: absolute; top: .55rem; height: 2px; background: var(--ink); }
.number { white-space: nowrap; } .worth .bar { position: absolute; top: .2rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: 1.2rem; }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 500; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; } svg path { fill: none; stroke: var(--up); stroke-width: 2; }
svg line { stroke: var(--line); } svg text { fill: var(--soft); font-size: 11px; } td { overflow-wrap: anywhere; }
ul { padding: 0; } .wide { overflow-x: auto; } code { overflow-wrap: anywhere; }
"""


def write_page(path: Path, model: TableModel, model_path: Path) -> None:
    """Write the page of a model that was just fitted."""
    page = html_page(model, model_path)
    with written_whole(path) as draft:
        draft.write_text(page, encoding="utf-8")


def html_page(model: TableModel, model_path: Path) -> str:
    """The whole page."""
    report = model.report
    assert report is not None
    parts = [
        f"<h1>{escape(model_path.name)}</h1>",
        f'<p class="soft">{escape(describe_method(model.estimator))}</p>',
        _section(_title(report), _accuracy(report)),
        _section("To look at", _findings(report)),
        _section("Share of each class", _classes(model, report)),
        _section("Answers by predicted class", _answer_counts(model, report)),
        _section("What was read", _facts(model, report)),
        _section("Who answered", _people(report)),
        _section("Most doubtful answers", _doubtful(report)),
        _section("What the model goes by", _features(model)),
        _section("What each column is worth", _importances(model, report)),
        _section("Along the most important columns", _dependences(model, report)),
        _section("Use it", f"<p><code>sdulearn predict {escape(str(model_path))} TABLE -o out.csv</code></p>"),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(model_path.name)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _section(title: str, content: str) -> str:
    if not content:
        return ""
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def _title(report: FitReport) -> str:
    """Nobody should take an agreement for an accuracy."""
    unknown = report.agreement is not None and report.agreement.accuracy is None
    return "Agreement with answers" if unknown else "Estimated accuracy"


def _accuracy(report: FitReport) -> str:
    if report.agreement is not None:
        return _agreement(report.agreement)
    accuracy = report.accuracy
    assert accuracy is not None
    if not accuracy.n_answers:
        return f"<p>{NO_RANDOM.capitalize()}.</p>"
    interval = f"{accuracy.confidence:.0%} interval {accuracy.low:.1%} to {accuracy.high:.1%}"
    lines = [
        f'<p><span class="big">{accuracy.value:.1%}</span> <span class="soft">{interval}</span></p>',
        _scale(accuracy.value, accuracy.low, accuracy.high, 0.5 if accuracy.low >= 0.5 else 0.0),
        f"<p>{describe_basis(accuracy).capitalize()}. {describe_majority(accuracy).capitalize()}. "
        f"{_HOW_JUDGED[accuracy.basis]} The answers cannot tell which class is which.</p>",
    ]
    return "\n".join(lines)


def _agreement(found: ClassAgreement) -> str:
    """Of more than two classes: the accuracy where anything tells it, and never without saying what does."""
    lines = [f"<p>{escape(line[0].upper() + line[1:])}.</p>" for line in describe_agreement(found)]
    note = "Predictions agree with an answer or not, whatever the classes are called; that is not the accuracy."
    share = found.accuracy
    if share is not None:
        interval = f"{found.confidence:.0%} interval {share.low:.1%} to {share.high:.1%}"
        lines.insert(0, _scale(share.value, share.low, share.high, 0.0))
        lines.insert(0, f'<p><span class="big">{share.value:.1%}</span> <span class="soft">{interval}</span></p>')
    return "\n".join([*lines, f'<p class="soft">{note}</p>'])


def _scale(value: float, low: float, high: float, least: float = 0.5) -> str:
    """A bar from ``least`` to 100% with the interval and the value."""
    left, right, at = (100 * (share - least) / (1 - least) for share in (low, high, value))
    return (
        f'<div class="scale" role="img" aria-label="{value:.1%}, interval {low:.1%} to {high:.1%}, on {least:.0%} to '
        f'100%"><span style="left:{left:.1f}%;width:{max(right - left, 0.5):.1f}%"></span>'
        f'<i style="left:{min(at, 99.5):.1f}%"></i></div>'
        f'<p class="soft ends"><span>{least:.0%}</span><span>100%</span></p>'
    )


def _findings(report: FitReport) -> str:
    if not report.findings:
        return "<p>Nothing in the data disagrees with what the method assumes.</p>"
    items = [f'<li class="{one.severity}">{escape(describe_finding(one))}</li>' for one in report.findings]
    return "<ul>\n" + "\n".join(items) + "\n</ul>"


def _classes(model: TableModel, report: FitReport) -> str:
    """What answers say of the share of two classes, and what the model says of each."""
    said = "" if report.prior is None else _prior(report.prior, model.classes[1])
    if report.n_classes_interval is not None:
        said += f"<p>{describe_number(len(model.classes), report.n_classes_interval).capitalize()}.</p>"
    if not report.class_shares:
        return said
    rows = (
        f"<tr><td>{escape(name)}</td><td>{share:.1%}</td><td style='width:50%'>{_bar(share)}</td></tr>"
        for name, share in zip(model.classes, report.class_shares, strict=True)
    )
    note = "By the model: mean probability of each class over the unlabeled rows."
    return f'{said}\n<p class="soft">{note}</p>\n{_table(rows)}'


def _answer_counts(model: TableModel, report: FitReport) -> str:
    """Of more than two classes: how many held-out answers of each kind there are about each two of them."""
    counts = None if report.agreement is None else report.agreement.counts
    if counts is None:
        return ""
    names = [escape(model.classes[number - 1]) for number in counts.classes]
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = [f"<tr><th></th>{head}</tr>"]
    for i, name in enumerate(names):
        cells = (_cell(counts.same[i][j], counts.different[i][j]) for j in range(i + 1))
        rows.append(f"<tr><th>{name}</th>{''.join(cells)}</tr>")
    note = (
        "Held-out answers same / different about a row of one class and a row of the other, the darker the more are "
        "same. Dark beside the diagonal: two classes that are one, or are taken for each other; light on it: a class "
        "that is several."
    )
    return f'<p class="soft">{note}</p>\n<div class="wide">{_table(rows)}</div>'


def _cell(same: float, different: float) -> str:
    if not same + different:
        return "<td></td>"
    tint = f"color-mix(in srgb, var(--up) {50 * same / (same + different):.0f}%, transparent)"
    return f'<td style="background:{tint}">{same:.4g} / {different:.4g}</td>'


def _prior(prior: PriorEstimate, name: str) -> str:
    if prior.confidence is None:
        return f"<p>{prior.value:.3g} of the rows are of class <b>{escape(name)}</b>, as given.</p>"
    if not (source := prior_source(prior)):
        return f"<p>{NO_RANDOM.capitalize()}.</p>"
    unknown = "" if prior.identified else " The answers do not exclude 1/2."
    return (
        f"<p>{prior.value:.3f} of the rows are of class <b>{escape(name)}</b> ({prior.confidence:.0%} interval "
        f"{prior.low:.3f} to {prior.high:.3f}, from {source}).{unknown}</p>"
    )


def _facts(model: TableModel, report: FitReport) -> str:
    used = f"{describe_points(report)}; {report.n_unsure:,} unsure"
    table, *columns = describe_table(report.table, model.layout, report.n_rows)
    rows = [
        ("Table", f"{table}; {report.n_unlabeled:,} rows used as unlabeled"),
        ("Columns", "; ".join(line.strip() for line in columns)),
        ("Answers", f"{report.answers}: {used}"),
        ("Model", describe_choice(report.model_choice) if report.model_choice.scores else ""),
        ("Understood as", "; ".join(understood(report.answer_columns, report.answer_words))),
    ]
    return _table(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows if text)


def _people(report: FitReport) -> str:
    """Those who answered and how often they are wrong; nothing where one alone did and was never found wrong."""
    if not describe_annotators(report):
        return ""
    head = "<tr><th>Who</th><th>Answers</th><th>Wrong</th><th>95% interval</th></tr>"
    rows = []
    for one in report.annotators:
        rate = f"{one.rate:.1%}" if one.identified else "taken for right: nothing tells"
        interval = f"{one.low:.1%} to {one.high:.1%}" if one.identified and one.low < one.high else ""
        name = escape(one.name or "not known")
        rows.append(f"<tr><td>{name}</td><td>{one.n_answers:,}</td><td>{rate}</td><td>{interval}</td></tr>")
    return _table([head, *rows])


def _doubtful(report: FitReport) -> str:
    """The answers that are likeliest to be wrong, where any stands out."""
    if not report.doubtful:
        return ""
    shown = [one for one in report.doubtful if one.wrong >= _DOUBTFUL]
    if not shown:
        right = f"{1 - _DOUBTFUL:.0%}"
        return f"<p>No answer stands out: given the model and all others, each is right with {right} or more.</p>"
    note = (
        "The likeliest to be wrong, given the model and all other answers: ask these again first. The model learned "
        "from them too, so the probabilities are rather low."
    )
    head = "<tr><th>First</th><th>Second</th><th>Answer</th><th>Who</th><th>Wrong</th></tr>"
    rows = (
        f"<tr><td>{escape(one.id_a)}</td><td>{escape(one.id_b)}</td><td>{'same' if one.similar else 'different'}</td>"
        f"<td>{escape(one.annotator)}</td><td>{one.wrong:.1%}</td></tr>"
        for one in shown
    )
    return f'<p class="soft">{note}</p>\n<div class="wide">{_table([head, *rows])}</div>'


def _features(model: TableModel) -> str:
    """The strongest features: of a line, of a line for each class, or of trees."""
    estimator = model.estimator
    if not hasattr(estimator, "coef_"):
        note = "Share of each feature in the decision: its mean absolute contribution."
        return _strongest(model, estimator.feature_importances_, note, _FEATURES_SHOWN, ".1%")
    if len(model.classes) == 2:
        note = (
            f"Change of the decision value for one standard deviation of the feature; + speaks for {model.classes[1]}."
        )
        return _strongest(model, estimator.coef_[0], note, _FEATURES_SHOWN)
    parts = []
    for name, line in zip(model.classes, estimator.coef_, strict=True):
        note = f"Change of the score of {name} for one standard deviation of the feature; + speaks for {name}."
        parts.append(_strongest(model, line, note, _FEATURES_OF_A_CLASS))
    return "\n".join(parts)


def _importances(model: TableModel, report: FitReport) -> str:
    """What held-out answers lose without each column, with twice its standard error."""
    if not report.importances:
        return ""
    what = "Accuracy" if len(model.classes) == 2 else "Agreement with answers"
    note = (
        f"{what} that is lost where a column is shuffled among the rows, by held-out answers, all taken for right; "
        "the line is two standard errors either way. Columns that say the same share what they are worth: each alone "
        "may look worthless."
    )
    low = min(0.0, *(one.loss - 2 * one.error for one in report.importances))
    high = max(1e-9, *(one.loss + 2 * one.error for one in report.importances))
    rows = (
        f"<tr><td>{escape(one.column)}</td><td class='number'>{_points(one.loss)} ± {_points(2 * one.error)}</td>"
        f"<td style='width:50%'>{_worth(one, low, high)}</td></tr>"
        for one in report.importances
    )
    head = "<tr><th>Column</th><th class='number'>Lost, %</th><th></th></tr>"
    return f'<p class="soft">{note}</p>\n{_table([head, *rows])}'


def _points(share: float) -> str:
    """In per cent; nothing lost is not "-0.0"."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


def _worth(one: ColumnImportance, low: float, high: float) -> str:
    """A bar from 0 to the loss and a line over its interval."""
    zero, loss, begin, end = (
        100 * (x - low) / (high - low) for x in (0.0, one.loss, one.loss - 2 * one.error, one.loss + 2 * one.error)
    )
    left = min(zero, loss)
    kind = "up" if one.loss > 0 else "down"
    return (
        f'<span class="worth"><span class="bar {kind}" style="left:{left:.1f}%;width:{abs(loss - zero):.1f}%"></span>'
        f'<i style="left:{begin:.1f}%;width:{end - begin:.1f}%"></i></span>'
    )


def _dependences(model: TableModel, report: FitReport) -> str:
    """What the model says along a column: a curve of numbers, a bar for each category."""
    if not report.dependences:
        return ""
    note = (
        f"Mean probability of {model.classes[1]} by the model if every row had this value in the column and kept its "
        "others (partial dependence, over at most 500 rows). Where columns go together, such rows may not exist. It "
        "shows what the model does, not what causes what."
    )
    figures = "\n".join(
        f"<figure><figcaption>{escape(one.column)}</figcaption>\n{_dependence(one)}</figure>"
        for one in report.dependences
    )
    return f'<p class="soft">{escape(note)}</p>\n<div class="plots">\n{figures}\n</div>'


def _dependence(one: ColumnDependence) -> str:
    if not any(isinstance(value, str) for value in one.values):
        return _curve([float(value) for value in one.values], one.probability)
    likeliest = sorted(zip(one.probability, map(str, one.values), strict=True), reverse=True)
    left_out = likeliest[_CATEGORIES_SHOWN:]
    rows = [
        f"<tr><td>{escape(name)}</td><td>{share:.0%}</td><td style='width:40%'>{_bar(share)}</td></tr>"
        for share, name in likeliest[:_CATEGORIES_SHOWN]
    ]
    rest = f'<p class="soft">and {len(left_out)} below {left_out[0][0]:.0%}</p>' if left_out else ""
    return _table(rows) + rest


def _curve(values: Sequence[float], shares: Sequence[float]) -> str:
    """Probability from 0 to 1 over the values."""
    left, right, top, bottom = 36, 312, 8, 132
    span = max(values[-1] - values[0], 1e-300)
    points = (
        f"{left + (right - left) * (value - values[0]) / span:.1f},{bottom - (bottom - top) * share:.1f}"
        for value, share in zip(values, shares, strict=True)
    )
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = bottom - (bottom - top) * share
        lines.append(f'<line x1="{left}" x2="{right}" y1="{y:.0f}" y2="{y:.0f}"/>')
        lines.append(f'<text x="{left - 4}" y="{y + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    said = f"from {shares[0]:.0%} at {values[0]:.4g} to {shares[-1]:.0%} at {values[-1]:.4g}"
    return (
        f'<svg viewBox="0 0 320 156" role="img" aria-label="{said}">{"".join(lines)}<path d="M{" L".join(points)}"/>'
        f'<text x="{left}" y="150">{values[0]:.4g}</text>'
        f'<text x="{right}" y="150" text-anchor="end">{values[-1]:.4g}</text></svg>'
    )


def _strongest(model: TableModel, strength: Array, note: str, shown: int, form: str = "+.3g") -> str:
    top = np.argsort(-np.abs(strength), kind="stable")[:shown]
    largest = max(float(np.abs(strength).max(initial=0.0)), 1e-300)
    names = model.layout.feature_names
    rows = (
        f"<tr><td>{escape(names[j])}</td><td>{strength[j]:{form}}</td><td style='width:50%'>"
        f"{_bar(abs(strength[j]) / largest, 'up' if strength[j] > 0 else 'down')}</td></tr>"
        for j in top.tolist()
    )
    return f'<p class="soft">{escape(note)}</p>\n{_table(rows)}'


def _bar(share: float, kind: str = "up") -> str:
    return f'<span class="bar {kind}" style="width:{100 * share:.1f}%"></span>'


def _table(rows: Iterable[str]) -> str:
    return "<table>\n" + "\n".join(rows) + "\n</table>"
