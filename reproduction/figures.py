"""The figures: one panel per data set, as inline SVG for the page and as one PNG for the rest."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture  # needs no window, and leaves the choice of one alone

from reproduction.methods import METHODS
from reproduction.tables import Measurements, Setting, mean_of

# Okabe and Ito's colours, told apart by everybody; markers tell them apart in print.
_STYLES: dict[str, tuple[str, str]] = {
    "su-squared": ("#0072b2", "o"),
    "du-squared": ("#cc79a7", "D"),
    "sd-squared": ("#009e73", "^"),
    "sdsu-squared": ("#0072b2", "o"),
    "sddu-squared": ("#d55e00", "s"),
    "sudu-squared": ("#cc79a7", "D"),
    "sddu-double_hinge": ("#e69f00", "v"),
    "joint": ("#56b4e9", "*"),
    "supervised": ("#666666", "x"),
    "km": ("#aaaaaa", "+"),
    "ckm": ("#999933", "P"),
    "itml": ("#882255", "X"),
}
_LOOK: dict[Any, Any] = {
    "font.size": 8.5,
    "font.family": "sans-serif",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.7,
}


@dataclass(frozen=True)
class Figure:
    """How the protocol of this name is drawn; {n_pairs}, {n_unlabeled} and {prior} of the caption are filled in."""

    name: str
    x: str  # field of the setting on the horizontal axis
    x_label: str
    caption: str
    error: bool = False  # whether to draw the error rate instead of the accuracy
    quantity: str = "accuracy"
    dashed: str | None = None  # a method drawn as one black dashed line: its mean over the whole axis

    @property
    def y_label(self) -> str:
        """Caption of the vertical axis."""
        return "error rate, %" if self.error else "accuracy, %"

    def height(self, accuracy: float) -> float:
        """Where an accuracy stands on the vertical axis."""
        return 100 - accuracy if self.error else accuracy


FIGURES = (
    Figure(
        "figure2",
        x="n_pairs",
        x_label="pairs",
        error=True,
        caption="Squared loss, {n_unlabeled} unlabeled rows, prior {prior}, known to the method. Lower is better.",
    ),
    Figure(
        "figure3",
        x="n_unlabeled",
        x_label="unlabeled rows",
        error=True,
        dashed="sd-squared",
        caption="{n_pairs} pairs, squared loss, prior from the pair counts. Lower is better. The dashed "
        "line is SD, which uses no unlabeled rows. The paper prints no numbers on this axis; we chose "
        "{n_unlabeled}, which every set can supply.",
    ),
    Figure(
        "wrong_prior",
        x="assumed",
        x_label="prior given to the method",
        caption="The true prior is {prior} ({n_pairs} pairs, {n_unlabeled} unlabeled rows), but the "
        "method is given another one, for training and for its own cross-validation.",
    ),
    Figure(
        "priors",
        x="prior",
        x_label="true prior",
        quantity="matched",
        caption="{n_pairs} pairs, {n_unlabeled} unlabeled rows, known prior. At 0.5 nothing can tell "
        "which class is which, so here all methods are scored up to the names of the classes. The "
        "marginal risks divide by the gap between the shares of the classes: they have no answer at 0.5.",
    ),
    Figure(
        "noise",
        x="flip",
        x_label="share of wrong answers",
        caption="{n_pairs} pairs, {n_unlabeled} unlabeled rows, known prior {prior}; this share of the "
        "same/different answers is turned round.",
    ),
)


def caption(figure: Figure, measured: Measurements) -> str:
    """The caption with the sizes that were measured."""
    settings = measured.settings()
    names = ("n_pairs", "n_unlabeled", "prior")
    spans = {name: _span({getattr(s, name) for s in settings}) for name in names}
    text = figure.caption.format(**spans)
    if any((s.dataset, s.n_pairs) == ("w8a", 600) for s in settings):
        text += " At 600 pairs w8a has fewer test points: it runs out of positive ones."
    return text


def _span(values: set[float]) -> str:
    low = min(values)
    high = max(values)
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
    return {name: _svg(figure, measured, name) for name in measured.datasets()}


def write_png(path: Path, figure: Figure, measured: Measurements) -> None:
    """All panels in one picture, five side by side, with a legend."""
    names = measured.datasets()
    columns = min(5, len(names))
    rows = -(-len(names) // columns)
    with _look():
        picture = Picture(figsize=(2.6 * columns, 2.2 * rows + 0.5), layout="constrained")
        axes = picture.subplots(rows, columns, squeeze=False).flatten()
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        for name, axis in zip(names, axes, strict=False):
            _draw(axis, figure, measured, name)
        handles, labels = axes[0].get_legend_handles_labels()
        beside = min(len(labels), 2 * columns)
        picture.legend(handles, labels, loc="outside upper center", ncols=beside, frameon=False)
        picture.savefig(path, dpi=110)


def _look(more: dict[Any, Any] | None = None) -> AbstractContextManager[None]:
    return matplotlib.rc_context({**_LOOK, **(more or {})})


def _svg(figure: Figure, measured: Measurements, dataset: str) -> str:
    # The salt keeps ids of different panels apart on one page, and makes the same numbers the same
    # file.
    with _look({"svg.fonttype": "none", "svg.hashsalt": f"{figure.name}-{dataset}"}):
        picture = Picture(figsize=(3.0, 2.5), layout="constrained")
        _draw(picture.subplots(), figure, measured, dataset)
        file = io.StringIO()
        picture.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    text = file.getvalue()
    # Groups are numbered alike in every picture; nothing refers to them, and ids must be unique on
    # a page.
    body = re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") + len("<svg ") :])
    return f'<svg role="img" aria-label="{figure.name}, {dataset}" {body}'


def _draw(axis: Axes, figure: Figure, measured: Measurements, dataset: str) -> None:
    settings = measured.settings(dataset)
    for method in drawn_methods(figure, measured):
        _curve(axis, figure, measured, settings, method)
    if figure.dashed:
        _level(axis, figure, measured, settings, figure.dashed)
    axis.set_title(dataset)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(figure.y_label)


def _curve(axis: Axes, figure: Figure, measured: Measurements, settings: list[Setting], method: str) -> None:
    found = [s for s in settings if measured.values(s, method)]
    points = [(getattr(s, figure.x), mean_of(measured.values(s, method))) for s in found]
    points.sort(key=lambda point: point[0])
    colour, marker = style(method)
    axis.errorbar(
        [x for x, _ in points],
        [figure.height(mean.value) for _, mean in points],
        [mean.error for _, mean in points],
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.4,
        capsize=2,
        label=METHODS[method].label,
    )


def _level(axis: Axes, figure: Figure, measured: Measurements, settings: list[Setting], method: str) -> None:
    pooled = [value for s in settings for value in measured.values(s, method).values()]
    if pooled:
        level = figure.height(float(np.mean(pooled)))
        axis.axhline(level, color="black", linestyle="--", label=METHODS[method].label)
