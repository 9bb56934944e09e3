"""The class prior p = P(y = +1), from counts of pairs or from answers that share points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from sdulearn.answers.answer_model import AnswerModel, is_crowd, known_answer_model, larger_share
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.profile import classes_by_answers, clopper_pearson, one_way, oriented, profile
from sdulearn.errors import InputError, UndeterminedError
from sdulearn.risks import check_prior
from sdulearn.types import Array, Indices, Mask, Probability

ErrorRates: TypeAlias = float | Mapping[int, float] | AnswerModel | None
# A dataclass with an interval: a prior or an accuracy.
Estimate = TypeVar("Estimate", bound=Any)

# Points whose likeliest class is no likelier than this are left out: nothing is known about them.
_KNOWN = 0.55


@dataclass(frozen=True)
class PriorEstimate:
    """A class prior with its confidence interval.

    Attributes
    ----------
    value : float
        P(y = +1); 0.5 where the answers imply no value (see ``has_value``).
    low, high : float
        Confidence interval.
    identified : bool
        Whether the interval excludes 1/2, so that one class is known to be larger.
    n_similar, n_dissimilar, n_effective : float or None
        Counts of similar and dissimilar pairs and their sum. Weighted answers are counted as the
        number of equal weights that is as precise. None where the prior was given.
    confidence : float or None
        Level of the interval; None where the prior was given.

    Examples
    --------
    >>> from sdulearn import estimate_prior
    >>> estimate_prior(20, 30).has_value
    False
    """

    value: Probability
    low: Probability
    high: Probability
    identified: bool
    n_similar: float | None = None
    n_dissimilar: float | None = None
    confidence: float | None = None
    n_effective: float | None = None

    def __str__(self) -> str:
        if self.confidence is None:
            return f"prior {self.value:.3f} (given)"
        return f"prior {self.value:.3f} ({self.confidence:.0%} interval {self.low:.3f} to {self.high:.3f})"

    @classmethod
    def given(cls, value: float) -> PriorEstimate:
        """Wrap a known prior.

        Parameters
        ----------
        value : float
            P(y = +1).

        Returns
        -------
        PriorEstimate
            The value, with an interval of width 0.
        """
        return cls(float(value), float(value), float(value), value != 0.5)

    @property
    def has_value(self) -> bool:
        """Whether the answers imply a prior."""
        return self.n_similar is None or self.value != 0.5

    def mirrored(self) -> PriorEstimate:
        """Exchange the names of the two classes.

        Returns
        -------
        PriorEstimate
            The same estimate of P(y = -1).
        """
        return replace(self, value=1 - self.value, low=1 - self.high, high=1 - self.low)


def prior_from_share(share: float, error_rate: float = 0.0) -> float:
    """Return the root p >= 1/2 of ``(2 share - 1) = (p - q)^2 (1 - 2 e)`` (Eq. cpe, where answers are wrong at rate e).

    It is 1/2 where there is no root, and at most 1.
    """
    return (1 + math.sqrt(min(max(0.0, 2 * share - 1) / max(1 - 2 * error_rate, 1e-12), 1.0))) / 2


def share_of(
    chances: Array, wanted: Indices, confidence: float, spread: float = 1.0, gain: float = 0.0
) -> tuple[float, float, float]:
    """Return the share of points in their ``wanted`` class, and its interval.

    With q the probability of the wanted class by answers alone, the share a has the likelihood

        prod_points  a q + (1 - a) (1 - q) / (K - 1)                                            (1)

    The likeliest class is wrong with probability e on average, so it is the wanted one with
    probability a (1 - e) + (1 - a) e / (K - 1); the exact interval of that is transformed to a.
    ``chances``: class probabilities (n_points, K). ``spread``: variance over that of independent
    points. ``gain``: how much the share has grown since.
    """
    known = chances.max(axis=1) > _KNOWN
    if not known.any():
        return 0.5, 0.0, 1.0
    found = chances.argmax(axis=1)[known] == wanted[known]
    n = len(found) / spread
    e = float(1 - chances[known].max(axis=1).mean())
    by_chance = e / (chances.shape[1] - 1)
    share = min(float(found.mean()) + gain * (1 - e - by_chance), 1.0)
    ends = np.array(clopper_pearson(share * n, (1 - share) * n, confidence))
    low, high = np.clip((ends - by_chance) / (1 - e - by_chance), 0, 1).tolist()
    value = share
    if e > 0:
        value = min(_likeliest_share(chances[np.arange(len(chances)), wanted], chances.shape[1]) + gain, 1.0)
    return value, min(low, value), max(high, value)


def _likeliest_share(q: Array, n_classes: int) -> float:
    """Return the maximum of equation (1)."""
    other = (1 - q) / (n_classes - 1)

    def loss(a: float) -> float:
        return -float(np.sum(np.log(np.maximum(a * q + (1 - a) * other, 1e-300))))

    inside = float(minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x)
    return min((0.0, inside, 1.0), key=loss)


def estimate_prior(
    n_similar: float | None = None,
    n_dissimilar: float | None = None,
    *,
    y: ArrayLike | AnswerGraph | None = None,
    sample_weight: ArrayLike | None = None,
    random_points: ArrayLike | None = None,
    error_rate: ErrorRates = None,
    decision: ArrayLike | None = None,
    majority: str = "positive",
    confidence: float = 0.95,
    n_effective: float | None = None,
) -> PriorEstimate:
    """Estimate the class prior from pair counts (Eq. cpe) or from answers that share points.

    Answers never tell which class is the larger one; ``majority`` does. Loose pairs have the
    paper's estimate with an exact interval. Where answers share points, k of the m points of a
    component are on one side with probability p^k q^(m-k) + p^(m-k) q^k; the interval is that of
    Clopper and Pearson [1]_ for the number of points whose likelihood falls as fast.

    Parameters
    ----------
    n_similar, n_dissimilar : float, optional
        Numbers, or weights, of similar and dissimilar *randomly drawn* pairs: these or ``y``.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4), optional
        What is known of each row, with the points in its second column.
    sample_weight, random_points : optional
        With ``y``: as in :func:`~sdulearn.metrics.pair_accuracy`.
    error_rate : float or mapping, optional
        As in :func:`~sdulearn.metrics.pair_accuracy`; with counts one number.
    decision : array-like of shape (n_rows,), optional
        With ``random_points``: decision values of a model, which tell the side of class +1 in
        large components.
    majority : {"positive", "negative"}, default="positive"
        Which class is the larger.
    confidence : float, default=0.95
        Level of the interval.
    n_effective : float, optional
        With weights: the number of equal weights that are as precise, ``(sum w)^2 / sum w^2``; by
        default their sum.

    Returns
    -------
    PriorEstimate
        The prior; ``identified`` is False where its interval reaches 1/2.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
       Biometrika 26 (1934).

    Examples
    --------
    >>> from sdulearn import estimate_prior
    >>> estimate = estimate_prior(580, 420)
    >>> round(estimate.value, 3), estimate.identified
    (0.7, True)
    >>> estimate_prior(20, 30).identified
    False

    A star: five points against one, and five of the six are on one side.

    >>> star = [[1, 0], [1, 1], [2, 0], [2, 2], [3, 0], [3, 3], [4, 0], [4, 4], [-5, 0], [-5, 5]]
    >>> round(estimate_prior(y=star).value, 2)
    0.83
    """
    if majority not in ("positive", "negative"):
        raise InputError(f"`majority` must be 'positive' or 'negative', got {majority!r}.")
    if y is not None:
        if n_similar is not None or n_dissimilar is not None:
            raise InputError("Give either `y` or the counts `n_similar` and `n_dissimilar`.")
        graph = AnswerGraph.from_y(y, sample_weight)
        estimates = [
            _prior_of_answers(graph, random_points, rates, decision, majority, confidence)
            for rates in plausible_rates(error_rate)
        ]
        return replace(around(estimates), identified=all(estimate.identified for estimate in estimates))
    if n_similar is None or n_dissimilar is None:
        raise InputError("Give both counts, `n_similar` and `n_dissimilar`, or `y`.")
    rows = {"sample_weight": sample_weight, "random_points": random_points, "decision": decision}
    if with_y := [name for name, value in rows.items() if value is not None]:
        raise InputError(f"`{with_y[0]}` is about the rows of `y`; leave it out beside counts.")
    if not isinstance(error_rate, Real | None) or not 0 <= (error_rate or 0.0) < 0.5:
        raise InputError(f"With counts `error_rate` is one number from 0 to below 0.5; got {error_rate!r}.")
    for name, count in (("n_similar", n_similar), ("n_dissimilar", n_dissimilar)):
        if not 0 <= count < math.inf:
            raise InputError(f"`{name}` must be a number of pairs, zero or more; got {count!r}.")
    if n_similar == n_dissimilar == 0:
        raise UndeterminedError("No pairs, so there is nothing to estimate the prior from. Give `prior` yourself.")
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` must lie between 0 and 1, got {confidence!r}.")
    total = n_similar + n_dissimilar
    n_effective = total if n_effective is None else n_effective
    if not 0 < n_effective < math.inf:
        raise InputError(f"`n_effective` must be a number greater than zero, got {n_effective!r}.")
    unit = n_effective / total
    ends = clopper_pearson(n_similar * unit, n_dissimilar * unit, confidence)
    value, low, high = (prior_from_share(share, error_rate or 0.0) for share in (n_similar / total, *ends))
    estimate = PriorEstimate(
        value=value,
        low=low,
        high=high,
        identified=low > 0.5,
        n_similar=n_similar,
        n_dissimilar=n_dissimilar,
        confidence=confidence,
        n_effective=n_effective,
    )
    return estimate if majority == "positive" else estimate.mirrored()


def plausible_rates(error_rate: ErrorRates) -> Sequence[ErrorRates]:
    """Return rates as given, the most likely first; of a model that knows none, also lower and higher ones."""
    return error_rate.plausible() if isinstance(error_rate, AnswerModel) else [error_rate]


def around(estimates: Sequence[Estimate]) -> Estimate:
    """Return the first estimate, its interval widened for what the others change, as independent errors add."""
    first, *others = estimates
    below = max([first.value - other.value for other in others], default=0.0)
    above = max([other.value - first.value for other in others], default=0.0)
    low = first.value - math.hypot(first.value - first.low, max(below, 0.0))
    high = first.value + math.hypot(first.high - first.value, max(above, 0.0))
    lows, highs = zip(*((estimate.low, estimate.high) for estimate in estimates), strict=True)
    return replace(first, low=max(low, min(lows)), high=min(high, max(highs)))


def _prior_of_answers(
    graph: AnswerGraph,
    random_points: ArrayLike | None,
    error_rate: ErrorRates,
    decision: ArrayLike | None,
    majority: str,
    confidence: float,
) -> PriorEstimate:
    """Estimate the prior by counts of loose pairs, else by the likelihood over components."""
    # Points with a label were chosen, not drawn at random.
    graph = graph.restrict(np.ones(graph.n_answers, dtype=bool), np.zeros(graph.n_points, dtype=bool))
    model = known_answer_model(error_rate, graph)
    crowd = is_crowd(graph)
    if model is None and crowd:
        AnswerModel.estimate(graph)  # refuses answers that need more than two classes
    counted, asked = random_answers(graph, random_points)
    if counted is not None and not asked.any():
        raise UndeterminedError(
            "`random_points` marks no row of an answer: points that were chosen do not tell the share of a class. "
            "Ask about random points, or give `prior` yourself."
        )
    by_answer = graph.weights * asked
    counts = (float(by_answer @ (graph.same > 0)), float(by_answer @ (graph.same < 0)), float(by_answer @ by_answer))
    rate = mean_error(model, graph, by_answer)
    estimate = prior_of_weights(*counts, confidence=confidence, error_rate=rate)
    if counted is not None and decision is not None:
        by_row = graph.of_rows(np.asarray(decision, dtype=np.float64), "decision")
        turned = oriented(graph, graph.by_point(by_row[:, None])[:, 0])
        if one_way(turned, counted):
            chances = classes_by_answers(turned, model)[counted]
            share = share_of(chances, np.ones(len(chances), dtype=np.intp), confidence)
            return _with_share(estimate, share, float(counted.sum()))
    if counted is not None or graph.shares_points:
        value, low, high = profile(graph, confidence, model, counted=counted)
        given = model is not None and model.error_rate.low == model.error_rate.high
        if crowd and not given and counted is None:
            # Errors may depend on the two classes, which no single rate shows.
            ends = larger_share(graph, confidence)
            low = min(low, ends[0])
            high = max(high, ends[1])
        # Independent answers: one fewer than the random points of each component.
        size = np.bincount(graph.component if counted is None else graph.component[counted])
        estimate = _with_share(estimate, (value, low, high), float(np.maximum(size - 1, 0).sum()))
    return estimate if majority == "positive" else estimate.mirrored()


def resolve_prior(
    prior: float | None, graph: AnswerGraph, *, model: AnswerModel | None = None, majority: str = "positive"
) -> PriorEstimate:
    """Return the prior, given or estimated."""
    if prior is not None:
        return PriorEstimate.given(prior)
    return estimate_prior(y=graph, error_rate=model, majority=majority)


def needed_prior(
    prior: float | None, graph: AnswerGraph | None, counts: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> PriorEstimate:
    """Return the prior of a risk, given or estimated, or raise if it is not known.

    Without a graph, ``counts`` are the weights of similar and of dissimilar loose pairs, and the sum of their squares.
    """
    linked = graph is not None and graph.shares_points
    if graph is not None and linked:
        _refuse_hubs(graph)
    if prior is not None:
        return PriorEstimate.given(check_prior(prior))
    estimate = prior_of_weights(*counts) if graph is None else estimate_prior(y=graph)
    if not (estimate.n_similar and estimate.n_dissimilar):
        # Answers of one kind alone were hardly drawn at random.
        raise UndeterminedError(
            "`prior=None` takes the class prior from the numbers of similar and dissimilar pairs, but there are "
            f"{estimate.n_similar:g} similar and {estimate.n_dissimilar:g} dissimilar ones. Give `prior`, P(y = +1)."
        )
    if not estimate.has_value:
        why = f"there are no more similar than dissimilar pairs ({estimate.n_similar:g} and {estimate.n_dissimilar:g})"
        if linked:
            why = "the points they join seem to be of two equally large classes, where the risks are undefined"
        raise UndeterminedError(
            f"`prior=None` takes the class prior from the answers, but {why}. Give `prior`, P(y = +1), ask about more "
            "randomly drawn pairs, or use sdulearn.PairLogisticRegression, which needs no prior."
        )
    return estimate


def _refuse_hubs(graph: AnswerGraph) -> None:
    """Refuse many answers about one point: the risks are unbiased for random pairs only."""
    hubs = graph.hubs()
    if len(hubs):
        raise InputError(
            f"Point {graph.points[hubs[0]]} is in {graph.degree[hubs[0]]} of the {graph.n_answers} answers. The risks "
            "of SDUClassifier are averages over randomly drawn pairs, and these are linked: many compare a point "
            "with the same one. Use sdulearn.PairLogisticRegressionCV, for which such an answer is worth a label, or "
            "ask about pairs of points drawn at random."
        )


def mean_error(model: AnswerModel | None, graph: AnswerGraph, by_answer: Array) -> float:
    """Return the mean error rate of weighted answers, on which the share of "same" ones depends."""
    if model is None or not by_answer.any():
        return 0.0
    return float(np.average(model.errors(graph.annotators), weights=by_answer))


def prior_of_weights(
    similar: float, dissimilar: float, squares: float, confidence: float = 0.95, error_rate: float = 0.0
) -> PriorEstimate:
    """Estimate the prior from the weights of similar and dissimilar pairs and their squares."""
    total = similar + dissimilar
    unit = effective_number(total, squares) / (total or 1.0)
    counts = (similar * unit, dissimilar * unit)
    return estimate_prior(*counts, confidence=confidence, error_rate=error_rate)


def _with_share(estimate: PriorEstimate, share: tuple[float, float, float], n_effective: float) -> PriorEstimate:
    """Replace the estimate and its interval, and keep the counts."""
    value, low, high = share
    identified = low > 0.5 or high < 0.5
    return replace(estimate, value=value, low=low, high=high, identified=identified, n_effective=n_effective)


def random_of(graph: AnswerGraph, random_points: ArrayLike | None) -> Mask | None:
    """Return which points were drawn at random; None where all points in answers were."""
    if random_points is None:
        return None
    marked = np.asarray(random_points)
    if marked.dtype != bool or marked.shape != (graph.n_given,):
        raise InputError(
            f"`random_points` must hold True or False for each of the {graph.n_given} rows of `y`; got "
            f"{marked.dtype} of shape {marked.shape}."
        )
    counted = np.bincount(graph.row_point, marked[graph.rows], graph.n_points) > 0
    return None if counted[graph.degree > 0].all() else counted


def random_answers(graph: AnswerGraph, random_points: ArrayLike | None) -> tuple[Mask | None, Mask]:
    """Return the points drawn at random, as :func:`random_of`, and the answers about one of them."""
    counted = random_of(graph, random_points)
    drawn = np.ones(graph.n_points, dtype=bool) if counted is None else counted
    return counted, np.any(drawn[graph.ends], axis=1)


def no_answers(what: str) -> UndeterminedError:
    """Return the error for rows without any answer or label."""
    return UndeterminedError(
        f"{what} needs answers or labels, and `y` holds no answers of positive weight. In cross_val_score or "
        "GridSearchCV give `cv=PairKFold()`: it keeps the rows of an answer together, other splitters do not."
    )


def effective_number(total: float, squares: float) -> float:
    """Return the number of equal weights that are as precise as these weights."""
    # Divided first: the square of a large total could overflow.
    return total * (total / squares) if squares > 0 else 0.0
