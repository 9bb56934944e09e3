"""The figures: one panel per data set, as inline SVG for the page and as one PNG for everything else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.experiments.measurements import Measurements, Setting, mean_of
from sdulearn.experiments.methods import METHODS
from sdulearn.experiments.optional import pyplot

# Okabe and Ito's colours, told apart by everybody; markers tell them apart in print.
_STYLES: dict[str, tuple[str, str]] = {
    "su-squared": ("#0072b2", "o"),
    "du-squared": ("#d55e00", "s"),
    "sd-squared": ("#009e73", "^"),
    "sdsu-squared": ("#0072b2", "o"),
    "sddu-squared": ("#d55e00", "s"),
    "sudu-squared": ("#cc79a7", "D"),
    "sddu-double_hinge": ("#e69f00", "v"),
    "joint": ("#56b4e9", "*"),
    "supervised": ("#666666", "x"),
    "ckm": ("#999933", "P"),
    "itml": ("#882255", "X"),
}


@dataclass(frozen=True)
class Figure:
    """How a protocol is drawn.

    Attributes
    ----------
    name : str
        The protocol's.
    x, x_label : str
        Field of the setting on the horizontal axis, and its caption.
    y_label : str
        Caption of the vertical axis.
    error : bool
        Whether to draw the error rate instead of the accuracy.
    quantity : str
        See :class:`~sdulearn.experiments.measurements.Measurements`.
    dashed : str or None
        A method drawn as one black dashed line: its mean over the whole axis.
    caption : str
        What the reader should know; {n_pairs}, {n_unlabeled} and {prior} are filled in.
    """

    name: str
    x: str
    x_label: str
    y_label: str
    caption: str
    error: bool = False
    quantity: str = "accuracy"
    dashed: str | None = None


FIGURES = (
    Figure(
        "figure2", "n_pairs", "pairs", "error rate, %", error=True,
        caption="Squared loss, {n_unlabeled} unlabeled rows, prior {prior}, known to the method. Lower is better.",
    ),
    Figure(
        "figure3", "n_unlabeled", "unlabeled rows", "error rate, %", error=True, dashed="sd-squared",
        caption="{n_pairs} pairs, squared loss, prior from the pair counts. Lower is better. The dashed line is SD, "
        "which uses no unlabeled rows. The paper prints no numbers on this axis; we chose {n_unlabeled}, which every "
        "set can supply.",
    ),
    Figure(
        "wrong_prior", "assumed", "prior told to the method", "accuracy, %",
        caption="The true prior is {prior} ({n_pairs} pairs, {n_unlabeled} unlabeled rows), but the method is told "
        "another one, for training and for its own cross-validation.",
    ),
    Figure(
        "priors", "prior", "true prior", "accuracy, %", quantity="matched",
        caption="{n_pairs} pairs, {n_unlabeled} unlabeled rows, known prior. At 0.5 nothing can tell which class is "
        "which, so here all methods are scored up to the names of the classes. The marginal risks divide by the gap "
        "between the shares of the classes: they have no answer at 0.5.",
    ),
    Figure(
        "noise", "flip", "share of wrong answers", "accuracy, %",
        caption="{n_pairs} pairs, {n_unlabeled} unlabeled rows, known prior {prior}; this share of the same/different "
        "answers is turned round.",
    ),
)  # fmt: skip


def caption(figure: Figure, measured: Measurements) -> str:
    """The caption with the sizes that were measured."""
    settings = measured.settings()
    text = figure.caption.format(
        **{name: _span({getattr(s, name) for s in settings}) for name in ("n_pairs", "n_unlabeled", "prior")}
    )
    short = any((s.dataset, s.n_pairs) == ("w8a", 600) for s in settings)
    return text + (" At 600 pairs w8a has fewer test points: it runs out of positive ones." if short else "")


def _span(values: set[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def style(method: str) -> tuple[str, str]:
    """Colour and marker of a method."""
    return _STYLES.get(method, ("#000000", "."))


def drawn_methods(figure: Figure, measured: Measurements) -> list[str]:
    """Methods with at least one number, in the order of ``_STYLES``."""
    found = {method for s in measured.settings() for method in measured.methods(s)}
    return [method for method in _STYLES if method in found and method != figure.dashed]


def svg_panels(figure: Figure, measured: Measurements) -> dict[str, str]:
    """An SVG element for each data set."""
    return {name: _svg(figure, measured, name) for name in _sets(measured)}


def write_png(path: Path, figure: Figure, measured: Measurements, columns: int = 5) -> None:
    """All panels in one picture, with a legend."""
    names = _sets(measured)
    columns = min(columns, len(names))
    rows = -(-len(names) // columns)
    plt = pyplot()
    with _look(plt):
        picture, axes = plt.subplots(rows, columns, figsize=(2.6 * columns, 2.1 * rows + 0.5), squeeze=False)
        for axis in axes.flat[len(names) :]:
            axis.set_visible(False)
        for name, axis in zip(names, axes.flat, strict=False):
            _draw(axis, figure, measured, name)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        picture.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
        picture.tight_layout(rect=(0, 0, 1, 1 - 0.45 / (2.1 * rows + 0.5)))
        picture.savefig(path, dpi=110)
        plt.close(picture)


def _sets(measured: Measurements) -> list[str]:
    return sorted({s.dataset for s in measured.settings()})


def _svg(figure: Figure, measured: Measurements, dataset: str) -> str:
    plt = pyplot()
    # The salt keeps ids of different panels apart on one page, and makes the same numbers the same
    # file.
    with _look(plt, **{"svg.fonttype": "none", "svg.hashsalt": f"{figure.name}-{dataset}"}):
        picture, axis = plt.subplots(figsize=(3.0, 2.5))
        _draw(axis, figure, measured, dataset)
        picture.tight_layout()
        file = io.StringIO()
        picture.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
        plt.close(picture)
    text = file.getvalue()
    # Groups are numbered alike in every picture; nothing refers to them, and ids must be unique on
    # a page.
    body = re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") + len("<svg ") :])
    return f'<svg role="img" aria-label="{figure.name}, {dataset}" {body}'


def _draw(axis: Any, figure: Figure, measured: Measurements, dataset: str) -> None:
    settings = measured.settings(dataset=dataset)
    for method in drawn_methods(figure, measured):
        _curve(axis, figure, measured, settings, method)
    if figure.dashed:
        pooled = [v for s in settings for v in measured.values(s, figure.dashed).values()]
        if pooled:
            level = _direction(figure)(float(np.mean(pooled)))
            axis.axhline(level, color="black", linestyle="--", label=METHODS[figure.dashed].label)
    axis.set_title(dataset)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(figure.y_label)


def _curve(axis: Any, figure: Figure, measured: Measurements, settings: list[Setting], method: str) -> None:
    points = [(getattr(s, figure.x), mean_of(v)) for s in settings if (v := measured.values(s, method))]
    points.sort(key=lambda point: point[0])
    colour, marker = style(method)
    turn = _direction(figure)
    axis.errorbar(
        [x for x, _ in points], [turn(mean.value) for _, mean in points], [mean.error for _, mean in points],
        color=colour, marker=marker, markersize=4, linewidth=1.4, capsize=2, label=METHODS[method].label,
    )  # fmt: skip


def _direction(figure: Figure) -> Callable[[float], float]:
    return (lambda accuracy: 100 - accuracy) if figure.error else (lambda accuracy: accuracy)


def _look(plt: Any, **more: Any) -> Any:
    return plt.rc_context(
        {
            "font.size": 8.5, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
            "axes.grid": True, "grid.color": "#e5e5e5", "grid.linewidth": 0.7, "axes.edgecolor": "#888888",
            "font.family": "sans-serif", **more,
        }
    )  # fmt: skip
