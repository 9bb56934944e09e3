"""Checks of the assumptions of the methods: random pairs of two classes.

Each check returns findings (:mod:`sdulearn.findings`), none if nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.stats import binom, binomtest, norm

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.checks import ENTITIES, AnswerChecks, check_answers, check_forced_choices, known_answers
from sdulearn.answers.graph import ENOUGH, AnswerGraph, connect, number_questions
from sdulearn.answers.records import AUDIT, Answers, flip_rate
from sdulearn.errors import InputError, shortened
from sdulearn.findings import (
    AnswersAlike,
    AnswerTable,
    Audit,
    BalancedAnswers,
    Contradictions,
    Crowd,
    Disputed,
    Entities,
    Finding,
    FlippedAnswers,
    Hubs,
    ManyClasses,
    NoBetterThanGuessing,
    NoBetterThanMajority,
    OtherPopulation,
    PairsByFeatures,
    People,
    Person,
    PriorNotIdentified,
    RatioAgainstPrior,
    SharedPoints,
    TooFewSimilar,
    UnusedColumns,
)
from sdulearn.metrics.accuracy import LEVEL, AccuracyEstimate
from sdulearn.metrics.cross_validation import folds_over_points
from sdulearn.model_selection import number_of_folds
from sdulearn.pairing import LEVEL as PAIRING_LEVEL
from sdulearn.pairing import judge_pairing
from sdulearn.prior import PriorEstimate
from sdulearn.risks import similar_share
from sdulearn.types import Array, Indices, Mask, MatrixLike, Rows

# Simulations of the classes of connected points.
_DRAWS = 1999
# From so many answers on, exactly as many "same" as "different" ones are mentioned: by chance they are rare.
_MIN_BALANCED = 20
# Folds over points of a cross-validated accuracy.
ACCURACY_FOLDS = 10
# Most hubs, or features by which pairs were chosen, that are named.
_NAMED = 5
# Random pairs that imply more classes than this are hardly about classes that a model could learn.
_MANY_CLASSES = 50
# Entities: in random order "similar" answers would put so many times as many pairs of points two steps apart. In 350
# draws of 2 to 150 classes, up to a quarter of the answers wrong, it was 1.4 times as many at most.
_ENTITY_TIMES = 2
# Two people who are each wrong about one in fifty agree on so many questions with a probability of 5%.
_ALIKE = 75
# A person is doubtful whose median answer is faster than this share of everybody's, or careless more often than this.
_FAST = 1 / 3
_CARELESS = 0.5


def check_assumptions(
    X: MatrixLike, y: ArrayLike, *, prior: float | None = None, feature_names: Sequence[str] | None = None
) -> list[Finding]:
    """Test whether pairs look like a random draw of two classes from the population of all rows.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Rows. Where answers share points, each point counts once.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
        What is known about each row.
    prior : float, optional
        P(y = +1), if it is known.
    feature_names : sequence of str, optional
        Names for the findings; by default ``x0``, ``x1``, ...

    Returns
    -------
    list of Finding
        Empty if nothing is wrong. Each test raises a false alarm in one of a hundred clean data sets, that of pairs
        chosen by their features in one of a thousand. Of severity "info": answers that share points, hubs, and exactly
        as many similar as dissimilar pairs, which show no prior if they were collected in equal numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.diagnostics import check_assumptions
    >>> y = np.repeat(-np.arange(1, 41), 2)
    >>> [finding.code for finding in check_assumptions(np.zeros((80, 1)), y)]
    ['too_few_similar']
    """
    graph = AnswerGraph.from_y(y)
    rows = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] != graph.n_given:
        raise InputError(f"`X` has shape {rows.shape}, but `y` has {graph.n_given} rows.")
    names = [f"x{j}" for j in range(rows.shape[1])] if feature_names is None else list(feature_names)
    findings = check_ratio(graph, prior)
    # A point counts once, on the first of its rows.
    shown = rows[graph.rows[graph.first_row]]
    findings += check_population(shown, graph.ends, names) + check_pairing(shown, graph.ends, names)
    return findings + check_shared_points(graph) + check_contradictions(graph) + check_alike(graph)


def check_ratio(graph: AnswerGraph, prior: float | None, counted: Mask | None = None) -> list[Finding]:
    """Random pairs are similar at least half the time; with a known prior, ps of the time.

    Loose pairs have a binomial test. The answers of a component are one draw of its points' classes. With k of m points
    on one side

        R = sum over components of ((2 k - m)^2 - m) / (m - 1),   E[R] = (p - q)^2 sum of m         (1)

    Simulated classes of the ``counted`` points give the distribution of R, at a prior of 1/2 if none is given.
    """
    n_similar = int(np.sum(graph.same > 0))
    balanced = 2 * n_similar == graph.n_answers >= _MIN_BALANCED
    if balanced and counted is None and prior is None and not len(graph.hubs()):
        # They may have been collected on purpose.
        return [BalancedAnswers(n_similar=n_similar)]
    if counted is None and not graph.shares_points:
        return _check_loose_ratio(graph, prior)
    members = (graph.sides != 0) & (graph.degree > 0) & (True if counted is None else counted)
    size = np.bincount(graph.component[members], minlength=graph.n_components)
    up = np.bincount(graph.component[graph.sides * members > 0], minlength=graph.n_components)
    # A point says nothing unless it is compared with another random one.
    m = size[size > 1]
    if not len(m):
        return []
    observed = float(_pair_excess(up[size > 1], m).sum())
    simulated = _simulated_excess(m, 0.5 if prior is None else prior)
    low, high = ((1 + np.sum(tail)) / (1 + _DRAWS) for tail in (simulated <= observed, simulated >= observed))
    n_points = int(m.sum())
    p_value = low if prior is None else 2 * min(low, high)
    share = float(np.clip((1 + observed / n_points) / 2, 0, 1))
    return _ratio_finding(p_value, prior, graph.n_answers, share, n_points)


def _check_loose_ratio(graph: AnswerGraph, prior: float | None) -> list[Finding]:
    """Test the numbers of loose pairs."""
    if not (n := graph.n_answers):
        return []
    n_similar = int(np.sum(graph.same > 0))
    share, side = (0.5, "less") if prior is None else (similar_share(prior), "two-sided")
    return _ratio_finding(binomtest(n_similar, n, share, alternative=side).pvalue, prior, n, n_similar / n, None)


def _ratio_finding(
    p_value: float, prior: float | None, n_answers: int, share: float, n_points: int | None
) -> list[Finding]:
    """Report a share of similar pairs that random pairs rarely have."""
    if p_value >= LEVEL:
        return []
    found: dict[str, Any] = {"n_answers": n_answers, "share": share, "n_points": n_points, "level": LEVEL}
    if prior is None:
        return [TooFewSimilar(**found)]
    return [RatioAgainstPrior(**found, prior=prior, expected_share=similar_share(prior))]


def _pair_excess(up: Indices, m: Indices | int) -> Array:
    """A component's term of equation (1)."""
    return ((2 * up - m) ** 2 - m) / (m - 1)


