"""Learning curves, intervals of the prior, plans, and held-out risk by setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from sdulearn.errors import InputError, require
from sdulearn.metrics.cross_validation import fitted
from sdulearn.metrics.risk import pair_log_likelihood
from sdulearn.model_selection import PairKFold
from sdulearn.pairs import read_pairs
from sdulearn.plotting.display import ERROR_BARS, Display
from sdulearn.prior import PriorEstimate, estimate_prior
from sdulearn.progress import long_work, steps
from sdulearn.risks import dissimilar_share, similar_share
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, MatrixLike, RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sdulearn.planning import Plan

# Most numbers of answers at which the prior is estimated.
_MOST_ESTIMATES = 200
# Estimators that choose settings hold out a fifth of each kind of answer.
_FEWEST_OF_A_KIND = 5
_COLOURS = {"joint": "black", "sddu": "tab:blue"}


class PairLearningCurveDisplay(Display):
    """Learning curve: score of a model by the number of training pairs.

    Attributes
    ----------
    n_pairs, scores : arrays of shape (n_sizes,) and (n_sizes, n_repeats)
        Numbers of training pairs, and the score of every fit.
    score_name, name : str
        Label of the axis, and entry in the legend.
    %(axes)s
    line_ : matplotlib ErrorbarContainer
        Means with their standard errors.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.plotting import PairLearningCurveDisplay
    >>> X, y = make_waveform(3000, random_state=0)
    >>> sizes = {"n_pairs": 200, "n_unlabeled": 200, "n_test": 300}
    >>> rows, codes, *test = sample_sdu(X, y, **sizes, prior=0.7, random_state=0)
    >>> options = {"n_pairs": [20, 200], "test": test, "random_state": 0}
    >>> model = PairLogisticRegression()
    >>> display = PairLearningCurveDisplay.from_estimator(model, rows, codes, **options)
    >>> bool(display.scores[0].mean() < display.scores[1].mean())
    True
    """

    n_pairs: Indices
    scores: Array
    score_name: str = "score"
    name: str | None = None

    @classmethod
    @long_work
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        n_pairs: Sequence[int] | None = None,
        test: tuple[MatrixLike, ArrayLike] | None = None,
        scoring: Callable[[Estimator, MatrixLike, ArrayLike], float] | None = None,
        n_repeats: int = 5,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> Self:
        """Fit on random subsets of the pairs, with all unlabeled rows.

        Every subset has the same share of similar pairs as all pairs, and within a repeat the
        larger subsets contain the smaller ones.

        Parameters
        ----------
        estimator : estimator or pipeline
            It is cloned for every fit.
        %(X_and_y)s
        n_pairs : sequence of int, optional
            Numbers of training pairs; by default up to five. The smallest has five pairs of the
            rarer kind, which estimators that choose settings need.
        test : tuple of (X_test, y_test), optional
            Labelled test points; for more than two classes ``y`` must have labels, too. Without
            ``test``, points are held out by :class:`~sdulearn.PairKFold`.
        scoring : callable, optional
            A function (estimator, X, y) -> float; by default accuracy on the test points, or the
            estimator's own ``score`` on the held-out pairs.
        n_repeats : int, default=5
            Number of random draws, or of folds without ``test``.
        random_state : int, RandomState or None, default=None
            Seed of the draws.
        %(line_and_display)s
        """
        codes = np.asarray(read_pairs(y))
        rng = check_random_state(random_state)
        if test is None:
            splits = list(PairKFold(n_repeats, random_state=rng).split(X, codes))
            parts = [(train, safe_indexing(X, held), codes[held]) for train, held in splits]
            score = check_scoring(estimator, scoring)
        else:
            parts = [(np.arange(len(codes)), test[0], np.asarray(test[1]))] * n_repeats
            score = check_scoring(estimator, scoring or "accuracy")
        sizes = _sizes(n_pairs, [read_pairs(codes[train]).similar for train, _, _ in parts])
        scores = np.empty((len(sizes), len(parts)))
        for k, (train, points, truth) in enumerate(steps(parts, "repeats")):
            for i, rows in enumerate(steps(_nested(codes[train], sizes, rng), "sizes")):
                chosen = train[rows]
                # Without warnings that there are few answers.
                model = fitted(estimator, safe_indexing(X, chosen), codes[chosen])
                if test is not None and scoring is None:
                    _refuse_unnamed(model, codes[chosen])
                scores[i, k] = score(model, points, truth)
        score_name = "score of held-out pairs" if test is None else "accuracy"
        return cls(n_pairs=sizes, scores=scores, score_name=score_name, name=name).plot(ax, **line_kw)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        repeats = self.scores.shape[1]
        error = self.scores.std(axis=1, ddof=1) / np.sqrt(repeats) if repeats > 1 else None
        options = {**ERROR_BARS, "label": self.name, **style}
        self.line_ = ax.errorbar(self.n_pairs, self.scores.mean(axis=1), error, **options)
        ax.set(ylabel=self.score_name)
        _set_sizes(ax, self.n_pairs.tolist())
        if self.name:
            ax.legend(loc="best")


def _refuse_unnamed(model: Estimator, codes: Codes) -> None:
    """Raise an InputError if more than two classes have no names."""
    if len(model.classes_) == 2 or (codes.ndim == 2 and codes.shape[1] > 3 and codes[:, 3].any()):
        return
    raise InputError(
        f"The model numbers its {len(model.classes_)} classes by size, so they cannot be compared "
        "with the labels in `test`. Give labels of some points in `y` (stack_pairs(..., "
        "labels=...)), a `scoring` that matches the classes, or no `test`: then the score is the "
        "agreement with held-out answers."
    )


def _sizes(n_pairs: Sequence[int] | None, kinds: Sequence[Mask]) -> Indices:
    """Return the numbers of training pairs: those given, or five up to all."""
    most = min(map(len, kinds))
    if n_pairs is None:
        rarer = min(min(share, 1 - share) for share in (float(np.mean(kind)) for kind in kinds))
        # Half a pair more, as the numbers of each kind are rounded.
        fewest = max(most / 16, 5, (_FEWEST_OF_A_KIND + 0.5) / rarer if rarer else 0)
        return np.unique(np.rint(np.geomspace(min(fewest, most), most, 5)).astype(np.intp))
    sizes = np.asarray(n_pairs, dtype=np.intp)
    if sizes.ndim != 1 or not len(sizes) or sizes.min() < 1 or sizes.max() > most:
        raise InputError(f"`n_pairs` must hold numbers of training pairs between 1 and {most}, got {n_pairs!r}.")
    return sizes


def _nested(codes: Codes, sizes: Indices, rng: np.random.RandomState) -> list[Indices]:
    """Return the rows of random pairs, in the ratio of all, and all unlabeled rows by size."""
    pairs = read_pairs(codes)
    kinds = [rng.permutation(np.flatnonzero(kind)) for kind in (pairs.similar, ~pairs.similar)]
    rows = []
    for n in sizes:
        n_similar = round(n * len(kinds[0]) / len(pairs.ends))
        taken = np.concatenate([kinds[0][:n_similar], kinds[1][: n - n_similar]])
        rows.append(np.sort(np.concatenate([pairs.ends[taken].ravel(), pairs.unlabeled])))
    return rows


def _set_sizes(ax: Axes, n_pairs: Sequence[int]) -> None:
    """Show numbers of pairs on the horizontal axis, with a tick at each."""
    ax.set(xlabel="number of pairs", xscale="log")
    ax.set_xticks(n_pairs, [str(n) for n in n_pairs])
    ax.minorticks_off()


class PriorIntervalDisplay(Display):
    """Class prior estimated from pairs, with its interval, by the number of pairs.

    Where the band includes 1/2, the counts do not show which class is larger. For more than two
    classes use :class:`ClassProbabilityDisplay`.

    Attributes
    ----------
    n_pairs, value, low, high : array of shape (n_points,)
        Numbers of pairs, and the estimate with its interval at each of them.
    confidence, name : float, and str or None
        Level of the interval, and the entry in the legend.
    %(axes)s
    line_, band_ : matplotlib Line2D and FillBetweenPolyCollection
        The estimate and its interval.

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
        cls, estimates: Sequence[PriorEstimate], *, name: str | None = None, ax: Axes | None = None, **line_kw: Any
    ) -> Self:
        """Draw given estimates.

        Parameters
        ----------
        estimates : sequence of PriorEstimate
            Estimates from counts, of one confidence, in ascending order of their numbers of pairs.
        %(line_and_display)s
        """
        counts = [(estimate.n_similar, estimate.n_dissimilar) for estimate in estimates]
        if not counts or (None, None) in counts:
            raise InputError("`estimates` must hold one or more, each from counts of pairs.")
        values = {key: np.array([getattr(each, key) for each in estimates]) for key in ("value", "low", "high")}
        n_pairs = np.array(counts, dtype=np.float64).sum(axis=1)
        confidence = estimates[0].confidence or 0.0
        return cls(n_pairs=n_pairs, confidence=confidence, name=name, **values).plot(ax, **line_kw)

    @classmethod
    def from_codes(cls, y: ArrayLike, *, confidence: float = 0.95, **options: Any) -> Self:
        """Draw the estimate as answers come in, in the order of their codes 1, 2, 3, ...

        Parameters
        ----------
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row. Estimates are made from the first answers, at up to 200
            different numbers of answers.
        %(confidence)s
        %(options_and_display)s
        """
        pairs = read_pairs(y)
        n = len(pairs.similar)
        if not n:
            raise InputError("`y` marks no pairs, so there is no prior to draw. Mark similar pairs +k, others -k.")
        if pairs.labels is not None and pairs.labels.max(initial=0) > 1:
            raise InputError(
                f"`y[:, 3]` has the label {pairs.labels.max()}: the shares of more than two classes"
                " do not follow from counts. Draw those of a fitted model: "
                "ClassProbabilityDisplay.from_estimator."
            )
        table = np.asarray(pairs)
        sizes = np.unique(np.linspace(1, n, min(n, _MOST_ESTIMATES)).astype(int)).tolist()
        rows = [table[pairs.ends[:size].ravel()] for size in sizes]
        return cls.from_estimates([estimate_prior(y=each, confidence=confidence) for each in rows], **options)

    @classmethod
    def from_prior(
        cls, prior: float, *, n_pairs: ArrayLike | None = None, confidence: float = 0.95, **options: Any
    ) -> Self:
        """Draw the interval to expect, before any question is asked.

        Parameters
        ----------
        prior : float
            A guess of P(y = +1); the counts are set to their expected values.
        n_pairs : array-like of int, optional
            Numbers of pairs; 10 to 10,000 by default.
        %(confidence)s
        %(options_and_display)s
        """
        if not 0 < prior < 1:
            raise InputError(f"`prior` must lie strictly between 0 and 1, got {prior!r}.")
        sizes = np.geomspace(10, 10_000, 61) if n_pairs is None else np.asarray(n_pairs, dtype=float)
        majority = "positive" if prior >= 0.5 else "negative"
        counts = np.outer(sizes, [similar_share(prior), dissimilar_share(prior)]).tolist()
        estimates = [estimate_prior(*each, majority=majority, confidence=confidence) for each in counts]
        return cls.from_estimates(estimates, **options)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        label = self.name or "estimate"
        (self.line_,) = ax.plot(self.n_pairs, self.value, **{"label": label, **style})
        band: dict[str, Any] = {"alpha": 0.2, "color": self.line_.get_color(), "linewidth": 0}
        half: dict[str, Any] = {"color": "0.4", "linewidth": 1, "linestyle": ":"}
        if not self.name:
            band["label"] = f"{self.confidence:.0%} interval"
            half["label"] = "1/2: larger class unknown"
        self.band_ = ax.fill_between(self.n_pairs, self.low, self.high, **band)
        ax.axhline(0.5, **half)
        ax.set(xlabel="number of pairs", ylabel="prior P(y = +1)", xscale="log")
        ax.legend(loc="best")


