"""How many pairs to ask about: expected accuracy and interval of the prior by number of pairs.

Accuracies are simulated; everything that follows from the counts and the prior alone is computed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from sdulearn import PairLogisticRegressionCV, PriorEstimate, SDUClassifierCV, estimate_prior, stack_pairs
from sdulearn.bounds import order_probability, recommended_gamma
from sdulearn.datasets import Draw, FeaturePopulation, GaussianPopulation, Population
from sdulearn.errors import InputError, OneKindWarning, OrientationWarning, UndeterminedError
from sdulearn.prior import no_value_probability
from sdulearn.progress import long_work, steps
from sdulearn.risks import dissimilar_share, similar_share
from sdulearn.types import Array, Estimator, MatrixLike

METHODS = ("joint", "sddu")
SIZES = (25, 50, 100, 200, 400, 800, 1600)
_FOLDS = 5


@dataclass(frozen=True)
class Curve:
    """Accuracy of one method at each of the plan's ``sizes``."""

    method: str
    accuracy: tuple[float, ...]  # mean over the simulated draws
    error: tuple[float, ...]  # standard error of the mean
    unfitted: tuple[float, ...]  # share of draws without a fit; they predict the larger class


@dataclass(frozen=True)
class PlanRow:
    """What theory says about a number of random pairs, without simulation.

    Attributes
    ----------
    n_pairs, prior : int and PriorEstimate
        The number of pairs, and the interval of the prior at the expected counts.
    no_value_probability : float
        Probability that similar pairs are not the majority, so that the counts imply no prior.
    order_bound, order_probability : float or None
        :func:`~sdulearn.bounds.order_probability`: the lower bound and the exact value; None at
        prior 1/2.
    recommended_gamma : float or None
        :func:`~sdulearn.bounds.recommended_gamma` of SDDU; None at prior 1/2.
    """

    n_pairs: int
    prior: PriorEstimate
    no_value_probability: float
    order_bound: float | None = None
    order_probability: float | None = None
    recommended_gamma: float | None = None


@dataclass(frozen=True)
class Plan:
    """Simulated accuracy, and what theory says, for increasing numbers of pairs.

    Attributes
    ----------
    curves, rows : tuples of Curve and PlanRow
        Simulated accuracy of each method; what theory says about each number of pairs.
    prior, ceiling : float
        Share of the larger class, and accuracy of the best possible classifier.
    n_unlabeled, n_repeats : int
        Number of unlabeled rows beside the pairs, and of simulated draws.
    n_rows : int or None
        Rows of ``X``; None for generated points.
    n_features, n_axes : int
        Features of the points, and how many of their principal directions were simulated.
    """

    curves: tuple[Curve, ...]
    rows: tuple[PlanRow, ...]
    prior: float
    ceiling: float
    n_unlabeled: int
    n_repeats: int
    n_rows: int | None
    n_features: int
    n_axes: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of pairs, ascending."""
        return tuple(row.n_pairs for row in self.rows)

    def pairs_needed(self, target_accuracy: float, method: str = "joint") -> PairsNeeded:
        """Estimate how many pairs a target takes: where the monotone curve crosses it.

        Parameters
        ----------
        target_accuracy : float
            The accuracy to reach.
        method : {"joint", "sddu"}, default="joint"
            The method to use.

        Returns
        -------
        PairsNeeded
            The number with its range.
        """
        _check_target(target_accuracy, self.prior, self.ceiling)
        curves = {curve.method: curve for curve in self.curves}
        if method not in curves:
            raise InputError(f"This plan has no curve of `method={method!r}`, only of {list(curves)}.")
        mean = np.array(curves[method].accuracy)
        error = np.array(curves[method].error)
        low, middle, high = (_crossing(self.sizes, mean + k * error, target_accuracy) for k in (2, 0, -2))
        return PairsNeeded(middle, low, high, target_accuracy, method, self)


@dataclass(frozen=True)
class PairsNeeded:
    """Estimated number of pairs for a target accuracy.

    Attributes
    ----------
    n_pairs, low, high : float
        The estimate, and the same with the curve two standard errors higher and lower. At least
        the smallest simulated size; infinite if the largest is not enough.
    target_accuracy, method, plan : float, str and Plan
        The target, the estimator and the simulation.
    """

    n_pairs: float
    low: float
    high: float
    target_accuracy: float
    method: str
    plan: Plan


@long_work
def simulate_plan(
    *,
    prior: float,
    X: MatrixLike | None = None,
    methods: Sequence[str] = METHODS,
    sizes: Sequence[int] = SIZES,
    ceiling: float | None = None,
    n_features: int = 10,
    n_unlabeled: int = 500,
    n_repeats: int = 20,
    random_state: int | None = 0,
    target_accuracy: float | None = None,
) -> Plan:
    """Simulate random pairs, fit both methods to them, and measure the accuracy.

    Without ``X`` the points come from two Gaussian classes with the same covariance, as far apart
    as ``ceiling`` requires. With ``X`` they are your rows, and each draw takes their classes from a
    logistic model along a random direction. At prior 1/2 the accuracy is that after a few labelled
    points have named the classes.

    Parameters
    ----------
    prior : float
        Share of one class, either one.
    X : array-like of shape (n_rows, n_features), optional
        Your unlabeled rows. More than 100 columns are reduced to 100 principal directions, which is
        optimistic.
    methods : sequence of {"joint", "sddu"}, default=("joint", "sddu")
        :class:`~sdulearn.PairLogisticRegressionCV` and :class:`~sdulearn.SDUClassifierCV`.
    sizes : sequence of int, default=(25, 50, 100, 200, 400, 800, 1600)
        Numbers of pairs.
    ceiling : float, optional
        Accuracy of the best possible classifier; by default it errs on a third of the smaller
        class.
    n_features : int, default=10
        Features of the generated points (unused with ``X``).
    n_unlabeled : int, default=500
        Unlabeled rows beside the pairs, at most all of ``X``.
    n_repeats : int, default=20
        Simulated draws; the standard error falls with their square root.
    random_state : int or None, default=0
        Seed.
    target_accuracy : float, optional
        A target for :meth:`Plan.pairs_needed`, checked before the simulation.

    Returns
    -------
    Plan
        Accuracy of each method and the prior's interval at each size.

    See Also
    --------
    Plan.pairs_needed : The number of pairs for one target.
    sdulearn.plotting.PlanDisplay : Draws the plan.

    Examples
    --------
    >>> from sdulearn.planning import simulate_plan
    >>> plan = simulate_plan(prior=0.7, methods=("sddu",), sizes=(50, 800), n_repeats=4)
    >>> plan.curves[0].accuracy[0] < plan.curves[0].accuracy[1] < plan.ceiling
    True
    >>> 50 <= plan.pairs_needed(0.85, "sddu").n_pairs
    True
    """
    if not 0 < prior < 1:
        raise InputError(f"`prior` must lie strictly between 0 and 1, got {prior!r}.")
    prior = max(prior, 1 - prior)
    if ceiling is None:
        ceiling = 1 - (1 - prior) / 3
    sizes = tuple(sorted(set(sizes)))
    _check(methods, prior, ceiling, sizes, n_features=n_features, n_unlabeled=n_unlabeled, n_repeats=n_repeats)
    if target_accuracy is not None:
        _check_target(target_accuracy, prior, ceiling)
    population: Population = GaussianPopulation(prior, ceiling, n_features)
    if X is not None:
        population = FeaturePopulation(X, prior, ceiling)
        n_unlabeled = min(n_unlabeled, population.n_rows)
    seeds = np.random.SeedSequence(random_state).spawn(n_repeats)
    accuracy = np.empty((len(methods), len(sizes), n_repeats))
    draw: Draw
    for k, i, j in steps(list(np.ndindex(n_repeats, len(sizes), len(methods))), "fits"):
        if i == j == 0:  # every size and method of a repeat learns from the same draw
            draw = population.draw(sizes[-1], n_unlabeled, np.random.default_rng(seeds[k]))
        right = _accuracy(draw, sizes[i], methods[j])
        accuracy[j, i, k] = max(right, 1 - right) if prior == 0.5 else right
    return Plan(
        curves=tuple(_curve(*each, prior) for each in zip(methods, accuracy, strict=True)),
        rows=tuple(_theory(n, prior, n_unlabeled) for n in sizes),
        prior=prior,
        ceiling=ceiling,
        n_unlabeled=n_unlabeled,
        n_repeats=n_repeats,
        n_rows=population.n_rows,
        n_features=population.n_features,
        n_axes=population.n_axes,
    )


def _check_target(target_accuracy: float, prior: float, ceiling: float) -> None:
    """Refuse targets that need no pairs or that nothing can reach."""
    if not 0 < target_accuracy < 1:
        raise InputError(f"`target_accuracy` must lie between 0 and 1, such as 0.85; got {target_accuracy!r}.")
    if target_accuracy <= prior:
        raise InputError(
            f"`target_accuracy={target_accuracy:g}` needs no pairs: always predicting the larger "
            f"class is right {prior:.1%} of the time. Aim higher."
        )
    if target_accuracy >= ceiling:
        raise InputError(
            f"`target_accuracy={target_accuracy:g}` is out of reach: the simulation assumes that "
            f"the best possible classifier is right {ceiling:.1%} of the time. If your classes are "
            "better separated, raise `ceiling`."
        )


def _check(methods: Sequence[str], prior: float, ceiling: float, sizes: Sequence[int], **numbers: int) -> None:
    """Refuse a simulation that cannot be run."""
    # The best classifier must beat the constant one, and overlapping classes leave some error.
    if not prior + 1e-3 <= ceiling <= 0.999:
        raise InputError(
            "`ceiling`, the accuracy of the best possible classifier, must lie between "
            f"{prior + 1e-3:.3f} (a little more than always predicting the larger class) and 0.999, "
            f"got {ceiling!r}."
        )
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise InputError(f"Unknown `methods` {unknown}; choose from {list(METHODS)}.")
    if prior == 0.5 and "sddu" in methods:
        raise InputError(
            "At `prior=0.5` the sddu method is undefined (it divides by p - q). Plan for 'joint' "
            "(sdulearn.PairLogisticRegression), which learns from the pair as a whole."
        )
    if not sizes or sizes[0] < 10:
        raise InputError(f"`sizes` must hold numbers of pairs, each 10 or more; got {list(sizes)}.")
    for name, number in numbers.items():
        if number < 1:
            raise InputError(f"`{name}` must be 1 or more, got {number!r}.")


def _theory(n_pairs: int, prior: float, n_unlabeled: int) -> PlanRow:
    """Return what is known without simulation, at the expected counts of pairs."""
    n_similar = n_pairs * similar_share(prior)
    n_dissimilar = n_pairs * dissimilar_share(prior)
    estimate = estimate_prior(n_similar, n_dissimilar)
    no_value = no_value_probability(n_pairs, prior)
    if prior == 0.5:  # the theory is about the marginal risks, which are undefined here
        return PlanRow(n_pairs, estimate, no_value)
    counts = {"n_similar": n_similar, "n_dissimilar": n_dissimilar, "n_unlabeled": n_unlabeled}
    return PlanRow(
        n_pairs,
        estimate,
        no_value,
        order_bound=order_probability(n_pairs, prior),
        order_probability=order_probability(n_pairs, prior, exact=True),
        recommended_gamma=recommended_gamma("sddu", **counts, prior=prior),
    )


def _accuracy(draw: Draw, n_pairs: int, method: str) -> float:
    """Fit a method to the first pairs of a draw; NaN if they are too few of a kind."""
    points, pairs, same, unlabeled, accuracy = draw
    same = same[:n_pairs]
    model = _estimator(method, int(same.sum()), int((~same).sum()))
    if model is None:
        return math.nan
    rows, codes = stack_pairs(points, pairs[:n_pairs], same, unlabeled=unlabeled)
    with warnings.catch_warnings():
        # Draws with one kind of answer are part of the plan.
        for expected in (OrientationWarning, OneKindWarning):
            warnings.simplefilter("ignore", expected)
        try:
            model.fit(rows, codes)
        except UndeterminedError:
            # Pairs of few rows share points, and these may imply no prior though the counts do.
            return math.nan
    return accuracy(model.coef_[0], float(model.intercept_[0]))


def _estimator(method: str, n_similar: int, n_dissimilar: int) -> Estimator | None:
    """Return the estimator, in fewer folds if one kind of pair is rare; None if it has no fit."""
    kinds = [n for n in (n_similar, n_dissimilar) if n > 0]
    folds = min(_FOLDS, *kinds)
    if folds < 2:
        return None
    if method == "joint":
        return PairLogisticRegressionCV(cv=folds)
    if len(kinds) < 2 or n_similar <= n_dissimilar:
        return None
    return SDUClassifierCV("sddu", cv=folds)


def _curve(method: str, accuracy: Array, prior: float) -> Curve:
    """Average over the draws; those without a fit predict the larger class."""
    unfitted = np.isnan(accuracy)
    filled = np.where(unfitted, prior, accuracy)
    # std(ddof=1) / sqrt(n), but 0 for a single draw.
    error = filled.std(axis=1) / math.sqrt(max(filled.shape[1] - 1, 1))
    columns = (filled.mean(axis=1), error, unfitted.mean(axis=1))
    return Curve(method, *(tuple(each.tolist()) for each in columns))


def _crossing(sizes: Sequence[int], accuracy: Array, target: float) -> float:
    """Return where the monotone curve reaches the target, interpolated in the log of the number."""
    rising = isotonic_regression(accuracy)
    above = np.flatnonzero(rising >= target)
    if not above.size:
        return math.inf
    i = int(above[0])
    if i == 0:
        return float(sizes[0])
    share = (target - rising[i - 1]) / (rising[i] - rising[i - 1])
    # Rounded before the ceiling: exp(log(100)) is 100.00000000000004.
    return float(math.ceil(round(sizes[i - 1] * (sizes[i] / sizes[i - 1]) ** float(share), 6)))
