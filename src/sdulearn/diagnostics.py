"""Where the data disagree with what the methods assume: random pairs of two classes from one population.

Each finding is an object with numbers and a severity; the command line puts it into words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.stats import binomtest, norm

from sdulearn.answers.checks import AnswerChecks
from sdulearn.errors import InputError
from sdulearn.metrics import AccuracyEstimate
from sdulearn.pairs import read_pairs
from sdulearn.prior import PriorEstimate, similar_share
from sdulearn.types import Array, Indices, MatrixLike, Rows

Severity = Literal["info", "warning", "error"]
Details = Mapping[str, object]

# One false alarm in a hundred clean data sets, for each test.
LEVEL = 0.01
# A mean of fewer rows than this away from the usual value is too far from normal to be judged.
_ENOUGH_OFF_MODE = 10
# Random pairs from a table share some points by chance; from so many answers a point on, that matters.
_CROWDED = 1.5


@dataclass(frozen=True)
class Finding:
    """Something in the data or the result that a user should know.

    Attributes
    ----------
    code : str
        What was found, such as ``"too_few_similar"``.
    severity : {"info", "warning", "error"}
        "info": nothing is wrong; "warning": a result may be; "error": a result is.
    details : mapping
        The numbers and names that belong to it.
    """

    code: str
    severity: Severity
    details: Details


def check_assumptions(
    X: MatrixLike, y: ArrayLike, *, prior: float | None = None, feature_names: Sequence[str] | None = None
) -> list[Finding]:
    """Test whether pairs look like a random draw of two classes from the unlabeled rows' population.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Pair codes.
    prior : float, optional
        P(y = +1), where it is known.
    feature_names : sequence of str, optional
        Names for the findings; by default ``x0``, ``x1``, ...

    Returns
    -------
    list of Finding
        Empty where nothing disagrees. Each test raises a false alarm in one of a hundred clean data sets.

    See Also
    --------
    sdulearn.answers.check_answers : Contradictions among the answers.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.diagnostics import check_assumptions
    >>> y = np.repeat(-np.arange(1, 41), 2)
    >>> [finding.code for finding in check_assumptions(np.zeros((80, 1)), y)]
    ['too_few_similar']
    """
    pairs = read_pairs(y)
    rows = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] != pairs.n_rows:
        raise InputError(f"`X` has shape {rows.shape}, but `y` has {pairs.n_rows} rows.")
    names = [f"x{j}" for j in range(rows.shape[1])] if feature_names is None else list(feature_names)
    n_similar = int(pairs.similar.sum())
    found = check_ratio(n_similar, len(pairs.ends) - n_similar, prior)
    return found + check_population(rows, pairs.ends, names)


def check_ratio(n_similar: int, n_dissimilar: int, prior: float | None) -> list[Finding]:
    """Random pairs of two classes are similar at least half the time; with a known prior, ps of the time."""
    counts = {"n_similar": n_similar, "n_dissimilar": n_dissimilar, "level": LEVEL}
    n = n_similar + n_dissimilar
    if n == 0:
        return []
    if prior is None:
        if binomtest(n_similar, n, 0.5, alternative="less").pvalue < LEVEL:
            return [Finding("too_few_similar", "warning", counts)]
        return []
    expected = similar_share(prior)
    if binomtest(n_similar, n, expected).pvalue < LEVEL:
        details = {**counts, "prior": prior, "expected_share": expected}
        return [Finding("ratio_against_prior", "warning", details)]
    return []


@dataclass(frozen=True)
class Population:
    """A table's rows, as far as the test of its means needs them.

    Attributes
    ----------
    n_rows : int
        Their number.
    mean, variance : array of shape (n_features,)
        Of each feature.
    off_mode : array of shape (n_features,)
        Share of the rows that do not have the feature's usual value.
    """

    n_rows: int
    mean: Array
    variance: Array
    off_mode: Array

    @classmethod
    def of(cls, X: Rows) -> Population:
        """The population that a matrix holds."""
        if sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0)).ravel()
            variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
            return cls(X.shape[0], mean, variance, X.getnnz(axis=0) / X.shape[0])
        return cls(X.shape[0], X.mean(axis=0), X.var(axis=0), off_mode(X))


def off_mode(X: Array) -> Array:
    """Share of rows that do not have the median; nearly all, unless one value is the usual one."""
    return np.array([np.mean(column != np.median(column)) for column in X.T])


def check_population(
    X: Rows, ends: Indices, names: Sequence[str], population: Population | None = None
) -> list[Finding]:
    """Compare feature means of the points in pairs with the table's, as for a draw without replacement.

    ``X`` holds the rows that ``ends`` numbers; ``population`` is all of the table, by default ``X``.
    """
    points = np.unique(ends)
    population = Population.of(X) if population is None else population
    if len(points) < _ENOUGH_OFF_MODE or len(points) == population.n_rows:
        return []
    here = np.asarray(X[points].mean(axis=0)).ravel()
    z = _mean_shift(population, here, len(points))
    limit = norm.isf(LEVEL / 2 / max(len(z), 1))
    worst = np.argsort(-np.abs(z))[: int(np.sum(np.abs(z) > limit))]
    if not len(worst):
        return []
    details = {
        "features": [names[j] for j in worst],
        "standard_scores": [float(z[j]) for j in worst],
        "n_features": len(z),
        "level": LEVEL,
    }
    return [Finding("other_population", "warning", details)]


def _mean_shift(population: Population, here: Array, k: int) -> Array:
    """Standard score of the mean of k points; 0 where too few rows leave the usual value to judge."""
    n = population.n_rows
    mean = population.mean
    error = np.sqrt(np.maximum(population.variance, 0) / k * (n - k) / (n - 1))
    off_mode_points = k * np.minimum(population.off_mode, 1)
    judged = (off_mode_points >= _ENOUGH_OFF_MODE) & (error > 1e-10 * np.abs(mean))
    return np.where(judged, (here - mean) / np.where(judged, error, 1.0), 0.0)


def check_shared_points(ends: Indices) -> list[Finding]:
    """Answers that share their points tell less than as many about points of their own."""
    n_points = len(np.unique(ends))
    if 2 * len(ends) < _CROWDED * n_points:
        return []
    return [Finding("shared_points", "warning", {"n_answers": len(ends), "n_points": n_points})]


def check_contradictions(checks: AnswerChecks) -> list[Finding]:
    """Answers that cannot all be right."""
    counts = {
        "both_ways": len(checks.disagreements),
        "closure": len(checks.closure),
        "odd_cycles": len(checks.odd_cycles),
    }
    return [Finding("contradictions", "warning", counts)] if any(counts.values()) else []


def check_outcome(prior: PriorEstimate, accuracy: AccuracyEstimate, oriented: bool) -> list[Finding]:
    """What a fit leaves open: whether it beats always naming the larger class, and which class is which."""
    found = []
    if accuracy.low <= 0.5:
        found.append(Finding("no_better_than_guessing", "warning", {"low": accuracy.low}))
    elif not accuracy.beats_majority:
        details = {"low": accuracy.low, "majority": accuracy.majority}
        found.append(Finding("no_better_than_majority", "warning", details))
    if not prior.identified and not oriented:
        found.append(Finding("prior_not_identified", "warning", {"low": prior.low, "high": prior.high}))
    return found
