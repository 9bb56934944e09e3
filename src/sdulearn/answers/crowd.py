"""Gibbs sampling for answers of a crowd: classes of points, error table and careless people.

An answer of annotator a about points of the classes k and l is "same" with probability

    P(same | k, l; a) = (1 - g_a) T[k, l] + g_a s_a                                              (1)

with T symmetric, g_a the share of careless answers and s_a that of "same" among these. Everything
is drawn in turn, given the rest [1]_: classes of points, whether each answer is careless, and

    T[k, l] ~ Beta(m mu + same, m (1 - mu) + different),  (mu, m) one for k = l, one for k != l  (2)
    g_a ~ Beta(m mu + careless, m (1 - mu) + careful),   s_a likewise                            (3)

The mean mu and the strength m of each prior are drawn, too: a person with few answers is near the
mean of all people, and a table with few answers near one rate. Without a table, T is 1 - e where
k = l and e elsewhere. T and g_a explain equally well what everybody does at times: careless answers
of the most careful tenth of the people are counted as part of the reported T.

No model of people is right, and a wrong one is overconfident: on real answers its mean probability
was 95% where 76% of the classes were right. So most chains use a Bayesian bootstrap of the people,
and all draws together are the bagged posterior [2]_. The other chains weight all people equally.

References
----------
.. [1] Geman & Geman, "Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of
   images", IEEE Transactions on Pattern Analysis and Machine Intelligence 6 (1984).
.. [2] Huggins & Miller, "Reproducible model selection using bagged posteriors", Bayesian Analysis 18
   (2023).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh
from scipy.special import betaln, gammaln, softmax
from sklearn.cluster import KMeans

from sdulearn.answers.graph import AnswerGraph, number_questions
from sdulearn.progress import steps
from sdulearn.types import Array, Codes, Indices, Mask

# Means and strengths of the Beta priors to draw from.
_LOW_MEANS = np.array([0.002, 0.01, 0.03, 0.07, 0.13, 0.2, 0.3, 0.42])
_MEANS = np.concatenate([_LOW_MEANS, 1 - _LOW_MEANS[::-1]])
_STRENGTHS = np.array([2.0, 6.0, 20.0, 60.0, 400.0])
_PRIOR = np.outer(_STRENGTHS, _MEANS).ravel(), np.outer(_STRENGTHS, 1 - _MEANS).ravel()
# The prior without a table: 30 answers of which 2% are wrong.
_ONE_RATE = (0.6, 29.4)
# Distance of probabilities from 0 and 1.
_MARGIN = 1e-4
# Initial values of the table and of the share of careless answers.
_FIRST_RIGHT = 0.85
_FIRST_CARELESS = 0.1
# Chains, those of them without a bootstrap, draws of the burn-in, and draws that are kept.
_N_CHAINS = 16
_N_ALIKE = 3
_N_BURN = 100
_N_KEPT = 60
# Burn-in where only the classes are unknown.
_N_BURN_CLASSES = 20
# With fewer people the bootstrap is over questions.
_FEWEST_PEOPLE = 10
# Share of the people who count as the most careful.
_CAREFUL = 0.1
# Log probability of a class that a label rules out.
_RULED_OUT = -700.0


class Draws(NamedTuple):
    """Means and draws of all chains, S draws in all."""

    posteriors: Array  # (n_asked, n_classes), of the points in answers, the largest class first
    table: Array  # (n_classes, n_classes), T in equation (1)
    careless: Array  # (n_annotators,), g in equation (1)
    same: Array  # (n_annotators,), s in equation (1)
    wrong: Array  # (S,), share of these answers that are wrong
    rates: Array  # (S, n_annotators), probability that an answer of each annotator is wrong
    largest: Array  # (S,), share of the largest class in the population
    alike: Mask  # (S,), whether a draw is from a chain without a bootstrap
    chances: Array  # (n_left_out,), probability of each answer that was left out


class _State(NamedTuple):
    """Current state of the chains, along the first axis."""

    classes: Indices  # (C, n_points)
    table: Array  # (C, K, K)
    careless: Array  # (C, n_annotators)
    same: Array  # (C, n_annotators)
    shares: Array  # (C, K)


class CrowdSampler:
    """Gibbs sampler for the answers ``used``, with log priors ``log_p`` (n_points, K) of a model."""

    def __init__(
        self,
        graph: AnswerGraph,
        n_classes: int,
        *,
        by_pair: bool = True,
        used: Mask | None = None,
        log_p: Array | None = None,
        n_chains: int = _N_CHAINS,
    ) -> None:
        self.rng = np.random.default_rng(0)
        self.by_pair = by_pair
        self.n_classes = n_classes
        self.n_chains = n_chains
        self.points, ends = np.unique(graph.ends, return_inverse=True)
        self.n_points = len(self.points)
        self.all_ends = ends.reshape(-1, 2)
        self.log_p = None if log_p is None else log_p[self.points]
        people, self.annotator = np.unique(graph.annotators, return_inverse=True)
        self.n_people = len(people)
        self.graph = graph
        kept = np.ones(graph.n_answers, dtype=bool) if used is None else used
        self.left_out = np.flatnonzero(~kept)
        self.ends = self.all_ends[kept]
        self.said = (graph.same[kept] > 0).astype(np.intp)
        self.who = self.annotator[kept]
        self.n_of = np.bincount(self.who, minlength=self.n_people)
        # The careless share of a single person is not identified.
        self.has_people = self.n_people > 1
        labels = graph.labels[self.points]
        columns = labels > 0 if graph.labels.max(initial=0) < 2 and n_classes == 2 else labels - 1
        # Where fewer classes are tried than labels name, the labels of the others tell nothing.
        self.labels = np.where((labels == 0) | (columns >= n_classes), -1, columns)
        self.n_alike = min(_N_ALIKE, n_chains)
        self.weights = graph.weights[kept] * self._bootstrap()
        self._chain = np.arange(n_chains)[:, None]
        self._unseen = np.setdiff1d(self.all_ends, self.ends)
        # Flat index (C, n_answers) of answer, chain and person in an array of this shape.
        self._row = (self.said * n_chains + self._chain) * self.n_people + self.who

    def _bootstrap(self) -> Array:
        """Return weights (C, n_answers), drawn per person, or per question where people are few."""
        unit = self.who
        if self.n_people < _FEWEST_PEOPLE:
            _, unit = number_questions(self.ends, self.n_points)
        by_unit = self.rng.exponential(size=(self.n_chains, int(unit.max(initial=0)) + 1))
        by_unit[: self.n_alike] = 1.0
        return by_unit[:, unit]

    @cached_property
    def _blocks(self) -> list[tuple[Indices, Indices, Indices, Array, Indices]]:
        """Sets of points that no answer joins; their answers by other end, row, weight and start."""
        point = self.ends.T.ravel()
        colour = _colour(self.ends, self.n_points)[point]
        order = np.lexsort((point, colour))
        other = self.ends[:, ::-1].T.ravel()[order]
        answer = np.tile(np.arange(len(self.ends)), 2)[order]
        point = point[order]
        first = np.flatnonzero(np.diff(colour[order], prepend=-1))
        blocks = []
        for part in np.split(np.arange(len(point)), first[1:]):
            start = np.flatnonzero(np.diff(point[part], prepend=-1))
            row = self._row[:, answer[part]] * self.n_classes
            blocks.append((point[part][start], other[part], row, self.weights[:, answer[part], None], start))
        return blocks

    def run(self, n_burn: int = _N_BURN, n_kept: int = _N_KEPT) -> Draws:
        """Run all chains."""
        state = self._first()
        size = (self.n_chains, self.n_points, self.n_classes)
        means = [np.zeros(size), *map(np.zeros_like, state[1:4]), np.zeros(len(self.left_out))]
        log_chance = _log_chances(state.table, state.careless, state.same)
        kept = []
        for k in steps(range(n_burn + n_kept), "draws"):
            log_p = np.log(state.shares)[:, None] if self.log_p is None else self.log_p
            found = self.draw_classes(state.classes, log_chance, log_p)
            state = self._draw_parameters(state, log_chance)
            log_chance = _log_chances(state.table, state.careless, state.same)
            if k < n_burn:
                continue
            parts = (found, *state[1:4], self._left_out_chances(state.classes, log_chance))
            means = [total + part / n_kept for total, part in zip(means, parts, strict=True)]
            kept.append((self._share_wrong(state.classes), self._rates(state), state.shares.max(axis=1)))
        posteriors, table, careless, same, chances = means
        wrong, rates, largest = zip(*kept, strict=True)
        everybody = np.quantile(careless.mean(axis=0), _CAREFUL)
        table = (1 - everybody) * table + everybody * same.mean()
        careless = np.maximum(careless - everybody, 0.0) / (1 - everybody)
        orders, merged = _align(posteriors)
        named = self.log_p is not None or (self.labels >= 0).any()
        by_size = np.arange(self.n_classes) if named else np.argsort(-merged.sum(axis=0), kind="stable")
        orders = [order[by_size] for order in orders]
        return Draws(
            posteriors=merged[:, by_size],
            table=np.mean([one[np.ix_(order, order)] for one, order in zip(table, orders, strict=True)], axis=0),
            careless=careless.mean(axis=0),
            same=same.mean(axis=0),
            wrong=np.ravel(wrong),
            rates=np.concatenate(rates),
            largest=np.ravel(largest),
            alike=np.tile(np.arange(self.n_chains) < self.n_alike, len(wrong)),
            chances=chances,
        )

    def _first(self) -> _State:
        """Start from clusters of the answers, every other chain from the classes by the model."""
        C = self.n_chains
        K = self.n_classes
        classes = _clusters(self.ends, self.said, self.n_points, K, C)
        names = self.labels if self.log_p is None else np.argmax(self.log_p, axis=1)
        for one in classes:
            one[:] = match_clusters(one, names, K)
        if self.log_p is not None:
            classes[::2] = names
        table = np.where(np.eye(K, dtype=bool), _FIRST_RIGHT, 1 - _FIRST_RIGHT)
        careless = np.full((C, self.n_people), _FIRST_CARELESS if self.has_people else 0.0)
        return _State(classes, np.tile(table, (C, 1, 1)), careless, np.full_like(careless, 0.5), np.full((C, K), 1 / K))

    def draw_classes(self, classes: Indices, log_chance: Array, log_p: Array) -> Array:
        """Draw all classes in place; return the probabilities (C, n_points, K) of the draws."""
        K = self.n_classes
        rows = log_chance.reshape(-1, K)
        log_p = np.broadcast_to(log_p, (self.n_chains, self.n_points, K))
        posteriors = softmax(log_p, axis=2)
        # Points all of whose answers were left out.
        classes[:, self._unseen] = _choose(posteriors[:, self._unseen], self.rng)
        for points, other, row, weight, start in self._blocks:
            terms = rows.take(row + classes.take(other, axis=1), axis=0)
            terms *= weight
            total = np.add.reduceat(terms, start, axis=1) + log_p[:, points]
            known = np.flatnonzero(self.labels[points] >= 0)
            total[:, known] += np.where(np.arange(K) == self.labels[points[known], None], 0.0, _RULED_OUT)
            probability = softmax(total, axis=2)
            posteriors[:, points] = probability
            classes[:, points] = _choose(probability, self.rng)
        return posteriors

    def _draw_parameters(self, state: _State, log_chance: Array) -> _State:
        """Draw which answers are careless, and equations (2) and (3)."""
        C = self.n_chains
        K = self.n_classes
        first, second = (state.classes.take(end, axis=1) for end in self.ends.T)
        said = self.said
        chance = np.exp(log_chance.reshape(-1).take((self._row * K + first) * K + second))
        share = state.careless[:, self.who]
        careless = np.zeros(chance.shape, dtype=bool)
        if self.has_people:
            same = state.same[:, self.who]
            careless = self.rng.random(chance.shape) < share * np.where(said, same, 1 - same) / chance
        cell = (self._chain * K + np.minimum(first, second)) * K + np.maximum(first, second)
        careful = self.weights * ~careless
        n_same, n_all = (_sums(cell, one, (C, K, K)) for one in (careful * said, careful))
        table = self._draw_table(n_same, n_all - n_same)
        shares = self.rng.gamma(1.0 + np.stack([np.bincount(one, minlength=K) for one in state.classes]))
        shares = np.maximum(shares / shares.sum(axis=1, keepdims=True), 1e-6)
        if not self.has_people:
            return state._replace(table=table, shares=shares)
        person = self._chain * self.n_people + self.who
        size = (C, self.n_people)
        n_careless, n_same = (_sums(person, one, size) for one in (careless, careless & (said > 0)))
        share = self._draw_shares(n_careless, np.broadcast_to(self.n_of, size))
        same = self._draw_shares(n_same, n_careless) if self.by_pair else state.same
        return _State(state.classes, table, share, same, shares)

    def _draw_shares(self, hits: Array, n: Array) -> Array:
        """Draw equation (3) for each person, after its prior by the beta-binomial likelihood."""
        a, b = _PRIOR
        j = np.arange(int(n.max()) + 1)[:, None]
        values = len(hits[0]) * -betaln(a, b)
        for counts, prior in ((hits, a), (n - hits, b)):
            values = values + _histogram(counts, len(j)) @ gammaln(prior + j)
        values = values - _histogram(n, len(j)) @ gammaln(a + b + j)
        chosen = _choose(softmax(values, axis=1), self.rng)[:, None]
        return np.clip(self.rng.beta(a[chosen] + hits, b[chosen] + n - hits), _MARGIN, 1 - _MARGIN)

    def _draw_table(self, same: Array, different: Array) -> Array:
        """Draw equation (2), from counts (C, K, K) of each two classes in the upper triangles."""
        K = self.n_classes
        table = np.empty_like(same)
        own = np.eye(K, dtype=bool)
        if not self.by_pair:
            right, wrong = (np.where(own, *kinds).sum(axis=(1, 2)) for kinds in ((same, different), (different, same)))
            rate = np.clip(self.rng.beta(_ONE_RATE[0] + wrong, _ONE_RATE[1] + right), _MARGIN, 0.5)[:, None, None]
            return np.where(own, 1 - rate, rate)
        a, b = (prior[:, None, None] for prior in _PRIOR)
        for rows, columns in (np.diag_indices(K), np.triu_indices(K, 1)):
            n_same = same[:, rows, columns]
            n_different = different[:, rows, columns]
            values = (betaln(a + n_same, b + n_different) - betaln(a, b)).sum(axis=2)
            chosen = _choose(softmax(values.T, axis=1), self.rng)[:, None]
            drawn = self.rng.beta(_PRIOR[0][chosen] + n_same, _PRIOR[1][chosen] + n_different)
            table[:, rows, columns] = np.clip(drawn, _MARGIN, 1 - _MARGIN)
            table[:, columns, rows] = table[:, rows, columns]
        return table

    def _share_wrong(self, classes: Indices) -> Array:
        """Return the weighted share of wrong answers (C,)."""
        agree = classes[:, self.all_ends[:, 0]] == classes[:, self.all_ends[:, 1]]
        return (agree != (self.graph.same > 0)) @ self.graph.weights / self.graph.weights.sum()

    def _rates(self, state: _State) -> Array:
        """Return the probability (C, n_annotators) that an answer of each person is wrong."""
        agree = state.classes[:, self.ends[:, 0]] == state.classes[:, self.ends[:, 1]]
        chance = state.table[self._chain, state.classes[:, self.ends[:, 0]], state.classes[:, self.ends[:, 1]]]
        careful = np.where(agree, 1 - chance, chance).mean(axis=1, keepdims=True)
        same = agree.mean(axis=1, keepdims=True)
        guessed = same * (1 - state.same) + (1 - same) * state.same
        return (1 - state.careless) * careful + state.careless * guessed

    def _left_out_chances(self, classes: Indices, log_chance: Array) -> Array:
        """Return the mean over the chains of equation (1) for answers left out."""
        first, second = (classes[:, end] for end in self.all_ends[self.left_out].T)
        said = (self.graph.same[self.left_out] > 0).astype(np.intp)
        cells = said, self._chain, self.annotator[self.left_out], first, second
        return np.exp(log_chance[cells]).mean(axis=0)


def sample_classes(graph: AnswerGraph, table: Array, careless: Array, same: Array, log_p: Array) -> Array:
    """Return class probabilities of the points by equation (1) and their log priors."""
    sampler = CrowdSampler(graph, len(table), log_p=log_p)
    assert sampler.log_p is not None
    classes = np.tile(np.argmax(sampler.log_p, axis=1), (_N_CHAINS, 1))
    log_chance = _log_chances(*(np.tile(part, (_N_CHAINS, *[1] * part.ndim)) for part in (table, careless, same)))
    total = np.zeros_like(sampler.log_p)
    for k in steps(range(_N_BURN_CLASSES + _N_KEPT), "draws"):
        drawn = sampler.draw_classes(classes, log_chance, sampler.log_p)
        if k >= _N_BURN_CLASSES:
            total += drawn.mean(axis=0) / _N_KEPT
    found = softmax(log_p, axis=1)
    found[sampler.points] = total
    return found


def _log_chances(table: Array, careless: Array, same: Array) -> Array:
    """Return logs of equation (1), (2, C, n_annotators, K, K), for "different" and for "same"."""
    share = careless[:, :, None, None]
    chance = (1 - share) * table[:, None] + share * same[:, :, None, None]
    return np.log(np.stack([1 - chance, chance]))


def _choose(probability: Array, rng: np.random.Generator) -> Indices:
    """Draw an index along the last axis by these probabilities."""
    below = np.cumsum(probability, axis=-1)
    return np.minimum((rng.random(below.shape[:-1])[..., None] > below).sum(axis=-1), below.shape[-1] - 1)


def _sums(place: Indices, values: Array | Mask, shape: tuple[int, ...]) -> Array:
    """Sum values by their flat index in an array of this shape."""
    total = np.bincount(place.ravel(), values.ravel(), int(np.prod(shape)))
    return total.reshape(shape).astype(np.float64)


def _histogram(counts: Array, size: int) -> Array:
    """Count how often each value occurs in each row."""
    return np.stack([np.bincount(row.astype(np.intp), minlength=size) for row in counts]).astype(np.float64)


def _colour(ends: Indices, n_points: int) -> Indices:
    """Colour points greedily, so that no answer joins two points of the same colour."""
    ones = np.ones(2 * len(ends))
    joined = csr_matrix((ones, (ends.T.ravel(), ends[:, ::-1].T.ravel())), shape=(n_points, n_points))
    colour = np.full(n_points, -1)
    for i in np.argsort(-np.diff(joined.indptr), kind="stable").tolist():
        used = np.unique(colour[joined.indices[joined.indptr[i] : joined.indptr[i + 1]]])
        used = used[used >= 0]
        colour[i] = np.argmax(np.append(used, -1) != np.arange(len(used) + 1))
    return colour


def _clusters(ends: Indices, said: Codes, n_points: int, n_classes: int, n_starts: int) -> Indices:
    """Cluster (n_starts, n_points) by k-means of the top eigenvectors of the centred answers."""
    if n_points <= n_classes + 1:
        return np.tile(np.arange(n_points) % n_classes, (n_starts, 1))
    weight = np.tile(said - said.mean(), 2)
    answers = csr_matrix((weight, (ends.T.ravel(), ends[:, ::-1].T.ravel())), shape=(n_points, n_points))
    scale = np.maximum(np.bincount(ends.ravel(), minlength=n_points), 1) ** -0.5
    values, vectors = eigsh(diags(scale) @ answers @ diags(scale), n_classes - 1, which="LA", v0=scale, tol=1e-3)
    places = vectors * np.sqrt(np.maximum(values, 0.0)) / scale[:, None]
    starts = [KMeans(n_classes, n_init=1, random_state=k).fit(places).labels_ for k in range(n_starts)]
    return np.array(starts, dtype=np.intp)


def match_clusters(cluster: Indices, labels: Codes, n_classes: int) -> Indices:
    """Renumber clusters so that most labelled points are in the cluster of their class, -1 where it is unknown."""
    known = np.flatnonzero(labels >= 0)
    votes = np.zeros((n_classes, n_classes))
    np.add.at(votes, (cluster[known], labels[known]), 1.0)
    return linear_sum_assignment(-votes)[1][cluster]


def _align(posteriors: Array) -> tuple[list[Indices], Array]:
    """Return the order of the classes of each chain that agrees best with all, and the mean."""
    merged = posteriors[0]
    for _ in range(3):
        orders = [linear_sum_assignment(-merged.T @ one)[1] for one in posteriors]
        merged = np.mean([one[:, order] for one, order in zip(posteriors, orders, strict=True)], axis=0)
    return orders, merged
