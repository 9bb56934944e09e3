"""The page that ``fit`` writes beside a model: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.table_model import TableModel

_FEATURES_SHOWN = 20
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
.bar { display: inline-block; height: .8rem; } .up { background: var(--up); } .down { background: var(--down); }
li.warning { background: var(--mark); padding: .4rem .6rem; margin: .4rem 0; list-style: none; border-radius: .2rem; }
ul { padding: 0; } code { overflow-wrap: anywhere; }
"""


def write_page(path: Path, model: TableModel, model_path: Path) -> None:
    """Write the page of a model that was just fitted."""
    path.write_text(html_page(model, model_path), encoding="utf-8")


def html_page(model: TableModel, model_path: Path) -> str:
    """The whole page."""
    about = model.about
    parts = [
        f"<h1>{escape(model_path.name)}</h1>",
        f'<p class="soft">{escape(about["method"])}</p>',
        _section("Estimated accuracy", _accuracy(about["accuracy"])),
        _section("To look at", _warnings(about["warnings"])),
        _section("Share of each class", _prior(model)),
        _section("What was read", _facts(about)),
        _section("What the model goes by", _features(model)),
        _section("Use it", f"<p><code>sdulearn predict {escape(str(model_path))} TABLE -o out.csv</code></p>"),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(model_path.name)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def _accuracy(accuracy: dict[str, Any]) -> str:
    value, low, high = accuracy["value"], accuracy["low"], accuracy["high"]
    lines = [
        f'<p><span class="big">{value:.1%}</span> <span class="soft">95% interval {low:.1%} to {high:.1%}</span></p>',
        _scale(value, low, high),
        f"<p>From {accuracy['n_answers']:,} held-out answers alone; the model gives {accuracy['agreement']:.1%} of "
        "them. For random pairs, 2 × agreement − 1 = (2 × accuracy − 1)². Which class is called which, it "
        "cannot tell.</p>",
    ]
    if accuracy["risk_accuracy"] is not None:
        lines.append(
            f'<p class="soft">By the SD risk of the paper: {accuracy["risk_accuracy"]:.1%} ± '
            f"{accuracy['risk_error']:.1%} (one standard error, given the prior).</p>"
        )
    return "\n".join(lines)


def _scale(value: float, low: float, high: float) -> str:
    """A bar from 50% to 100% with the interval and the value."""
    at, left, right = (200 * (share - 0.5) for share in (value, low, high))
    return (
        f'<div class="scale" role="img" aria-label="{value:.1%}, interval {low:.1%} to {high:.1%}, on 50% to 100%">'
        f'<span style="left:{left:.1f}%;width:{max(right - left, 0.5):.1f}%"></span>'
        f'<i style="left:{min(at, 99.5):.1f}%"></i></div><p class="soft">50% to 100%</p>'
    )


def _warnings(found: list[str]) -> str:
    if not found:
        return "<p>Nothing in the data disagrees with what the method assumes.</p>"
    return "<ul>\n" + "\n".join(f'<li class="warning">{escape(text)}</li>' for text in found) + "\n</ul>"


def _prior(model: TableModel) -> str:
    prior, name = model.estimator.prior_, escape(model.classes[1])
    if prior.confidence is None:
        return f"<p>{prior.value:.3g} of the rows are of class <b>{name}</b>, as given.</p>"
    unknown = "" if prior.identified else " The counts do not exclude 1/2."
    return (
        f"<p>{prior.value:.3f} of the rows are of class <b>{name}</b> ({prior.confidence:.0%} interval "
        f"{prior.low:.3f} to {prior.high:.3f}, from the pair counts).{unknown}</p>"
    )


def _facts(about: dict[str, Any]) -> str:
    table, pairs = about["table"], about["pairs"]
    rows = [
        ("Table", f"{table['file']}: {table['rows']:,} rows, {table['unlabeled_used']:,} used as unlabeled"),
        ("Answers", f"{pairs['file']}: {pairs['similar']:,} similar, {pairs['dissimilar']:,} dissimilar used; "
                    f"{pairs['unsure']:,} unsure"),
        ("Understood as", "; ".join(pairs["understood"])),
    ]  # fmt: skip
    return _table(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)


def _features(model: TableModel) -> str:
    """The strongest features, by the change of the decision for one standard deviation."""
    strength = model.estimator.coef_[0] * model.spread
    top = np.argsort(-np.abs(strength), kind="stable")[:_FEATURES_SHOWN]
    largest = max(float(np.abs(strength).max(initial=0.0)), 1e-300)
    names = model.layout.feature_names
    rows = (
        f"<tr><td>{escape(names[j])}</td><td>{strength[j]:+.3g}</td><td style='width:50%'>"
        f'<span class="bar {"up" if strength[j] > 0 else "down"}" '
        f'style="width:{100 * abs(strength[j]) / largest:.1f}%"></span></td></tr>'
        for j in top.tolist()
    )
    note = f"Change of the decision value for one standard deviation of the feature; + speaks for {model.classes[1]}."
    return f'<p class="soft">{escape(note)}</p>\n{_table(rows)}'


def _table(rows: Iterable[str]) -> str:
    return "<table>\n" + "\n".join(rows) + "\n</table>"
