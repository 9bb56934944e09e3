"""The report page, one self-contained HTML file: sentences of facts, and small charts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from sdulearn.diagnostics import Finding
from sdulearn.report.facts import OPENING, Details, sentence

_CATEGORIES_SHOWN = 8
_STRONGEST = 20
_STRONGEST_OF_A_CLASS = 5
_PEOPLE_SHOWN = 40
_ITEMS_SHOWN = 10
# Sections with the codes of their facts; all other facts are "to look at".
_SECTIONS = {
    "": OPENING,
    "Answers": ("answers_read", "crowd"),
    "To look at": (),
    "People": ("people",),
    "Confused classes": ("answer_table",),
    "How good it is": ("majority", "agreement", "agreement_of_two"),
    "Classes": ("prior", "class_shares", "labels_used"),
    "Answers by predicted class": ("answer_counts",),
    "Rows that were asked about": ("answered",),
    "What was read": ("table_read", "columns_read", "answers_used", "understood", "settings", "model_kind"),
    "Annotators": ("annotators",),
    "Most doubtful answers": ("doubtful",),
    "Strongest features": ("strengths",),
    "Importance of the columns": ("importances",),
    "Partial dependence": ("dependence",),
}
# This section and those after it are folded.
_FIRST_FOLDED = "How good it is"
_NOTES = {
    "How good it is": "Points that an answer is about were held out together. For random pairs of two "
    "classes that share no points, 2 × agreement − 1 = (2 × accuracy − 1)². Answers do not show which class is which.",
    "People": "Share of wrong answers with its 95% interval, the highest first.",
    "Confused classes": "Answers same / different to questions about points of two classes, in per cent.",
    "Answers by predicted class": "The stronger the colour, the more answers are same. A strong cell off the diagonal: "
    "two classes that are one, or are confused; a faint cell on it: a class that is several.",
    "Rows that were asked about": "The least certain first. The model learned from the same answers, so the "
    "probabilities are somewhat too high.",
    "Most doubtful answers": "Probability of being wrong, given the model and all other answers: ask these again "
    "first. The model learned from them too, so the probabilities are too low.",
    "Strongest features": "Change of the decision value for one standard deviation of a feature; of trees, the share "
    "of a feature in it.",
    "Importance of the columns": "Measured on held-out answers, all taken to be right; the line is two standard errors "
    "either way. Correlated columns share their importance: each alone may look unimportant.",
    "Partial dependence": "Mean predicted probability where every row has this value in the column and keeps its "
    "others, over at most 300 rows. Such rows may not exist where columns are correlated.",
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
.soft { color: var(--soft); } details { border-top: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; } summary h2 { display: inline; } @media print { ::details-content {
  content-visibility: visible; } }
.bar { display: inline-block; height: .8rem; } .up { background: var(--up); } .down { background: var(--down); }
.warning, .error { padding: .4rem .6rem; border-radius: .2rem; background: var(--mark); } .half { width: 50%; }
.loss { position: relative; display: block; height: 1.2rem; min-width: 5rem; }
.loss i { position: absolute; top: .55rem; height: 2px; background: var(--ink); }
.number { white-space: nowrap; } .loss .bar { position: absolute; top: .2rem; }
svg { display: block; width: 100%; max-width: 26rem; height: auto; }
svg path { fill: none; stroke: var(--up); stroke-width: 2; }
td:first-child { min-width: 6.5rem; } svg line { stroke: var(--line); }
svg text { fill: var(--soft); font-size: 11px; } td, li { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } code { overflow-wrap: anywhere; }
"""


def whole_page(name: str, parts: Iterable[str]) -> str:
    """Return an HTML page of sections."""
    body = "\n".join([f"<h1>{escape(name)}</h1>", *parts])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def sections(given: Iterable[Finding]) -> dict[str, str]:
    """Return the sections that have facts, by title."""
    title_of = {code: title for title, codes in _SECTIONS.items() for code in codes}
    found: dict[str, list[Finding]] = {title: [] for title in _SECTIONS}
    for fact in given:
        found[title_of.get(fact.code, "To look at")].append(fact)
    folded = False
    shown = {}
    for title, members in found.items():
        folded = folded or title == _FIRST_FOLDED
        if not members and title != "To look at":
            continue
        parts = [_fact(fact) for fact in members]
        parts = parts or ["<p>Nothing in the data disagrees with what the method assumes.</p>"]
        parts += [f'<p class="soft">{_NOTES[title]}</p>'] if title in _NOTES else []
        content = "\n".join(parts)
        count = f" ({len(members) or 'nothing'})" if title == "To look at" else ""
        heading = f"<h2>{title}{count}</h2>" if title else ""
        if folded or all(fact.severity == "info" for fact in members):
            shown[title] = f"<details>\n<summary>{heading}</summary>\n{content}\n</details>"
        else:
            shown[title] = f"<section>\n{heading}\n{content}\n</section>"
    return shown


