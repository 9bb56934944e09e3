import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from reproduction.baselines import ConstrainedKMeans
from sdulearn import stack_pairs
from sdulearn.answers.graph import AnswerGraph


def broken(labels, codes):
    graph = AnswerGraph.from_y(codes)
    together = labels[graph.end_rows[:, 0]] == labels[graph.end_rows[:, 1]]
    return int((together != (graph.same > 0)).sum())


def consistent_pairs(rng, n_points, n_pairs):
    """Index pairs, possibly overlapping, with answers from hidden classes that say nothing of the features."""
    hidden = rng.integers(2, size=n_points)
    pairs = np.array([rng.choice(n_points, 2, replace=False) for _ in range(n_pairs)], dtype=int).reshape(-1, 2)
    return pairs, hidden[pairs[:, 0]] == hidden[pairs[:, 1]]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n_points=st.integers(4, 20), n_pairs=st.integers(0, 25))
def test_no_pair_is_broken(seed, n_points, n_pairs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points + 2, 2))  # two points of no pair, so that there are always two groups
    rows, codes = stack_pairs(X, *consistent_pairs(rng, n_points, n_pairs), unlabeled="all")
    assert broken(ConstrainedKMeans(n_init=2, random_state=seed % 1000).fit_predict(rows, codes), codes) == 0


@pytest.mark.parametrize("seed", range(8))
def test_assignment_step_is_the_cheapest_valid_one_of_all(seed):
    """At a fixed point no other valid labeling is cheaper for the centres found."""
    rng = np.random.default_rng(seed)
    rows, codes = stack_pairs(rng.normal(size=(8, 2)), *consistent_pairs(rng, 8, 5), unlabeled="rest")
    model = ConstrainedKMeans(n_init=1, random_state=seed).fit(rows, codes)
    cost = ((rows[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    choices = (np.array(c)[codes[:, 1]] for c in itertools.product((0, 1), repeat=8))
    valid = [cost[np.arange(len(rows)), labels].sum() for labels in choices if broken(labels, codes) == 0]
    assert model.inertia_ == pytest.approx(min(valid))


def test_without_pairs_it_is_plain_kmeans(blobs):
    ours = ConstrainedKMeans(random_state=0).fit(blobs[0] + 100)
    plain = KMeans(2, n_init=10, tol=0, random_state=0).fit(blobs[0] + 100)
    assert ours.inertia_ == pytest.approx(plain.inertia_)
    np.testing.assert_allclose(np.sort(ours.cluster_centers_, axis=0), np.sort(plain.cluster_centers_, axis=0))
    np.testing.assert_array_equal(ours.predict(blobs[0] + 100), ours.labels_)


def test_order_of_rows_ends_and_codes_does_not_matter(blobs):
    X, _, codes = blobs
    order = np.random.default_rng(3).permutation(len(X))
    renamed = np.sign(codes) * (7 * np.abs(codes) % 11)
    a = ConstrainedKMeans(random_state=0).fit(X, codes)
    b = ConstrainedKMeans(random_state=0).fit(X[order], renamed[order])
    same = a.labels_[order] == b.labels_
    assert same.all() or not same.any()
    assert a.inertia_ == pytest.approx(b.inertia_)


@pytest.mark.parametrize("same", [(True, True, False), (False, False, False)])
def test_pairs_that_contradict_each_other(same):
    rows, codes = stack_pairs(np.arange(4.0)[:, None], [(0, 1), (1, 2), (0, 2)], same)
    with pytest.raises(ValueError, match="contradict each other"):
        ConstrainedKMeans().fit(rows, codes)
