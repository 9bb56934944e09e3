"""The interval of the class prior against the number of pairs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.pairs import read_pairs
from sdulearn.plotting.display import Display
from sdulearn.prior import dissimilar_share, estimate_prior, similar_share
from sdulearn.types import Array


class PriorIntervalDisplay(Display):
    """The class prior that pair counts imply, with its interval, against the number of pairs.

    Where the band reaches 1/2 the counts do not tell which class is the larger.

    Parameters
    ----------
    n_pairs : array of shape (n_points,)
        Numbers of pairs.
    value, low, high : arrays of shape (n_points,)
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
    line_, band_ : matplotlib artists
        The estimate and the interval.

    Examples
    --------
    >>> from sdulearn.plotting import PriorIntervalDisplay
    >>> display = PriorIntervalDisplay.from_prior(0.7, n_pairs=[50, 5000])
    >>> display.low.round(2).tolist()
    [0.5, 0.68]
    """

    def __init__(
        self, *, n_pairs: Array, value: Array, low: Array, high: Array, confidence: float, name: str | None = None
    ) -> None:
        self.n_pairs, self.value, self.low, self.high = n_pairs, value, low, high
        self.confidence, self.name = confidence, name

    @classmethod
    def from_codes(
        cls, y: ArrayLike, *, confidence: float = 0.95, name: str | None = None, ax: Any = None, **line_kw: Any
    ) -> Self:
        """Follow the estimate as answers come in, in the order of their codes 1, 2, 3, ...

        Give the codes the order in which the questions were asked: :func:`~sdulearn.stack_pairs`
        keeps it.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Pair codes.
        confidence : float, default=0.95
            Level of the interval.
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
        similar = read_pairs(y).similar
        if not len(similar):
            raise InputError("y marks no pairs, so there is no prior to draw. Mark similar pairs +k, others -k.")
        n_similar = np.cumsum(similar)
        total = np.arange(1, len(similar) + 1)
        return cls._from_counts(n_similar, total - n_similar, confidence, name).plot(ax, **line_kw)

    @classmethod
    def from_prior(
        cls,
        prior: float,
        *,
        n_pairs: ArrayLike | None = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> Self:
        """The interval to expect before a single question is asked.

        Parameters
        ----------
        prior : float
            A guess at P(y = +1); the counts are taken at their expected values.
        n_pairs : array-like of int, optional
            Numbers of pairs; 10 to 10,000 by default.
        confidence : float, default=0.95
            Level of the interval.
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
        if not 0 < prior < 1:
            raise InputError(f"prior must lie strictly between 0 and 1, got {prior!r}.")
        n = np.geomspace(10, 10_000, 61) if n_pairs is None else np.asarray(n_pairs, dtype=np.float64)
        majority = "positive" if prior >= 0.5 else "negative"
        display = cls._from_counts(n * similar_share(prior), n * dissimilar_share(prior), confidence, name, majority)
        return display.plot(ax, **line_kw)

    @classmethod
    def _from_counts(
        cls, n_similar: Any, n_dissimilar: Any, confidence: float, name: str | None, majority: str = "positive"
    ) -> Self:
        found = [
            estimate_prior(float(s), float(d), majority=majority, confidence=confidence)
            for s, d in zip(n_similar, n_dissimilar, strict=True)
        ]
        return cls(
            n_pairs=np.asarray(n_similar + n_dissimilar, dtype=np.float64),
            value=np.array([e.value for e in found]),
            low=np.array([e.low for e in found]),
            high=np.array([e.high for e in found]),
            confidence=confidence,
            name=name,
        )

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **line_kw
            Passed to ``ax.plot``.

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        (self.line_,) = ax.plot(self.n_pairs, self.value, **{"label": self.name or "estimate", **line_kw})
        label = None if self.name else f"{self.confidence:.0%} interval"
        self.band_ = ax.fill_between(
            self.n_pairs, self.low, self.high, alpha=0.2, color=self.line_.get_color(), linewidth=0, label=label
        )
        ax.axhline(0.5, color="0.4", linewidth=1, linestyle=":")
        ax.set(xlabel="number of pairs", ylabel="prior P(y = +1)", xscale="log")
        ax.legend(loc="best")
        return self