def _fact(fact: Finding) -> str:
    """Return a sentence with its items and its chart; the headline is below its chart."""
    items = [escape(str(item)) for item in fact.details.get("items", ())]
    if len(items) > _ITEMS_SHOWN:
        items[_ITEMS_SHOWN:] = [f"... and {len(items) - _ITEMS_SHOWN:,} more"]
    chart = f"<ul><li>{'</li><li>'.join(items)}</li></ul>\n" if items else ""
    chart += _CHARTS.get(fact.code, lambda d: "")(fact.details)
    words = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence(fact)))
    text = f'<p class="{fact.severity}">{words}</p>'
    return f"{chart}\n{text}" if fact.code == "headline" else f"{text}\n{chart}".rstrip()


def _headline(d: Details) -> str:
    """Return the number and a bar with its interval; styles are inline, for notebooks."""
    if d["unknown"]:
        return ""
    value, low, high = (d[name] for name in ("value", "low", "high"))
    least = 0.5 if low >= 0.5 else 0.0
    left, right, at = (100 * (share - least) / (1 - least) for share in (low, high, value))
    bar = "position:relative;height:1.2em;background:color-mix(in srgb, currentColor 15%, transparent);max-width:46em"
    span = f"position:absolute;top:0;bottom:0;left:{left:.1f}%;width:{max(right - left, 0.5):.1f}%"
    mark = f"position:absolute;top:-.2em;bottom:-.2em;width:3px;background:currentColor;left:{min(at, 99.5):.1f}%"
    return (
        f'<p style="font-size:2.2em;font-weight:600;margin:0">{value:.1%}</p>\n<div aria-hidden="true" style="{bar}">'
        f'<span style="{span};background:#2a8cb8;opacity:.6"></span><i style="{mark}"></i></div>\n'
        '<p style="display:flex;justify-content:space-between;margin:.2em 0;opacity:.7;max-width:46em">'
        f"<span>{least:.0%}</span><span>100%</span></p>"
    )


def _people(d: Details) -> str:
    people = d["people"][:_PEOPLE_SHOWN]
    rates = [f"{one['value']:.0%} of {one['n_answers']:,}" for one in people]
    ends = [(one["value"], one["low"], one["high"]) for one in people]
    rows = [(one["name"], rate, bool(one["reasons"]), *end) for one, rate, end in zip(people, rates, ends, strict=True)]
    rest = [f"{one['value']:.0%}" for one in d["people"][_PEOPLE_SHOWN:]]
    more = f'<p class="soft">and {len(rest):,} more, {rest[-1]} to {rest[0]}</p>' if rest else ""
    return _forest(("Person", "Wrong"), rows) + more


def _answer_counts(d: Details) -> str:
    names = [escape(name) for name in d["classes"]]
    rows = [f"<tr><th></th>{''.join(f'<th>{name}</th>' for name in names)}</tr>"]
    for i, name in enumerate(names):
        cells = ""
        for same, different in zip(d["same"][i][: i + 1], d["different"][i], strict=False):
            tint = f"color-mix(in srgb, var(--up) {50 * same / (same + different or 1):.0f}%, transparent)"
            shown = f'<td style="background:{tint}">{same:.4g} / {different:.4g}</td>'
            cells += shown if same + different else "<td></td>"
        rows.append(f"<tr><th>{name}</th>{cells}</tr>")
    return _table(rows)


def _annotators(d: Details) -> str:
    rows = []
    for one in d["annotators"]:
        interval = f"{one.low:.1%} to {one.high:.1%}" if one.identified and one.low < one.high else ""
        rate = f"{one.rate:.1%}" if one.identified else "unknown"
        rows.append((one.name or "unknown", f"{one.n_answers:,}", rate, interval))
    return _cells(("Annotator", "Answers", "Wrong", "95% interval"), rows)


def _answered(d: Details) -> str:
    rows = [(one["id"], one["class"], f"{one['probability']:.1%}", one["n_answers"]) for one in d["rows"]]
    more = d["n_rows"] - len(rows)
    rest = f"<p>And {more:,} more: <code>sdulearn fit --answered FILE</code> writes all of them.</p>" if more else ""
    return _cells(("Row", "Class", "Probability", "Answers"), rows) + rest


def _doubtful(d: Details) -> str:
    words = {True: "same", False: "different"}
    rows = [(one.id_a, one.id_b, words[one.similar], one.annotator, f"{one.wrong:.1%}") for one in d["answers"]]
    return _cells(("First", "Second", "Answer", "Annotator", "Wrong"), rows) if rows else ""


