"""What the displays share: where they draw."""

from __future__ import annotations

from typing import Any

from sdulearn.extras import require


class Display:
    """Axes and figure of what was drawn."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            _, ax = require("matplotlib.pyplot", "demo").subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax
