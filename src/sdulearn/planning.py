"""How many pairs to ask for: accuracy and the prior's interval against the number of pairs, by simulation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.isotonic import isotonic_regression

from sdulearn import PairLogisticRegressionCV, PriorEstimate, SDUClassifierCV, estimate_prior, stack_pairs
from sdulearn.errors import InputError
from sdulearn.populations import FeaturePopulation, GaussianPopulation, Population, World
from sdulearn.prior import dissimilar_share, similar_share
from sdulearn.types import Array

METHODS = ("joint", "sddu")
SIZES = (25, 50, 100, 200, 400, 800, 1600)
_FOLDS = 5


@dataclass(frozen=True)
class Curve:
    """Accuracy of one method against the number of pairs.

    Attributes
    ----------
    method : {"joint", "sddu"}
        Which estimator.
    accuracy, error : tuple of float
        Mean over the simulated draws, and its standard error, at each of the plan's ``sizes``.
    unfitted : tuple of float
        Share of draws from which it could not be trained; they count as calling everything the
        larger class.
    """

    method: str
    accuracy: tuple[float, ...]
    error: tuple[float, ...]
    unfitted: tuple[float, ...]


@dataclass(frozen=True)
class Plan:
    """What a simulation says about numbers of pairs.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of pairs.
    curves : tuple of Curve
        Accuracy, one curve a method.
    priors : tuple of PriorEstimate
        The prior's estimate and interval at the expected counts of each size.
    no_answer : tuple of float
        Chance that there are no more similar than dissimilar pairs, so that the counts imply no
        prior (exact).
    prior : float
        Share of the larger class.
    ceiling : float
        Accuracy of the best possible classifier in the simulation.
    n_unlabeled : int
        Unlabeled rows beside the pairs.
    n_repeats : int
        Simulated draws.
    basis : str
        What was simulated, in a sentence.
    """

    sizes: tuple[int, ...]
    curves: tuple[Curve, ...]
    priors: tuple[PriorEstimate, ...]
    no_answer: tuple[float, ...]
    prior: float
    ceiling: float
    n_unlabeled: int
    n_repeats: int
    basis: str

    def pairs_needed(self, target_accuracy: float, method: str = "joint") -> PairsNeeded:
        """Where the curve of a method, made monotone, crosses the target."""
        check_target(target_accuracy, self.prior, self.ceiling)
        curves = {curve.method: curve for curve in self.curves}
        if method not in curves:
            raise InputError(f"This plan has no curve of {method!r}, only of {list(curves)}.")
        mean, error = np.array(curves[method].accuracy), np.array(curves[method].error)
        low, middle, high = (_crossing(self.sizes, mean + k * error, target_accuracy) for k in (2, 0, -2))
        return PairsNeeded(middle, low, high, target_accuracy, method, self)


@dataclass(frozen=True)
class PairsNeeded:
    """About how many pairs a target takes; ``str`` says it in words.

    Attributes
    ----------
    n_pairs : float
        The estimate, a whole number; the smallest size simulated where that is enough, infinite
        where the largest is not.
    low, high : float
        The same with the curve two standard errors higher and lower: the noise of the simulation,
        not that of its assumptions.
    target_accuracy : float
        The target.
    method : str
        The estimator.
    plan : Plan
        The simulation.
    """

    n_pairs: float
    low: float
    high: float
    target_accuracy: float
    method: str
    plan: Plan

    def __str__(self) -> str:
        first, last = self.plan.sizes[0], self.plan.sizes[-1]
        if math.isinf(self.n_pairs):
            amount = f"more than {last} pairs"
        elif self.n_pairs <= first:
            amount = f"{first} pairs or fewer"
        else:
            high = f"more than {last}" if math.isinf(self.high) else f"{self.high:.0f}"
            amount = f"about {self.n_pairs:.0f} pairs ({self.low:.0f} to {high})"
        return f"{self.target_accuracy:.1%} with the {self.method} method: {amount}"


def pairs_needed(
    target_accuracy: float,
    *,
    prior: float,
    X: Any = None,
    method: str = "joint",
    sizes: Sequence[int] = SIZES,
    ceiling: float | None = None,
    n_features: int = 10,
    n_unlabeled: int = 500,
    direction: str = "random",
    known_prior: bool = False,
    oriented: bool = False,
    n_repeats: int = 20,
    random_state: int | None = 0,
) -> PairsNeeded:
    """About how many random pairs a target accuracy takes.

    An estimate by simulation: it depends on what ``ceiling`` and the features are taken to be. See
    :func:`simulate_plan`, whose options these are.

    Parameters
    ----------
    target_accuracy : float
        The accuracy to reach.
    prior : float
        Share of one class.
    X : array-like of shape (n_rows, n_features), optional
        Your unlabeled rows.
    method : {"joint", "sddu"}, default="joint"
        Which estimator.
    sizes, ceiling, n_features, n_unlabeled, direction, known_prior, oriented, n_repeats,
    random_state
        As in :func:`simulate_plan`.

    Returns
    -------
    PairsNeeded
        The number, its range, and the plan it comes from.

    Examples
    --------
    >>> from sdulearn.planning import pairs_needed
    >>> answer = pairs_needed(0.85, prior=0.7, n_features=3, sizes=(50, 200), n_repeats=3)
    >>> print(answer)  # doctest: +ELLIPSIS
    85.0% with the joint method: ...
    """
    plan = simulate_plan(
        prior=prior, X=X, methods=(method,), sizes=sizes, ceiling=ceiling, n_features=n_features,
        n_unlabeled=n_unlabeled, direction=direction, known_prior=known_prior, oriented=oriented,
        n_repeats=n_repeats, random_state=random_state, target_accuracy=target_accuracy,
    )  # fmt: skip
    return plan.pairs_needed(target_accuracy, method)


def simulate_plan(
    *,
    prior: float,
    X: Any = None,
    methods: Sequence[str] = METHODS,
    sizes: Sequence[int] = SIZES,
    ceiling: float | None = None,
    n_features: int = 10,
    n_unlabeled: int = 500,
    direction: str = "random",
    known_prior: bool = False,
    oriented: bool = False,
    n_repeats: int = 20,
    random_state: int | None = 0,
    target_accuracy: float | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Plan:
    """Simulate random pairs, train on them as a user would, and measure the accuracy.

    Without ``X`` the points come from two Gaussian classes of one covariance, as far apart as
    ``ceiling`` asks. With ``X`` they are your rows, standardised, and their classes are drawn from
    a logistic model along a direction, as steep as ``ceiling`` asks. The true direction and ceiling
    of your problem are unknown, so the result is an estimate; more features or a lower ceiling need
    more pairs. Accuracy is computed from the true class probabilities, without the noise of a test
    sample.

    Parameters
    ----------
    prior : float
        Share of one class (which one makes no difference).
    X : array-like of shape (n_rows, n_features), optional
        Your unlabeled rows, numbers without gaps. Of a table wider than 100 the 100 main directions
        are simulated, which is optimistic.
    methods : sequence of {"joint", "sddu"}, default=("joint", "sddu")
        :class:`~sdulearn.PairLogisticRegressionCV`, and :class:`~sdulearn.SDUClassifierCV` with its
        defaults.
    sizes : sequence of int, default=(25, 50, 100, 200, 400, 800, 1600)
        Numbers of pairs.
    ceiling : float, optional
        Accuracy of the best possible classifier; default: a third of the smaller class is lost, ``1
        - q / 3``.
    n_features : int, default=10
        Features of the generated points (unused with ``X``).
    n_unlabeled : int, default=500
        Unlabeled rows beside the pairs (all of ``X`` at most).
    direction : {"random", "principal"}, default="random"
        With ``X``: a new random direction in each draw, or the one in which the rows vary most (the
        easiest case).
    known_prior : bool, default=False
        Whether the estimators are told the prior, or take it from the counts.
    oriented : bool, default=False
        Whether a few labelled points settle which class is which (``orient``); always so at prior
        1/2. Otherwise a model that names the classes the wrong way round counts as wrong.
    n_repeats : int, default=20
        Draws; the standard error falls with their square root.
    random_state : int or None, default=0
        Seed.
    target_accuracy : float, optional
        Checked before the work where given.
    progress : callable, default=iter
        Wraps the list of fits, for a progress bar such as ``tqdm.tqdm``.

    Returns
    -------
    Plan
        Accuracy of each method and the prior's interval at each size.

    Examples
    --------
    >>> from sdulearn.planning import simulate_plan
    >>> plan = simulate_plan(prior=0.7, methods=("sddu",), sizes=(50, 800), n_repeats=4)
    >>> plan.curves[0].accuracy[0] < plan.curves[0].accuracy[1] < plan.ceiling
    True
    """
    if not 0 < prior < 1:
        raise InputError(f"prior must lie strictly between 0 and 1, got {prior!r}.")
    prior = max(prior, 1 - prior)
    ceiling = 1 - (1 - prior) / 3 if ceiling is None else ceiling
    check_ceiling(ceiling, prior)
    if target_accuracy is not None:
        check_target(target_accuracy, prior, ceiling)
    _check_methods(methods, prior)
    sizes = tuple(sorted(set(sizes)))
    _check_numbers(sizes, n_features=n_features, n_unlabeled=n_unlabeled, n_repeats=n_repeats)
    population: Population = (
        GaussianPopulation(prior, ceiling, n_features) if X is None else FeaturePopulation(X, prior, ceiling, direction)
    )
    told = prior if known_prior else None
    oriented = oriented or prior == 0.5
    accuracy = np.full((len(methods), len(sizes), n_repeats), np.nan)
    seeds = np.random.SeedSequence(random_state).spawn(n_repeats)
    fits = [(k, i, j) for k in range(n_repeats) for i in range(len(sizes)) for j in range(len(methods))]
    drawn: tuple[int, World] | None = None
    for k, i, j in progress(fits):
        if drawn is None or drawn[0] != k:
            drawn = k, population.draw(sizes[-1], n_unlabeled, np.random.default_rng(seeds[k]))
        accuracy[j, i, k] = _accuracy(drawn[1], sizes[i], methods[j], told, oriented)
    return Plan(
        sizes=sizes,
        curves=tuple(_curve(method, rows, prior) for method, rows in zip(methods, accuracy, strict=True)),
        priors=tuple(estimate_prior(n * similar_share(prior), n * dissimilar_share(prior)) for n in sizes),
        no_answer=tuple(float(binom.cdf(n // 2, n, similar_share(prior))) for n in sizes),
        prior=prior,
        ceiling=ceiling,
        n_unlabeled=min(n_unlabeled, population.most_unlabeled),
        n_repeats=n_repeats,
        basis=population.basis + _conditions(known_prior, oriented),
    )


def check_ceiling(ceiling: float, prior: float) -> None:
    """The best classifier must beat the constant one, and two overlapping classes leave some error."""
    larger = max(prior, 1 - prior)
    if not larger + 1e-3 <= ceiling <= 0.999:
        raise InputError(
            f"ceiling, the accuracy of the best possible classifier, must lie between {larger + 1e-3:.3f} (a little "
            f"more than calling everything the larger class) and 0.999, got {ceiling!r}."
        )


def check_target(target_accuracy: float, prior: float, ceiling: float) -> None:
    """Refuse targets that need no pairs or that nothing can reach."""
    larger = max(prior, 1 - prior)
    if not 0 < target_accuracy < 1:
        raise InputError(f"The target accuracy must lie between 0 and 1, such as 0.85; got {target_accuracy!r}.")
    if target_accuracy <= larger:
        raise InputError(
            f"A target of {target_accuracy:.1%} needs no pairs: calling everything the larger class is right "
            f"{larger:.1%} of the time. Aim higher."
        )
    if target_accuracy >= ceiling:
        raise InputError(
            f"A target of {target_accuracy:.1%} is out of reach: the simulation takes {ceiling:.1%} for the accuracy "
            "of the best possible classifier. If your classes are better separated than that, raise the ceiling."
        )


def _check_methods(methods: Sequence[str], prior: float) -> None:
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise InputError(f"Unknown methods {unknown}; choose from {list(METHODS)}.")
    if prior == 0.5 and "sddu" in methods:
        raise InputError(
            "At prior 0.5 the sddu method is undefined (it divides by p - q). Plan for method 'joint' "
            "(sdulearn.PairLogisticRegression), which learns from the pair as a whole."
        )


def _check_numbers(sizes: Sequence[int], **numbers: int) -> None:
    if not sizes or sizes[0] < 10:
        raise InputError(f"sizes must hold numbers of pairs, each 10 or more; got {list(sizes)}.")
    for name, number in numbers.items():
        if number < 1:
            raise InputError(f"{name} must be 1 or more, got {number!r}.")


def _accuracy(world: World, n_pairs: int, method: str, prior: float | None, oriented: bool) -> float:
    """Train on the first pairs of a draw; NaN where they do not allow it."""
    same = world.same[:n_pairs]
    model = _estimator(method, int(same.sum()), int((~same).sum()), prior)
    if model is None:
        return math.nan
    rows, codes = stack_pairs(world.points, world.pairs[:n_pairs], same, unlabeled=world.unlabeled)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*names -1 and .1 are arbitrary")
        model.fit(rows, codes)
    right = world.accuracy(model.coef_[0], float(model.intercept_[0]))
    return max(right, 1 - right) if oriented else right


def _estimator(method: str, n_similar: int, n_dissimilar: int, prior: float | None) -> Any:
    """The estimator with its defaults, in fewer folds where a kind of pair is rare; None where nothing can be fit."""
    folds = min(_FOLDS, *(n for n in (n_similar, n_dissimilar) if n > 0), n_similar + n_dissimilar)
    if folds < 2:
        return None
    if method == "joint":
        return PairLogisticRegressionCV(cv=folds, prior=prior)
    answered = n_similar > n_dissimilar or prior is not None
    return SDUClassifierCV("sddu", cv=folds, prior=prior) if answered and n_similar and n_dissimilar else None


def _curve(method: str, accuracy: Array, prior: float) -> Curve:
    unfitted = np.isnan(accuracy)
    filled = np.where(unfitted, prior, accuracy)
    spread = filled.std(axis=1, ddof=1) if filled.shape[1] > 1 else np.zeros(len(filled))
    error = spread / math.sqrt(filled.shape[1])
    return Curve(
        method, tuple(filled.mean(axis=1).tolist()), tuple(error.tolist()), tuple(unfitted.mean(axis=1).tolist())
    )


def _crossing(sizes: Sequence[int], accuracy: Array, target: float) -> float:
    """Number of pairs at which the monotone curve reaches the target, linear in the logarithm of the size."""
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


def _conditions(known_prior: bool, oriented: bool) -> str:
    told = "the prior known" if known_prior else "the prior taken from the counts"
    named = "a few labelled points to name the classes" if oriented else "the larger class taken for the positive one"
    return f"; pairs drawn at random, every answer right, {told}, {named}"