def _simulated_excess(m: Indices, p: float) -> Array:
    """Simulate R of equation (1) for components of these sizes."""
    rng = np.random.default_rng(0)
    total = np.zeros(_DRAWS)
    for size, count in zip(*np.unique(m, return_counts=True), strict=True):
        if count <= size:
            total += _pair_excess(rng.binomial(size, p, (_DRAWS, count)), size).sum(axis=1)
        else:
            # Many of one size: draw how many of them have k points on one side.
            k = np.arange(size + 1)
            total += rng.multinomial(count, binom.pmf(k, size, p), _DRAWS) @ _pair_excess(k, size)
    return total


@dataclass(frozen=True)
class Population:
    """Means of the rows of a table, for the test of :func:`check_population`."""

    n_rows: int
    mean: Array  # (n_features,), of each feature
    variance: Array
    off_mode: Array  # (n_features,), share of the rows that do not have the feature's usual value

    @classmethod
    def of(cls, X: Rows) -> Population:
        """Compute them from the rows of a matrix."""
        if sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0)).ravel()
            variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
            return cls(X.shape[0], mean, variance, np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0])
        return cls(X.shape[0], X.mean(axis=0), X.var(axis=0), off_mode(X))


def off_mode(X: Array) -> Array:
    """Share of the rows whose value is not the median: nearly all, unless one value is usual."""
    return np.array([np.mean(column != np.median(column)) for column in X.T])


