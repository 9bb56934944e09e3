"""The interval of the class prior against the number of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.pairs import read_pairs
from sdulearn.plotting.display import Display
from sdulearn.prior import PriorEstimate, dissimilar_share, estimate_prior, similar_share
from sdulearn.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The likelihood of answers that share points is followed at so many numbers of them.
_FOLLOWED = 200


@dataclass(kw_only=True, eq=False, repr=False)
class PriorIntervalDisplay(Display):
    """The class prior that pair counts imply, with its interval, against the number of pairs.

    Where the band reaches 1/2 the counts do not tell which class is the larger. It is for two classes: with more,
    counts do not tell the shares, and :class:`ClassProbabilityDisplay` draws those of a model.

    Parameters
    ----------
    n_pairs : array of shape (n_points,)
        Numbers of pairs.
    value, low, high : array of shape (n_points,)
        The estimate and the ends of its interval at each of them.
    confidence : float
        Level of the interval.
    name : str or None
        Entry in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of those axes.
    line_ : matplotlib Line2D
        The estimate.
    band_ : matplotlib FillBetweenPolyCollection
        The interval.

    See Also
    --------
    sdulearn.estimate_prior : The estimate itself.
    PlanDisplay : The interval to expect, beside the accuracy.

    Examples
    --------
    >>> from sdulearn.plotting import PriorIntervalDisplay
    >>> display = PriorIntervalDisplay.from_prior(0.7, n_pairs=[50, 5000])
    >>> display.low.round(2).tolist()
    [0.5, 0.68]
    """

    n_pairs: Array
    value: Array
    low: Array
    high: Array
    confidence: float
    name: str | None = None

    @classmethod
    def from_estimates(
        cls,
        estimates: Sequence[PriorEstimate],
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw estimates that are there.

        Parameters
        ----------
        estimates : sequence of PriorEstimate
            Estimates from counts, of one confidence, in ascending order of their numbers of pairs.
        name : str, optional
            Entry in the legend.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **line_kw
            Passed to ``ax.plot``.

        Returns
        -------
        PriorIntervalDisplay
            The display, drawn.
        """
        counts = [(estimate.n_similar, estimate.n_dissimilar) for estimate in estimates]
        if not counts or (None, None) in counts:
            raise InputError("`estimates` must hold one estimate or more, each from counts of pairs.")
        display = cls(
            n_pairs=np.array(counts, dtype=np.float64).sum(axis=1),
            value=np.array([estimate.value for estimate in estimates]),
            low=np.array([estimate.low for estimate in estimates]),
            high=np.array([estimate.high for estimate in estimates]),
            confidence=estimates[0].confidence or 0.0,
            name=name,
        )
        return display.plot(ax, **line_kw)

    @classmethod
    def from_codes(cls, y: ArrayLike, *, confidence: float = 0.95, **options: Any) -> Self:
        """Follow the estimate as answers come in, in the order of their codes 1, 2, 3, ...

        Give the codes the order in which the questions were asked: :func:`~sdulearn.stack_pairs`
        keeps it.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row. Where answers share points, their likelihood is followed, at
            up to 200 numbers of answers.
        confidence : float, default=0.95
            Level of the interval.
        **options
            Passed to :meth:`from_estimates`: ``name``, ``ax`` and what ``ax.plot`` takes.

        Returns
        -------
        PriorIntervalDisplay
            The display, drawn.
        """
        pairs = read_pairs(y)
        similar = pairs.similar
        if not len(similar):
            raise InputError("`y` marks no pairs, so there is no prior to draw. Mark similar pairs +k, others -k.")
        if pairs.labels is not None and pairs.labels.max(initial=0) > 1:
            raise InputError(
                f"`y[:, 3]` has the label {pairs.labels.max()}, one of more than two classes, and their shares do not "
                "follow from counts. Draw those of a fitted model: ClassProbabilityDisplay.from_estimator."
            )
        if pairs.shares_points:
            table = np.asarray(pairs)
            ns = np.unique(np.linspace(1, len(similar), min(len(similar), _FOLLOWED)).astype(int)).tolist()
            found = [estimate_prior(y=table[pairs.ends[:n].ravel()], confidence=confidence) for n in ns]
            return cls.from_estimates(found, **options)
        n_similar = np.cumsum(similar)
        counts = zip(n_similar.tolist(), np.cumsum(~similar).tolist(), strict=True)
        estimates = [estimate_prior(*pair, confidence=confidence) for pair in counts]
        return cls.from_estimates(estimates, **options)

    @classmethod
    def from_prior(
        cls,
        prior: float,
        *,
        n_pairs: ArrayLike | None = None,
        confidence: float = 0.95,
        **options: Any,
    ) -> Self:
        """Draw the interval to expect before a single question is asked.

        Parameters
        ----------
        prior : float
            A guess at P(y = +1); the counts are taken at their expected values.
        n_pairs : array-like of int, optional
            Numbers of pairs; 10 to 10,000 by default.
        confidence : float, default=0.95
            Level of the interval.
        **options
            Passed to :meth:`from_estimates`: ``name``, ``ax`` and what ``ax.plot`` takes.

        Returns
        -------
        PriorIntervalDisplay
            The display, drawn.
        """
        if not 0 < prior < 1:
            raise InputError(f"`prior` must lie strictly between 0 and 1, got {prior!r}.")
        sizes = np.geomspace(10, 10_000, 61) if n_pairs is None else np.asarray(n_pairs, dtype=np.float64)
        majority = "positive" if prior >= 0.5 else "negative"
        ps = similar_share(prior)
        pd = dissimilar_share(prior)
        estimates = [estimate_prior(n * ps, n * pd, majority=majority, confidence=confidence) for n in sizes.tolist()]
        return cls.from_estimates(estimates, **options)

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **line_kw
            Passed to ``ax.plot``.

        Returns
        -------
        PriorIntervalDisplay
            The display itself.
        """
        ax = self._axes(ax)
        style = {"label": self.name or "estimate", **line_kw}
        (self.line_,) = ax.plot(self.n_pairs, self.value, **style)
        self.band_ = ax.fill_between(
            self.n_pairs,
            self.low,
            self.high,
            alpha=0.2,
            color=self.line_.get_color(),
            linewidth=0,
            label=None if self.name else f"{self.confidence:.0%} interval",
        )
        half = None if self.name else "1/2: counts tell nothing"
        ax.axhline(0.5, color="0.4", linewidth=1, linestyle=":", label=half)
        ax.set(xlabel="number of pairs", ylabel="prior P(y = +1)", xscale="log")
        ax.legend(loc="best")
        return self
