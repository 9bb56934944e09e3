"""Where the data disagree with what the methods assume: random pairs of two classes from the table's own population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import binomtest, norm

from sdulearn.answers.checks import AnswerChecks
from sdulearn.metrics import PairAccuracy
from sdulearn.prior import PriorEstimate, similar_share
from sdulearn.types import Array

# One false alarm in a hundred clean data sets, for each test.
LEVEL = 0.01
_ENOUGH_OFF_MODE = 10
_NAMES_SHOWN = 3


def ratio_warnings(n_similar: int, n_dissimilar: int, prior: float | None) -> list[str]:
    """Random pairs of two classes are similar at least half the time; with a known prior, ps of the time."""
    n = n_similar + n_dissimilar
    if prior is not None:
        share = similar_share(prior)
        if binomtest(n_similar, n, share).pvalue < LEVEL:
            return [
                f"{n_similar:,} of {n:,} pairs are similar, but with the prior {prior:g} about {share:.0%} of random "
                f"pairs would be (level {LEVEL:g}): the pairs were not drawn at random, or the prior is another."
            ]
        return []
    if binomtest(n_similar, n, 0.5, alternative="less").pvalue < LEVEL:
        return [
            f"{n_dissimilar:,} of {n:,} pairs are dissimilar, but two classes make random pairs similar at least half "
            f"the time (level {LEVEL:g}): the pairs were not drawn at random, or there are more than two classes. The "
            "prior cannot come from these counts; give it with --prior."
        ]
    return []


@dataclass(frozen=True)
class Population:
    """A table's rows: their number, mean and variance of each feature, and the share that is not its usual value."""

    n_rows: int
    mean: Array
    variance: Array
    off_mode: Array


def population_of(X: Any) -> Population:
    """The population that a matrix holds."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        return Population(X.shape[0], mean, variance, X.getnnz(axis=0) / X.shape[0])
    return Population(X.shape[0], X.mean(axis=0), X.var(axis=0), off_mode(X))


def off_mode(X: Array) -> Array:
    """Share of rows that do not have the median; nearly all, unless one value is the usual one."""
    return np.array([np.mean(column != np.median(column)) for column in X.T])


def population_warnings(
    X: Any, ends: NDArray[np.intp], names: list[str], population: Population | None = None
) -> list[str]:
    """Compare feature means of the points in pairs with the table's, as for a random draw without replacement.

    ``X`` holds the rows that ``ends`` numbers; ``population`` is all of the table, by default
    ``X``.
    """
    points = np.unique(ends)
    n, k = X.shape[0] if population is None else population.n_rows, len(points)
    if k < _ENOUGH_OFF_MODE or k == n:
        return []
    here = np.asarray(X[points].mean(axis=0)).ravel()
    z = _mean_shift(population_of(X) if population is None else population, here, k)
    limit = norm.isf(LEVEL / 2 / max(len(z), 1))
    worst = np.argsort(-np.abs(z))[: int(np.sum(np.abs(z) > limit))]
    if not len(worst):
        return []
    shown = ", ".join(f"{names[j]!r} ({z[j]:+.1f})" for j in worst[:_NAMES_SHOWN])
    return [
        f"The points in pairs do not look like a random draw from the table: the means of {len(worst):,} of {len(z):,} "
        f"features differ (level {LEVEL:g} over all features); most, in standard errors, {shown}. The prior and the "
        "estimated accuracy hold for the population the pairs come from."
    ]


def _mean_shift(population: Population, here: Array, k: int) -> Array:
    """Standard score of the mean of k points; 0 where too few rows leave the usual value to judge."""
    n, mean = population.n_rows, population.mean
    error = np.sqrt(np.maximum(population.variance, 0) / k * (n - k) / (n - 1))
    judged = (k * np.minimum(population.off_mode, 1) >= _ENOUGH_OFF_MODE) & (error > 1e-10 * np.abs(mean))
    return np.where(judged, (here - mean) / np.where(judged, error, 1.0), 0.0)


def contradiction_warnings(checks: AnswerChecks) -> list[str]:
    """Answers that cannot all be right."""
    parts = [
        (len(checks.disagreements), "questions answered both ways"),
        (len(checks.closure), "dissimilar pairs that others make similar"),
        (len(checks.odd_cycles), "groups that two classes cannot explain"),
    ]
    found = ", ".join(f"{count:,} {what}" for count, what in parts if count)
    return [f"Contradictions among the answers: {found}. List them with: sdulearn check"] if found else []


def outcome_warnings(prior: PriorEstimate, accuracy: PairAccuracy, oriented: bool) -> list[str]:
    """What the result leaves open."""
    found = []
    if accuracy.low <= 0.5:
        found.append(
            "The held-out answers do not show that the model is better than guessing. Ask about more pairs, or look "
            "for features that tell the classes apart."
        )
    if not prior.identified and not oriented:
        found.append(
            "The counts do not tell which class is the larger one, so the names of the two classes may be exchanged. "
            "Settle them with a few labelled points: --labels few.csv"
        )
    return found
