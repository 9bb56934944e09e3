"""The base class of the displays, and text that their docstrings share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, Any, Self, dataclass_transform

from sdulearn.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure, SubFigure
else:
    Axes = Any  # matplotlib need not be installed

# Style of means with their standard errors.
ERROR_BARS: dict[str, Any] = {"marker": "o", "ms": 4, "capsize": 3}

# Text for docstrings, which name it on a line of its own.
_PLACE = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)
_SHARED = {
    "y": """\
y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
    What is known about each row.""",
    "cv": """\
cv : int, splitter or None, default=5
    Folds over points: copies of the estimator predict points that they were not fitted on. Give None if the estimator
    has not seen these answers.""",
    "n_bins": """\
n_bins : int, default=10
    Bins of equal width from 0 to 1.""",
    "ax": """\
ax : matplotlib Axes, optional
    Where to draw; a new figure by default.""",
    "display": """\
Returns
-------
Display
    The display, drawn.""",
    "axes": """\
ax_, figure_ : matplotlib Axes and Figure
    Where it was drawn.""",
}
_SHARED["X_and_y"] = f"X : array, sparse matrix or frame of shape (n_rows, n_features)\n    Rows.\n{_SHARED['y']}"
_SHARED["ax_and_display"] = _SHARED["ax"] + "\n\n" + _SHARED["display"]


@dataclass_transform(kw_only_default=True, eq_default=False)
class Display:
    """Base class: a subclass lists its data like a dataclass and draws them in ``_draw``."""

    ax_: Axes
    figure_: Figure | SubFigure

    def __init_subclass__(cls) -> None:
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        documented = [cls, *(method.__func__ for method in vars(cls).values() if isinstance(method, classmethod))]
        for each in documented:
            each.__doc__ = _PLACE.sub(lambda place: indent(_SHARED[place[2]], place[1]), each.__doc__ or "")

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw, or draw again on other axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            Passed to the matplotlib function that draws the main part.

        Returns
        -------
        Display
            The display itself.
        """
        if ax is None:
            _, ax = require("matplotlib.pyplot", "demo").subplots(layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        self._draw(ax, style)
        return self

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        raise NotImplementedError
