"""Gibbs sampling for answers of a crowd: classes of points, error table and careless people.

A question is a pair of points, or several points that are sorted or matched at once. Person a answers
it carelessly with probability g_a, all its pairs together:

    P(answers | classes; a) = (1 - g_a) prod T[k, l] or 1 - T[k, l] + g_a prod s_a or 1 - s_a    (1)

over its pairs, of the classes k and l, where the answer is "same" or "different". T is symmetric, s_a
the share of "same" among careless answers. Everything is drawn in turn, given the rest [1]_: which
questions are careless, the classes of points by the careful ones, and

    T[k, l] ~ Beta(m mu + same, m (1 - mu) + different),  (mu, m) one for k = l, one for k != l  (2)
    g_a ~ Beta(m mu + careless, m (1 - mu) + careful),   s_a likewise                            (3)

The mean mu and the strength m of each prior are drawn, too: a person with few answers is near the
mean of all people, and a table with few answers near one rate. Without a table, T is 1 - e where
k = l and e elsewhere. T and g_a explain equally well what everybody does at times: careless answers
of the most careful tenth of the people are counted as part of the reported T.

Chains end in different solutions. Only the better half counts, by

    mean log likelihood of the answers + entropy of the classes                                  (4)

without the shares of the classes, which are drawn, too: they reward classes of unequal size, where
two classes that look alike are one, and a few odd points another.

No model of people is right, and a wrong one is overconfident: on real answers its mean probability
was 95% where 76% of the classes were right. So the better chains go on for a few draws with each of
several Bayesian bootstraps of the people, and these draws are the bagged posterior [2]_. A solution
explains the answers that it was fitted to too well: 22% are wrong by it where 26% were. Intervals of
error rates therefore allow for chains, too, that had a bootstrap from their beginning.

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
from scipy.special import betaln, entr, expit, gammaln, softmax

from sdulearn.answers.clusters import align_classes, cluster_points, colour_points, match_clusters
from sdulearn.answers.graph import ENOUGH, AnswerGraph, number_questions
from sdulearn.answers.rates import FIRST_RATE, LOWEST, PRIOR_ANSWERS, PRIOR_RATE
from sdulearn.progress import steps
from sdulearn.types import Array, Indices, Mask

# Means and strengths of the Beta priors to draw from.
_LOW_MEANS = np.array([0.002, 0.01, 0.03, 0.07, 0.13, 0.2, 0.3, 0.42])
_MEANS = np.concatenate([_LOW_MEANS, 1 - _LOW_MEANS[::-1]])
_STRENGTHS = np.array([2.0, 6.0, 20.0, 60.0, 400.0])
_PRIOR = np.outer(_STRENGTHS, _MEANS).ravel(), np.outer(_STRENGTHS, 1 - _MEANS).ravel()
# The prior without a table: that of other rates.
_ONE_RATE = PRIOR_ANSWERS * np.array([PRIOR_RATE, 1 - PRIOR_RATE])
# Share of careless answers where chains start. From 0.15 some chains lost two classes that look alike (birds sorted in
# fours by 150 people, 8 seeds: 83% of the pictures right, not 86).
_FIRST_CARELESS = 0.1
# Chains of the search; half as many beside them have a bootstrap from the beginning.
_N_CHAINS = 16
# Draws of the burn-in, and draws that are kept.
_N_BURN = 50
_N_KEPT = 40
# Bootstraps of each chain after the search, and their draws, to settle and to keep: few, so that no chain leaves its
# solution.
_N_ROUNDS = 2
_N_BAGGED = 10
# Share of the people who count as the most careful.
_CAREFUL = 0.1


class Errors(NamedTuple):
    """S draws of C chains."""

    wrong: Array  # (S, C), share of these answers that are wrong
    rates: Array  # (S, C, n_annotators), probability that an answer of each annotator is wrong
    largest: Array  # (S, C), share of the largest class in the population


class Draws(NamedTuple):
    """What the chains found."""

    posteriors: Array  # (n_asked, n_classes), of the points in answers, the largest class first
    table: Array  # (n_classes, n_classes), T in equation (1)
    careless: Array  # (n_annotators,), g in equation (1)
    same: Array  # (n_annotators,), s in equation (1)
    alike: Errors  # with all people alike
    afresh: Errors  # with a bootstrap from the beginning
    bagged: Errors  # with bootstraps after the search


class _State(NamedTuple):
    """Current state of the chains, along the first axis."""

    classes: Indices  # (C, n_points)
    table: Array  # (C, K, K)
    careless: Array  # (C, n_annotators)
    same: Array  # (C, n_annotators)
    shares: Array  # (C, K)
    careful: Array  # (C, n_answers), weights, 0 for careless answers


class Chains(NamedTuple):
    """Means and draws of the chains, which are the first axis of all but the draws."""

    state: _State  # the last one
    posteriors: Array  # (C, n_points, K)
    table: Array  # (C, K, K)
    careless: Array  # (C, n_annotators)
    same: Array  # (C, n_annotators)
    chances: Array  # (C, n_left_out)
    values: Array  # (C,), the log likelihood in equation (4)
    errors: Errors

    def better(self, n_chains: int) -> Indices:
        """Return the better half of the first chains by equation (4)."""
        values = (self.values + entr(self.posteriors).sum(axis=(1, 2)))[:n_chains]
        return np.argsort(-values, kind="stable")[: (n_chains + 1) // 2]


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
        n_afresh: int = _N_CHAINS // 2,
    ) -> None:
        self.rng = np.random.default_rng(0)
        self.by_pair = by_pair
        self.n_classes = n_classes
        self.n_chains = n_chains + n_afresh
        self.n_afresh = n_afresh
        self.points = np.flatnonzero(graph.degree)
        self.n_points = len(self.points)
        people, person = np.unique(graph.annotators, return_inverse=True)
        self.n_people = len(people)
        # The careless share of a single person is not identified.
        self.has_people = self.n_people > 1
        # Answers in the order of people and questions: sums over these are sums of neighbours.
        order = np.lexsort((graph.question, person))
        self.ends = np.searchsorted(self.points, graph.ends[order])
        self.same = (graph.same[order] > 0).astype(np.intp)
        who = person[order]
        self.first = np.flatnonzero(np.diff(who, prepend=-1) | np.diff(graph.question[order], prepend=-1))
        self.n_pairs = np.diff(self.first, append=len(order))
        self.n_same = np.add.reduceat(self.same, self.first)
        self.question = np.arange(len(self.first)).repeat(self.n_pairs)
        self.weights = graph.weights[order][self.first]
        self.used = np.ones(len(self.first), dtype=bool) if used is None else used[order][self.first]
        self.who = who[self.first]
        self.first_of_person = np.searchsorted(self.who, np.arange(self.n_people))
        labels = graph.labels[self.points]
        columns = labels > 0 if graph.labels.max(initial=0) < 2 and n_classes == 2 else labels - 1
        # Where fewer classes are tried than labels name, the labels of the others tell nothing.
        self.labels = np.where((labels == 0) | (columns >= n_classes), -1, columns)
        self.log_p = None if log_p is None else log_p[self.points]
        self._chain = np.arange(self.n_chains)[:, None]

    def bootstrap(self, n_last: int) -> Array:
        """Return weights (C, n_questions), drawn for the last chains per person, or per question of few people."""
        unit = self.who
        if self.n_people < ENOUGH:
            # A question asked again is the same question.
            _, unit = number_questions(self.ends[self.first], self.n_points)
        by_unit = self.rng.exponential(size=(self.n_chains, int(unit.max(initial=0)) + 1))
        by_unit[: self.n_chains - n_last] = 1.0
        return self.used * self.weights * by_unit[:, unit]

    @cached_property
    def _blocks(self) -> list[tuple[Indices, Indices, Indices, Indices]]:
        """Sets of points that no answer joins; their answers, the other end and the cell of each."""
        point = self.ends.T.ravel()
        colour = colour_points(self.ends, self.n_points)[point]
        order = np.lexsort((point, colour))
        other = self.ends[:, ::-1].T.ravel()[order]
        answer = np.tile(np.arange(len(self.ends)), 2)[order]
        point = point[order]
        first = np.flatnonzero(np.diff(colour[order], prepend=-1))
        blocks = []
        for part in np.split(np.arange(len(point)), first[1:]):
            points, place = np.unique(point[part], return_inverse=True)
            cell = (self._chain * len(points) + place) * 2 + self.same[answer[part]]
            blocks.append((points, answer[part], other[part], cell * self.n_classes))
        return blocks

    def search(self, n_burn: int = _N_BURN, n_kept: int = _N_KEPT) -> Chains:
        """Run all chains from clusters of the answers; the last ones may have a bootstrap."""
        return self._run(self._start(), self.bootstrap(self.n_afresh), n_burn, n_kept)

    def run(self) -> Draws:
        """Search, and go on from the better half of the chains with bootstraps."""
        chains = self.search()
        n_alike = self.n_chains - self.n_afresh
        better = np.resize(chains.better(n_alike), self.n_chains)
        state = _State._make(part[better] for part in chains.state)
        bags = [self._run(state, self.bootstrap(self.n_chains), _N_BAGGED, _N_BAGGED) for _ in range(_N_ROUNDS)]
        posteriors, table, careless, same = map(np.concatenate, zip(*(bag[1:5] for bag in bags), strict=True))
        everybody = np.quantile(careless.mean(axis=0), _CAREFUL)
        table = (1 - everybody) * table + everybody * same.mean()
        careless = np.maximum(careless - everybody, 0.0) / (1 - everybody)
        orders, merged = align_classes(posteriors)
        named = self.log_p is not None or (self.labels >= 0).any()
        by_size = np.arange(self.n_classes) if named else np.argsort(-merged.sum(axis=0), kind="stable")
        orders = [order[by_size] for order in orders]
        return Draws(
            posteriors=merged[:, by_size],
            table=np.mean([part[np.ix_(order, order)] for part, order in zip(table, orders, strict=True)], axis=0),
            careless=careless.mean(axis=0),
            same=same.mean(axis=0),
            alike=Errors(*(part[:, :n_alike] for part in chains.errors)),
            afresh=Errors(*(part[:, n_alike:] for part in chains.errors)),
            bagged=Errors(*map(np.concatenate, zip(*(bag.errors for bag in bags), strict=True))),
        )

    def _run(self, state: _State, weights: Array, n_burn: int, n_kept: int) -> Chains:
        """Run the chains from a state, with weights (C, n_questions)."""
        left_out = ~self.used
        size = (self.n_chains, self.n_points, self.n_classes)
        means = [np.zeros(size), *map(np.zeros_like, state[1:4])]
        means += [np.zeros((self.n_chains, left_out.sum())), np.zeros(self.n_chains)]
        draws = []
        for k in steps(range(n_burn + n_kept), "draws"):
            probability, state = self.draw_classes(state)
            cells = self.cells(state.classes)
            state, switch = self.draw_switches(state, weights, self.log_questions(state, cells))
            state = self._draw_parameters(state, switch, cells)
            if k < n_burn:
                continue
            log_chance = np.logaddexp(*self.log_questions(state, cells))
            parts = (probability, *state[1:4], np.exp(log_chance[:, left_out]), self._value(state, log_chance))
            means = [mean + part / n_kept for mean, part in zip(means, parts, strict=True)]
            draws.append(self._errors(state, cells))
        return Chains._make([state, *means, Errors(*map(np.array, zip(*draws, strict=True)))])

    def _start(self) -> _State:
        """Start from clusters of the answers, every other chain from the classes by the model."""
        K = self.n_classes
        used = self.used[self.question]
        classes = cluster_points(self.ends[used], self.same[used], self.n_points, K, self.n_chains)
        names = self.labels if self.log_p is None else np.argmax(self.log_p, axis=1)
        for chain in classes:
            chain[:] = match_clusters(chain, names, K)
        if self.log_p is not None:
            classes[::2] = names
        table = np.where(np.eye(K, dtype=bool), 1 - FIRST_RATE, FIRST_RATE)
        careless = np.full(self.n_people, _FIRST_CARELESS if self.has_people else 0.0)
        return self.state_of(classes, table, careless, np.full_like(careless, 0.5))

    def state_of(self, classes: Indices, table: Array, careless: Array, same: Array) -> _State:
        """Return the state where all chains have the same parameters, and no question is careless."""
        shares = np.full(len(table), 1 / len(table))
        parts = (table, careless, same, shares, (self.used * self.weights)[self.question])
        return _State._make([classes, *(np.tile(part, (self.n_chains, *[1] * part.ndim)) for part in parts)])

    def draw_classes(self, state: _State) -> tuple[Array, _State]:
        """Draw all classes by the careful answers; return their probabilities (C, n_points, K), too."""
        K = self.n_classes
        classes = state.classes.copy()
        log_table = np.log(np.concatenate([1 - state.table, state.table], axis=1))
        log_p = np.log(state.shares)[:, None] if self.log_p is None else self.log_p[None]
        named = self.labels[:, None]
        log_p = log_p + np.where((named >= 0) & (named != np.arange(K)), -np.inf, 0.0)
        log_p = np.broadcast_to(log_p, (self.n_chains, self.n_points, K))
        probability = np.empty(log_p.shape)
        for points, answer, other, cell in self._blocks:
            # Careful answers about each point by kind and by the class of the other end.
            place = cell + classes.take(other, axis=1)
            counts = _sums(place, state.careful.take(answer, axis=1), (self.n_chains, len(points), 2 * K))
            drawn = softmax(counts @ log_table + log_p[:, points], axis=2)
            probability[:, points] = drawn
            classes[:, points] = _choose(drawn, self.rng)
        return probability, state._replace(classes=classes)

    def cells(self, classes: Indices) -> Indices:
        """Return the place (C, n_answers) of each answer in an array over chains, kinds and two classes."""
        first, second = (classes.take(end, axis=1) for end in self.ends.T)
        return ((self._chain * 2 + self.same) * self.n_classes + first) * self.n_classes + second

    def log_questions(self, state: _State, cells: Indices) -> tuple[Array, Array]:
        """Return logs of both terms of equation (1), (C, n_questions): careful, and careless."""
        careful = np.log(np.stack([1 - state.table, state.table], axis=1)).reshape(-1).take(cells)
        if len(self.first) < len(self.same):
            careful = np.add.reduceat(careful, self.first, axis=1)
        with np.errstate(divide="ignore"):
            parts = np.log([1 - state.careless, state.careless, 1 - state.same, state.same])
        log_careful, log_careless, different, same = parts.take(self.who, axis=2)
        by_chance = log_careless + self.n_same * same + (self.n_pairs - self.n_same) * different
        return careful + log_careful, by_chance

    def draw_switches(self, state: _State, weights: Array, log_chance: tuple[Array, Array]) -> tuple[_State, Mask]:
        """Draw which questions are careless; their answers drop out."""
        careful, careless = log_chance
        switch = self.rng.random(careful.shape) < expit(careless - careful)
        return state._replace(careful=(weights * ~switch).take(self.question, axis=1)), switch

    def _value(self, state: _State, log_chance: Array) -> Array:
        """Return the log likelihood in equation (4), (C,), beside a model with that of the classes by it."""
        values = log_chance @ (self.used * self.weights)
        if self.log_p is None:
            return values
        return values + self.log_p[np.arange(self.n_points), state.classes].sum(axis=1)

    def _draw_parameters(self, state: _State, switch: Mask, cells: Indices) -> _State:
        """Draw equations (2) and (3), and the shares of the classes."""
        C = self.n_chains
        K = self.n_classes
        counts = _sums(cells, state.careful, (C, 2, K, K))
        counts = np.where(np.eye(K, dtype=bool), counts, counts + counts.swapaxes(2, 3))
        table = self._draw_table(counts[:, 1], counts[:, 0])
        shares = self.rng.gamma(1.0 + np.stack([np.bincount(chain, minlength=K) for chain in state.classes]))
        state = state._replace(table=table, shares=np.maximum(shares / shares.sum(axis=1, keepdims=True), 1e-6))
        if not self.has_people:
            return state
        weights = self.used * self.weights
        parts = (switch * (weights * part) for part in (1, self.n_pairs, self.n_same))
        n, n_pairs, n_same = (np.add.reduceat(part, self.first_of_person, axis=1) for part in parts)
        n_all = np.broadcast_to(np.add.reduceat(weights, self.first_of_person), n.shape)
        state = state._replace(careless=self._draw_shares(n, n_all))
        return state._replace(same=self._draw_shares(n_same, n_pairs)) if self.by_pair else state

    def _draw_shares(self, hits: Array, n: Array) -> Array:
        """Draw equation (3) for each person, after its prior by the beta-binomial likelihood of whole counts."""
        a, b = _PRIOR
        j = np.arange(int(n.max()) + 2)[:, None]
        values = len(hits[0]) * -betaln(a, b)
        for counts, prior in ((hits, a), (n - hits, b)):
            values = values + _histogram(counts, len(j)) @ gammaln(prior + j)
        values = values - _histogram(n, len(j)) @ gammaln(a + b + j)
        chosen = _choose(softmax(values, axis=1), self.rng)[:, None]
        return np.clip(self.rng.beta(a[chosen] + hits, b[chosen] + n - hits), LOWEST, 1 - LOWEST)

    def _draw_table(self, same: Array, different: Array) -> Array:
        """Draw equation (2), from counts (C, K, K) of each two classes."""
        K = self.n_classes
        table = np.empty_like(same)
        equal = np.eye(K, dtype=bool)
        if not self.by_pair:
            upper = np.triu(np.ones((K, K)))
            right = (np.where(equal, same, different) * upper).sum(axis=(1, 2))
            wrong = (np.where(equal, different, same) * upper).sum(axis=(1, 2))
            rate = np.clip(self.rng.beta(_ONE_RATE[0] + wrong, _ONE_RATE[1] + right), LOWEST, 0.5)[:, None, None]
            return np.where(equal, 1 - rate, rate)
        a, b = (prior[:, None, None] for prior in _PRIOR)
        for rows, columns in (np.diag_indices(K), np.triu_indices(K, 1)):
            n_same = same[:, rows, columns]
            n_different = different[:, rows, columns]
            values = (betaln(a + n_same, b + n_different) - betaln(a, b)).sum(axis=2)
            chosen = _choose(softmax(values.T, axis=1), self.rng)[:, None]
            drawn = self.rng.beta(_PRIOR[0][chosen] + n_same, _PRIOR[1][chosen] + n_different)
            table[:, rows, columns] = np.clip(drawn, LOWEST, 1 - LOWEST)
            table[:, columns, rows] = table[:, rows, columns]
        return table

    def _errors(self, state: _State, cells: Indices) -> Errors:
        """Return one draw of each chain."""
        K = self.n_classes
        weights = np.broadcast_to(self.weights[self.question], cells.shape)
        counts = _sums(cells, weights, (self.n_chains, 2, K, K)) / weights[0].sum()
        equal = np.eye(K, dtype=bool)
        different, same = counts.swapaxes(0, 1)
        wrong = np.where(equal, different, same).sum(axis=(1, 2))
        careful = ((different + same) * np.where(equal, 1 - state.table, state.table)).sum(axis=(1, 2))[:, None]
        truly_same = (different + same)[:, equal].sum(axis=1)[:, None]
        guessed = truly_same * (1 - state.same) + (1 - truly_same) * state.same
        rates = (1 - state.careless) * careful + state.careless * guessed
        return Errors(wrong, rates, state.shares.max(axis=1))


def sample_classes(graph: AnswerGraph, table: Array, careless: Array, same: Array, log_p: Array) -> Array:
    """Return class probabilities of the points by equation (1) and their log priors, with a bootstrap."""
    sampler = CrowdSampler(graph, len(table), log_p=log_p)
    weights = sampler.bootstrap(sampler.n_chains)
    classes = np.tile(np.argmax(log_p[sampler.points], axis=1), (sampler.n_chains, 1))
    state = sampler.state_of(classes, table, careless, same)
    total = np.zeros((sampler.n_points, len(table)))
    for k in steps(range(_N_BURN + _N_KEPT), "draws"):
        cells = sampler.cells(state.classes)
        state, _ = sampler.draw_switches(state, weights, sampler.log_questions(state, cells))
        drawn, state = sampler.draw_classes(state)
        if k >= _N_BURN:
            total += drawn.mean(axis=0) / _N_KEPT
    probabilities = softmax(log_p, axis=1)
    probabilities[sampler.points] = total
    return probabilities


def _choose(probability: Array, rng: np.random.Generator) -> Indices:
    """Draw an index along the last axis by these probabilities."""
    below = np.cumsum(probability, axis=-1)
    return np.minimum((rng.random(below.shape[:-1])[..., None] > below).sum(axis=-1), below.shape[-1] - 1)


def _sums(place: Indices, values: Array | Mask, shape: tuple[int, ...]) -> Array:
    """Sum values by their flat index in an array of this shape."""
    total = np.bincount(place.ravel(), values.ravel(), int(np.prod(shape)))
    return np.asarray(total.reshape(shape), dtype=np.float64)


def _histogram(counts: Array, size: int) -> Array:
    """Count how often each value, rounded, occurs in each row."""
    return np.stack([np.bincount(np.rint(row).astype(np.intp), minlength=size) for row in counts]).astype(np.float64)
