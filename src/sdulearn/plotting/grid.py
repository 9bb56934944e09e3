"""Risk or likelihood against the settings that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.joint import PairLogisticRegressionCV
from sdulearn.metrics import pair_log_likelihood
from sdulearn.plotting.display import ERROR_BARS, Display
from sdulearn.types import Array, Estimator, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer


@dataclass(kw_only=True, eq=False, repr=False)
class RiskGridDisplay(Display):
    """What cross-validation on pairs found: the held-out risk against ``alpha`` and ``gamma``.

    Parameters
    ----------
    alphas : array of shape (n_settings,)
        Penalty of each setting.
    gammas : array of shape (n_settings,) or None
        Mixture weight of each setting.
    risk, error : array of shape (n_settings,)
        Mean over the folds and its standard error.
    best : int
        The setting that was chosen.
    risk_name : str
        What the risk is, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of those axes.
    lines_ : list of matplotlib ErrorbarContainer
        One for each alpha, or a single one without gamma.

    See Also
    --------
    sdulearn.SDUClassifierCV : Chooses gamma and alpha by the risk of held-out pairs.

    Examples
    --------
    >>> from sdulearn import SDUClassifierCV
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.plotting import RiskGridDisplay
    >>> X, y = make_waveform(2000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=60, n_unlabeled=100, prior=0.7, random_state=0)
    >>> model = SDUClassifierCV().fit(rows, codes)
    >>> display = RiskGridDisplay.from_estimator(model)
    >>> bool(display.risk[display.best] == display.risk.min())
    True
    """

    alphas: Array
    gammas: Array | None
    risk: Array
    error: Array
    best: int
    risk_name: str = "held-out risk"

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes | None = None) -> Self:
        """Draw ``cv_results_`` of a fitted search.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            SDUClassifierCV, PairLogisticRegressionCV, GridSearchCV, or a pipeline that ends in one.
            The score of a PairLogisticRegressionCV is the log-likelihood of held-out answers, drawn
            as a loss; of the others one minus a risk.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        RiskGridDisplay
            The display, drawn.
        """
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        if not hasattr(estimator, "cv_results_"):
            raise InputError(
                f"`estimator` ({type(estimator).__name__}) has no cv_results_. Fit SDUClassifierCV, "
                "PairLogisticRegressionCV or GridSearchCV first, and pass that."
            )
        scoring = getattr(estimator, "scoring", None)
        likelihood = isinstance(estimator, PairLogisticRegressionCV) or scoring is pair_log_likelihood
        best = None
        if hasattr(estimator, "alpha_"):
            best = {"alpha": estimator.alpha_, "gamma": getattr(estimator, "gamma_", None)}
        return cls.from_results(estimator.cv_results_, likelihood=likelihood, best=best, ax=ax)

    @classmethod
    def from_results(
        cls,
        results: Mapping[str, ArrayLike],
        *,
        likelihood: bool = False,
        best: Mapping[str, float | None] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a table of results.

        Parameters
        ----------
        results : dict
            A ``cv_results_`` with a parameter ``alpha``, or one that ends in ``__alpha``.
        likelihood : bool, default=False
            Whether the scores are log-likelihoods; otherwise a score is one minus a risk.
        best : dict, optional
            The ``alpha`` and ``gamma`` to mark; the highest score by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        RiskGridDisplay
            The display, drawn.
        """
        alphas = _parameter(results, "alpha")
        gammas = _parameter(results, "gamma")
        if alphas is None:
            raise InputError("`results` hold no parameter 'alpha' (or one that ends in '__alpha'): nothing to draw.")
        score = np.asarray(results["mean_test_score"], dtype=np.float64)
        folds = sum(key.startswith("split") and key.endswith("_test_score") for key in results)
        chosen = int(np.argmax(score))
        if best is not None:
            found = alphas == best["alpha"]
            if gammas is not None:
                found &= gammas == best["gamma"]
            chosen = int(np.flatnonzero(found)[0])
        display = cls(
            alphas=alphas,
            gammas=gammas,
            risk=-score if likelihood else 1 - score,
            error=np.asarray(results["std_test_score"]) / np.sqrt(max(folds - 1, 1)),
            best=chosen,
            risk_name="held-out loss of an answer" if likelihood else "held-out risk",
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        RiskGridDisplay
            The display itself.
        """
        ax = self._axes(ax)
        self.lines_: list[ErrorbarContainer] = []
        if self.gammas is None:
            x = self.alphas
            self._line(ax, x, np.ones(len(x), dtype=bool), None)
            ax.set(xlabel="alpha", xscale="log")
        else:
            kinds, kind = np.unique(-self.alphas, return_inverse=True)
            # Side by side, so that no error bar hides another.
            step = np.min(np.diff(np.unique(self.gammas)), initial=1.0)
            x = self.gammas + 0.08 * step * (kind - (len(kinds) - 1) / 2)
            for k, alpha in enumerate(-kinds):
                self._line(ax, x, kind == k, f"alpha = {alpha:g}")
            ax.set(xlabel="gamma")
        ax.set(ylabel=self.risk_name)
        at = (x[self.best], self.risk[self.best])
        ax.plot(*at, "o", ms=13, mfc="none", mec="black", mew=1.6, label="chosen")
        ax.legend(loc="best")
        return self

    def _line(self, ax: Axes, x: Array, which: Mask, label: str | None) -> None:
        order = np.flatnonzero(which)[np.argsort(x[which])]
        line = ax.errorbar(x[order], self.risk[order], self.error[order], label=label, **ERROR_BARS)
        self.lines_.append(line)


def _parameter(results: Mapping[str, ArrayLike], name: str) -> Array | None:
    """The column of a parameter, be it of the estimator or of a step of a pipeline."""
    for key, values in results.items():
        if key == f"param_{name}" or (key.startswith("param_") and key.endswith(f"__{name}")):
            return np.asarray(values, dtype=np.float64)
    return None