def check_population(
    X: Rows, ends: Indices, names: Sequence[str], population: Population | None = None
) -> list[Finding]:
    """Compare feature means of the points in pairs with those of the table, by default ``X``."""
    points = np.unique(ends)
    population = Population.of(X) if population is None else population
    if len(points) < ENOUGH or len(points) == population.n_rows:
        return []
    mean = population.mean
    k = len(points)
    finite = (population.n_rows - k) / (population.n_rows - 1)
    error = np.sqrt(np.maximum(population.variance, 0) / k * finite)
    # A rare feature needs enough rows that do not have its usual value.
    # The mean of a feature is far from normal where few rows differ from its usual value.
    judged = (k * np.minimum(population.off_mode, 1) >= ENOUGH) & (error > 1e-10 * np.abs(mean))
    here = np.asarray(X[points].mean(axis=0)).ravel()
    z = np.divide(here - mean, error, out=np.zeros_like(mean), where=judged)
    limit = norm.isf(LEVEL / 2 / max(len(z), 1))
    worst = np.argsort(-np.abs(z))[: int(np.sum(np.abs(z) > limit))]
    if not len(worst):
        return []
    features, scores = tuple(names[j] for j in worst), tuple(z[worst].tolist())
    return [OtherPopulation(features=features, standard_scores=scores, n_features=len(z), level=LEVEL)]


def check_pairing(X: Rows, ends: Indices, names: Sequence[str]) -> list[Finding]:
    """Test whether who is compared with whom depends on the features: near neighbours, rows of one group."""
    pairing = judge_pairing(X, ends)
    if not pairing.is_chosen:
        return []
    features = tuple(names[j] for j in pairing.columns[:_NAMED])
    alike = tuple(pairing.correlations[:_NAMED].tolist())
    return [PairsByFeatures(features=features, correlations=alike, n_answers=len(ends), level=PAIRING_LEVEL)]


def check_shared_points(graph: AnswerGraph, names: Sequence[str] | None = None) -> list[Finding]:
    """Report shared points: how many answers are independent, how many folds cut, and hubs."""
    if not graph.shares_points:
        return []
    n_points = int(np.sum(graph.degree > 0))
    n_splits = number_of_folds(ACCURACY_FOLDS, graph)
    shared = SharedPoints(
        n_answers=graph.n_answers,
        n_points=n_points,
        n_independent=graph.n_independent,
        n_components=n_points - graph.n_independent,
        n_splits=n_splits,
        n_cut=folds_over_points(ACCURACY_FOLDS, graph).n_cut(None, graph) if n_splits > 1 else 0,
    )
    hubs = graph.hubs()
    if not len(hubs):
        return [shared]
    named = () if names is None else tuple(names[k] for k in graph.points[hubs[:_NAMED]].tolist())
    degrees = tuple(graph.degree[hubs[:_NAMED]].tolist())
    return [shared, Hubs(n_answers_of_each=degrees, n_hubs=len(hubs), n_answers=graph.n_answers, names=named)]


def check_contradictions(answers: AnswerChecks | AnswerGraph) -> list[Contradictions]:
    """Report answers that cannot all be right."""
    if isinstance(answers, AnswerGraph):
        contradictory = answers.contradictory[answers.component[answers.ends[:, 0]]]
        answers = check_answers(answers.restrict(contradictory, np.zeros(answers.n_points, dtype=bool)))
    if not answers.n_contradictions:
        return []
    both_ways, closure, odd_cycles = map(len, (answers.disagreements, answers.closure, answers.odd_cycles))
    count = both_ways + closure + odd_cycles
    return [Contradictions(count=count, both_ways=both_ways, closure=closure, odd_cycles=odd_cycles)]


def check_alike(graph: AnswerGraph, names: Sequence[str] | None = None) -> list[Finding]:
    """Report the two people who agree on the most questions, and on all that both answered."""
    _, question = number_questions(graph.ends, graph.n_points)
    used = (graph.annotators > 0) & (np.bincount(graph.annotators)[graph.annotators] >= _ALIKE)
    people, person = np.unique(graph.annotators[used], return_inverse=True)
    votes = sparse.csr_matrix((graph.same[used], (person, question[used])), shape=(len(people), graph.n_answers)).sign()
    # Questions that both answered, minus twice those that they answered differently, is their number if there are none.
    shared = (abs(votes) @ abs(votes).T).toarray()
    together = np.triu(np.where((votes @ votes.T).toarray() == shared, shared, 0), 1)
    if together.max(initial=0) < _ALIKE:
        return []
    pair = people[list(np.unravel_index(np.argmax(together), together.shape))].tolist()
    first, second = (f"Annotator {k}" if names is None else names[k - 1] for k in pair)
    return [AnswersAlike(first=first, second=second, n=int(together.max()))]