@dataclass(eq=False)
class PlanDisplay:
    """A simulated plan: expected accuracy on the left, interval of the prior on the right.

    Attributes
    ----------
    plan : Plan
        A plan by :func:`sdulearn.planning.simulate_plan`.
    target_accuracy : float, optional
        An accuracy to mark.
    axes_, figure_ : tuple of two matplotlib Axes, and matplotlib Figure
        Axes of accuracy and prior, and their figure.

    Examples
    --------
    >>> from sdulearn.planning import simulate_plan
    >>> from sdulearn.plotting import PlanDisplay
    >>> plan = simulate_plan(prior=0.7, methods=("sddu",), sizes=(50, 200), n_repeats=2)
    >>> display = PlanDisplay(plan, target_accuracy=0.85).plot()
    >>> display.axes_[0].get_ylabel()
    'accuracy, %'
    """

    plan: Plan
    target_accuracy: float | None = field(default=None, kw_only=True)

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw the plan.

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
        estimates = [row.prior for row in self.plan.rows]
        PriorIntervalDisplay.from_estimates(estimates, ax=right, color="tab:blue")
        right.set(title="prior from the counts of pairs", ylabel="share of the larger class")
        for ax in self.axes_:
            _set_sizes(ax, self.plan.sizes)
            ax.grid(alpha=0.3)
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2, frameon=False)
        return self

    def _draw_accuracy(self, ax: Axes) -> None:
        plan = self.plan
        for curve in plan.curves:
            mean = 100 * np.array(curve.accuracy)
            error = 100 * np.array(curve.error)
            line = {"color": _COLOURS[curve.method], "label": curve.method, **ERROR_BARS}
            ax.errorbar(plan.sizes, mean, error, **line)
        if self.target_accuracy is not None:
            ax.axhline(100 * self.target_accuracy, color="tab:red", ls="--", label="target")
        ax.axhline(100 * plan.ceiling, color="0.5", ls=":", label="best possible (assumed)")
        ax.axhline(100 * plan.prior, color="0.5", ls="-.", label="always the larger class")
        ax.set(title="expected accuracy ± standard error", ylabel="accuracy, %")