def _strengths(d: Details) -> str:
    parts = []
    most = _STRONGEST if len(d["strengths"]) == 1 else _STRONGEST_OF_A_CLASS
    for name, found in d["strengths"].items():
        top = list(found.items())[:most]
        largest = max((abs(value) for _, value in top), default=0.0) or 1.0
        form = "+.3g" if name else ".1%"
        rows = ((k, f"{v:{form}}", abs(v) / largest, "up" if v > 0 else "down") for k, v in top)
        parts.append((f"<p>+ speaks for {escape(name)}</p>\n" if name else "") + _bars(rows))
    return "\n".join(parts)


def _importances(d: Details) -> str:
    rows = []
    for one in d["columns"]:
        # Adding 0 makes -0.0 positive.
        loss = f"{round(100 * one.loss, 1) + 0.0:.1f} ± {200 * one.error:.1f}"
        ends = (one.loss - 2 * one.error, one.loss + 2 * one.error)
        rows.append((one.column, loss, one.loss <= 0, one.loss, *ends))
    return _forest(("Column", "Loss, %"), rows)


def _forest(heads: tuple[str, str], rows: Sequence[tuple[str, str, bool, float, float, float]]) -> str:
    """Return a table of names and numbers, with a bar from zero to the value and its interval."""
    least = min(0.0, *(row[-2] for row in rows))
    most = max(1e-9, *(row[-1] for row in rows))
    shown = [f"<tr><th>{heads[0]}</th><th class='number'>{heads[1]}</th><th></th></tr>"]
    for name, number, bad, *values in rows:
        zero, value, low, high = (100 * (x - least) / (most - least) for x in (0.0, *values))
        bar = f"left:{min(zero, value):.1f}%;width:{abs(value - zero):.1f}%"
        shown.append(
            f"<tr><td>{escape(name)}</td><td class='number'>{number}</td><td class='half'>"
            f'<span class="loss"><span class="bar {"down" if bad else "up"}" style="{bar}"></span>'
            f'<i style="left:{low:.1f}%;width:{high - low:.1f}%"></i></span></td></tr>'
        )
    return _table(shown)


def _dependence(d: Details) -> str:
    """Return a curve over numbers, or bars of the categories with the highest probabilities."""
    if not any(isinstance(value, str) for value in d["values"]):
        return _curve([float(value) for value in d["values"]], d["probability"])
    likeliest = sorted(zip(d["probability"], map(str, d["values"]), strict=True), reverse=True)
    left_out = likeliest[_CATEGORIES_SHOWN:]
    rest = f'<p class="soft">and {len(left_out)} below {left_out[0][0]:.0%}</p>' if left_out else ""
    return _bars((name, f"{share:.0%}", share, "up") for share, name in likeliest[:_CATEGORIES_SHOWN]) + rest


def _curve(values: Sequence[float], shares: Sequence[float]) -> str:
    left, right, bottom, height = 36, 312, 132, 124
    across = (right - left) / max(values[-1] - values[0], 1e-300)
    places = [(left + across * (x - values[0]), bottom - height * y) for x, y in zip(values, shares, strict=True)]
    points = (f"{x:.1f},{y:.1f}" for x, y in places)
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = bottom - height * share
        lines.append(f'<line x1="{left}" x2="{right}" y1="{y:.0f}" y2="{y:.0f}"/>')
        lines.append(f'<text x="{left - 4}" y="{y + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    return (
        f'<svg viewBox="0 0 320 156" aria-hidden="true">{"".join(lines)}<path d="M{" L".join(points)}"/>'
        f'<text x="{left}" y="150">{values[0]:.4g}</text>'
        f'<text x="{right}" y="150" text-anchor="end">{values[-1]:.4g}</text></svg>'
    )


def _bars(rows: Iterable[tuple[str, str, float, str]]) -> str:
    """Return a table of names and values with bars; a share of 1 is the longest bar."""
    return _table(
        f"<tr><td>{escape(name)}</td><td class='number'>{value}</td><td class='half'>"
        f'<span class="bar {kind}" style="width:{100 * share:.1f}%"></span></td></tr>'
        for name, value, share, kind in rows
    )


def _cells(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of texts."""
    shown = ["".join(f"<th>{head}</th>" for head in heads)]
    shown += ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    return _table(f"<tr>{row}</tr>" for row in shown)


def _table(rows: Iterable[str]) -> str:
    return '<div class="wide"><table>\n' + "\n".join(rows) + "\n</table></div>"


_CHARTS = {
    "headline": _headline,
    "class_shares": lambda d: _bars((name, f"{share:.1%}", share, "up") for name, share in d["shares"].items()),
    "answer_counts": _answer_counts,
    "answered": _answered,
    "people": _people,
    "answer_table": _answer_counts,
    "annotators": _annotators,
    "doubtful": _doubtful,
    "strengths": _strengths,
    "importances": _importances,
    "dependence": _dependence,
}