def audited_rates(answers: Answers) -> AnswerModel | None:
    """Error rates by an audit; None without one, or where it does not cover everybody."""
    if not answers.audits or answers.kinds is None:
        return None
    names = ("", *answers.annotator_names)
    audits = {names.index(name): counts for name, counts in answers.audits.items()}
    numbers = answers.annotator_numbers
    parts = {*audits, *numbers[answers.kinds == AUDIT].tolist()}
    return AnswerModel.audited(numbers, audits) if parts.issuperset(numbers.tolist()) else None


def check_source(answers: Answers) -> list[Finding]:
    """Report what a file of answers is about, who was found wrong by an audit, and flips for privacy."""
    findings = [*check_entities(answers), *check_forced_choices(answers)]
    for name, (n, n_wrong) in (answers.audits or {}).items():
        rate = AnswerModel.audited(np.zeros(n, dtype=np.int64), {0: (n, n_wrong)}).error_rate
        findings.append(Audit(name=name, n=n, n_wrong=n_wrong, value=rate.value, low=rate.low, high=rate.high))
    if answers.epsilon is not None:
        findings.append(FlippedAnswers(epsilon=answers.epsilon, flip_rate=flip_rate(answers.epsilon)))
    return findings + check_alike(known_answers(answers)[0], answers.annotator_names)


def check_columns(answers: Answers) -> list[UnusedColumns]:
    """Report columns of a file of answers that are not used, and those that may say who answered."""
    columns = answers.unused_columns
    people = [] if answers.annotators is not None else [name for name in columns if columns[name]]
    return [UnusedColumns(columns=tuple(columns), people=tuple(people))] if columns else []


def check_entities(answers: Answers) -> list[Finding]:
    """Report answers about entities, or about too many classes, rather than about a few classes."""
    n = answers.n_similar + answers.n_dissimilar
    if entities := _entities(answers):
        return [entities]
    share = 1 / _MANY_CLASSES
    if answers.n_similar and binomtest(answers.n_similar, n, share, alternative="less").pvalue < LEVEL:
        return [ManyClasses(n_similar=answers.n_similar, n_answers=n, n_classes=_MANY_CLASSES, level=LEVEL)]
    return []


def _entities(answers: Answers) -> Entities | None:
    """Report groups of similar points, if these groups are entities.

    The "same" answers of classes chain points together: i to j and j to k. Those of entities do not, as each point
    belongs to a group of two or three. The same answers in random order show how many points would be two steps apart.
    A question counts if it is decided by two votes, where most are asked twice: wrong answers chain entities, too.
    """
    if answers.n_similar <= ENTITIES:
        return None
    graph, _ = known_answers(answers)
    asked, question = number_questions(graph.ends, graph.n_points)
    vote = np.bincount(question, graph.same)
    # Hubs are examples of classes: everything is two steps apart there.
    decided = (np.abs(vote) >= min(2, np.median(np.bincount(question)))) & ~np.isin(asked, graph.hubs()).any(axis=1)
    asked, same = asked[decided], vote[decided] > 0
    size = np.bincount(connect(asked[same], graph.n_points))
    if (n_groups := int(np.sum(size > 1))) <= ENTITIES:
        return None
    random_order = np.random.default_rng(0).permutation(same)
    n_apart, n_expected = (_two_steps_apart(asked[kind], graph.n_points) for kind in (same, random_order))
    if n_expected <= max(ENTITIES, _ENTITY_TIMES * n_apart):
        return None
    return Entities(
        n_similar=answers.n_similar,
        n_answers=answers.n_similar + answers.n_dissimilar,
        n_groups=n_groups,
        median_size=float(np.median(size[size > 1])),
        n_apart=n_apart,
        n_expected=n_expected,
    )


def _two_steps_apart(ends: Indices, n_points: int) -> int:
    """Number of pairs of points with a common neighbour that are not neighbours themselves."""
    both = np.concatenate([ends, ends[:, ::-1]])
    near = sparse.csr_matrix((np.ones(len(both), dtype=bool), both.T), shape=(n_points, n_points))
    apart = (near.astype(np.int64) @ near.astype(np.int64)).astype(bool) > near
    return int(apart.sum() - apart.diagonal().sum()) // 2


