"""A plan: accuracy and the prior's interval against the number of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from sdulearn.extras import require
from sdulearn.plotting.display import ERROR_BARS, set_sizes
from sdulearn.plotting.prior import PriorIntervalDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sdulearn.planning import Plan

_COLOURS = {"joint": "black", "sddu": "tab:blue"}


@dataclass(kw_only=True, eq=False, repr=False)
class PlanDisplay:
    """What a simulated plan expects: accuracy on the left, the prior's interval on the right.

    Parameters
    ----------
    plan : Plan
        The plan, as of :func:`sdulearn.planning.simulate_plan`.
    target_accuracy : float, optional
        An accuracy to mark.

    Attributes
    ----------
    axes_ : tuple of two matplotlib Axes
        Where accuracy and prior were drawn.
    figure_ : matplotlib Figure
        The figure of those axes.

    See Also
    --------
    PriorIntervalDisplay : The right side, for any numbers of pairs.
    PairLearningCurveDisplay : Accuracy against the number of pairs, measured on data.

    Examples
    --------
    >>> from sdulearn.planning import simulate_plan
    >>> from sdulearn.plotting import PlanDisplay
    >>> plan = simulate_plan(prior=0.7, methods=("sddu",), sizes=(50, 200), n_repeats=2)
    >>> display = PlanDisplay.from_plan(plan, target_accuracy=0.85)
    >>> display.axes_[0].get_ylabel()
    'accuracy, %'
    """

    plan: Plan
    target_accuracy: float | None = None

    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        target_accuracy: float | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw a plan.

        Parameters
        ----------
        plan : Plan
            The plan.
        target_accuracy : float, optional
            An accuracy to mark.
        axes : sequence of two matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        PlanDisplay
            The display, drawn.
        """
        return cls(plan=plan, target_accuracy=target_accuracy).plot(axes)

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        PlanDisplay
            The display itself.
        """
        if axes is None:
            pyplot = require("matplotlib.pyplot", "demo")
            _, axes = pyplot.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
        left, right = axes
        self.axes_ = (left, right)
        self.figure_ = left.figure
        self._draw_accuracy(left)
        self._draw_prior(right)
        for ax in self.axes_:
            set_sizes(ax, self.plan.sizes)
            ax.grid(alpha=0.3)
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2, frameon=False)
        return self

    def _draw_accuracy(self, ax: Axes) -> None:
        plan = self.plan
        for curve in plan.curves:
            mean = 100 * np.array(curve.accuracy)
            error = 100 * np.array(curve.error)
            colour = _COLOURS[curve.method]
            ax.errorbar(plan.sizes, mean, error, color=colour, label=curve.method, **ERROR_BARS)
        if self.target_accuracy is not None:
            ax.axhline(100 * self.target_accuracy, color="tab:red", ls="--", label="target")
        ax.axhline(100 * plan.ceiling, color="0.5", ls=":", label="best possible (assumed)")
        ax.axhline(100 * plan.prior, color="0.5", ls="-.", label="always the larger class")
        ax.set(title="expected accuracy ± standard error", ylabel="accuracy, %")

    def _draw_prior(self, ax: Axes) -> None:
        estimates = [row.prior for row in self.plan.rows]
        PriorIntervalDisplay.from_estimates(estimates, ax=ax, color="tab:blue")
        ax.set(title="prior from the counts of pairs", ylabel="share of the larger class")
