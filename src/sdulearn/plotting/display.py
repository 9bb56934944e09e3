"""What the displays share: where they draw, and an axis of numbers of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sdulearn.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

ERROR_BARS: dict[str, Any] = {"marker": "o", "ms": 4, "capsize": 3}
"""How means with their standard errors are drawn."""


class Display:
    """Axes and figure of what was drawn."""

    def _axes(self, ax: Axes | None) -> Axes:
        if ax is None:
            _, ax = require("matplotlib.pyplot", "demo").subplots(layout="constrained")
        self.ax_: Axes = ax
        self.figure_: Figure | SubFigure = ax.figure
        return ax


def set_sizes(ax: Axes, n_pairs: Sequence[int]) -> None:
    """Make the horizontal axis one of numbers of pairs, with a tick at each."""
    ax.set(xlabel="number of pairs", xscale="log")
    ax.set_xticks(n_pairs, [str(n) for n in n_pairs])
    ax.minorticks_off()