def check_crowd(answers: Answers, model: AnswerModel, n_classes: int) -> list[Finding]:
    """Report error rates, doubtful people, confused classes and disputed questions."""
    graph, used = known_answers(answers)
    people = _people(graph, None if answers.seconds is None else answers.seconds[used], model, answers.annotator_names)
    rate = model.error_rate
    each = [person.n_answers for person in people] or [len(np.unique(graph.question))]
    fewest, median, most = np.quantile(each, [0, 0.5, 1]).tolist()
    findings: list[Finding] = [
        Crowd(
            n_classes=n_classes,
            n_people=len(people),
            value=rate.value,
            low=rate.low,
            high=rate.high,
            identified=rate.identified,
            answers_each=(fewest, median, most),
        )
    ]
    if len(people) > 1:
        doubtful = tuple(str(person) for person in people if person.reasons)
        findings.append(People(people=tuple(people), count=len(doubtful), items=doubtful))
    if model.table is not None:
        findings.append(_confused(100 * model.table))
    asked, question = number_questions(graph.ends, graph.n_points)
    n = np.bincount(question)
    same = np.bincount(question, graph.same > 0).astype(int)
    hard = _disputed(same, n, np.bincount(question, model.errors(graph.annotators)) / n)
    if len(hard):
        ids = list(dict.fromkeys(answers.ids.ravel().tolist()))
        pairs = [" and ".join(shortened(ids[point]) for point in ends) for ends in asked[hard]]
        items = tuple(f"{pairs[i]}: {same[k]} same, {n[k] - same[k]} different" for i, k in enumerate(hard))
        findings.append(Disputed(count=len(hard), level=LEVEL, items=items))
    return findings


def _people(graph: AnswerGraph, seconds: Array | None, model: AnswerModel, names: Sequence[str]) -> list[Person]:
    """Everybody who answered, the highest error rate first, with reasons to doubt them."""
    people = []
    for k in np.unique(graph.annotators[graph.annotators > 0]).tolist():
        own = graph.annotators == k
        answers = graph.same[own]
        rate = model.by_annotator[k]
        # Probability that all answers of one of so many people are equal.
        equal = len(names) * np.mean(graph.same == answers[0]) ** len(answers) if np.ptp(answers) == 0 else 1.0
        reasons = {
            "wrong more often than others": rate.low > model.error_rate.value,
            f"{rate.careless:.0%} careless": rate.careless > _CARELESS,
            f'all "{"same" if answers[0] > 0 else "different"}"': equal < LEVEL,
        }
        if seconds is not None and not np.isnan(seconds[own]).all():
            took = np.nanmedian(seconds[own])
            reasons[f"{took:.1f} s an answer"] = took < _FAST * np.nanmedian(seconds)
        why = tuple(reason for reason, holds in reasons.items() if holds)
        people.append(Person(names[k - 1], rate.value, rate.low, rate.high, len(np.unique(graph.question[own])), why))
    return sorted(people, key=lambda person: (-person.value, -person.low))


def _confused(same: Array) -> AnswerTable:
    """The answer table in per cent, and its K largest error rates."""
    K = len(same)
    wrong = np.tril(np.where(np.eye(K, dtype=bool), 100 - same, same))
    words = ('class {0}: called "different" {2:.0f}%', 'classes {1} and {0}: called "same" {2:.0f}%')
    worst = [divmod(k, K) for k in np.argsort(-wrong, axis=None)[:K].tolist()]
    return AnswerTable(
        classes=tuple(str(k + 1) for k in range(K)),
        same=tuple(map(tuple, same.round().tolist())),
        different=tuple(map(tuple, (100 - same).round().tolist())),
        count=K,
        items=tuple(words[i != j].format(i + 1, j + 1, wrong[i, j]) for i, j in worst),
    )


def _disputed(same: Indices, n: Indices, errors: Array) -> Indices:
    """Questions whose n answers disagree more than errors explain, the smallest p-value first."""
    # If X of n answers are wrong, the smaller side has min(X, n - X), whatever the truth is.
    fewer = np.minimum(same, n - same)
    p_value = binom.cdf(n - fewer, n, errors) - binom.cdf(fewer - 1, n, errors)
    order = np.argsort(p_value, kind="stable")
    return order[p_value[order] * max(np.sum(n > 1), 1) < LEVEL]


def check_outcome(prior: PriorEstimate, accuracy: AccuracyEstimate, oriented: bool) -> list[Finding]:
    """Report a model that does not beat the larger class, and a prior that is not identified."""
    findings: list[Finding] = []
    low = accuracy.low
    # Another finding reports an accuracy without any answers.
    if accuracy.n_answers and low <= 0.5:
        findings.append(NoBetterThanGuessing(low=low, chance=0.5))
    elif accuracy.n_answers and not accuracy.beats_majority:
        findings.append(NoBetterThanMajority(low=low, majority=accuracy.majority))
    if not prior.identified and not oriented:
        findings.append(PriorNotIdentified(low=prior.low, high=prior.high))
    return findings