class RiskGridDisplay(Display):
    """Cross-validated risk by ``alpha`` and ``gamma``.

    Attributes
    ----------
    alphas, gammas, risk, error : array of shape (n_settings,)
        Penalty and mixture weight (or None) of each setting; mean risk over the folds and its
        standard error.
    best, risk_name : int and str
        Index of the chosen setting, and label of the axis.
    %(axes)s
    lines_ : list of matplotlib ErrorbarContainer
        One per alpha, or a single one without gamma.

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
            SDUClassifierCV, PairLogisticRegressionCV (its log-likelihood is drawn as a loss),
            GridSearchCV, or a pipeline that ends in one.
        %(ax_and_display)s
        """
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        if not hasattr(estimator, "cv_results_"):
            raise InputError(
                f"`estimator` ({type(estimator).__name__}) has no cv_results_. Fit SDUClassifierCV,"
                " PairLogisticRegressionCV or GridSearchCV first, and pass that."
            )
        is_likelihood = getattr(estimator, "scoring", None) in ("log-likelihood", pair_log_likelihood)
        results = estimator.cv_results_
        alphas = _parameter(results, "alpha")
        gammas = _parameter(results, "gamma")
        if alphas is None:
            raise InputError("The search of `estimator` has no parameter 'alpha' (or one that ends in '__alpha').")
        score = np.asarray(results["mean_test_score"], dtype=np.float64)
        folds = sum(key.startswith("split") and key.endswith("_test_score") for key in results)
        best = int(np.argmax(score))
        if hasattr(estimator, "alpha_"):
            fits = (alphas == estimator.alpha_) & (gammas is None or gammas == estimator.gamma_)
            best = int(np.flatnonzero(fits)[0])
        return cls(
            alphas=alphas,
            gammas=gammas,
            risk=-score if is_likelihood else 1 - score,
            error=np.asarray(results["std_test_score"]) / np.sqrt(max(folds - 1, 1)),
            best=best,
            risk_name="held-out loss of an answer" if is_likelihood else "held-out risk",
        ).plot(ax)

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        if self.gammas is None:
            x = self.alphas
            lines: dict[str | None, Indices] = {None: np.arange(len(x))}
            ax.set(xlabel="alpha", xscale="log")
        else:
            kinds, kind = np.unique(-self.alphas, return_inverse=True)
            # Shifted sideways, so that no error bar hides another.
            step = np.min(np.diff(np.unique(self.gammas)), initial=1.0)
            x = self.gammas + 0.08 * step * (kind - (len(kinds) - 1) / 2)
            lines = {f"alpha = {-one:g}": np.flatnonzero(kind == k) for k, one in enumerate(kinds)}
            ax.set(xlabel="gamma")
        self.lines_ = []
        for label, which in lines.items():
            at = which[np.argsort(x[which])]
            options = {"label": label, **ERROR_BARS, **style}
            self.lines_.append(ax.errorbar(x[at], self.risk[at], self.error[at], **options))
        ax.plot(x[self.best], self.risk[self.best], "o", ms=13, mfc="none", mec="black", mew=1.6, label="chosen")
        ax.set(ylabel=self.risk_name)
        ax.legend(loc="best")


def _parameter(results: Mapping[str, ArrayLike], name: str) -> Array | None:
    """Return the column of a parameter of the estimator or of a step of a pipeline."""
    for key, values in results.items():
        if key == f"param_{name}" or (key.startswith("param_") and key.endswith(f"__{name}")):
            return np.asarray(values, dtype=np.float64)
    return None
