"""PCK-means and k-means with K clusters."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from reproduction.baselines import KMeansBaseline, PCKMeans
from sdulearn import stack_pairs


def blobs(n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], n // 3)
    return rng.normal(size=(n, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[y], y


def partition(labels):
    return np.asarray(labels)[:, None] == np.asarray(labels)


def test_without_pairs_it_is_k_means():
    X, _ = blobs()
    found = PCKMeans(3, n_init=10, random_state=0).fit(X)
    reference = KMeans(3, n_init=10, random_state=0).fit(X)
    assert (partition(found.labels_) == partition(reference.labels_)).all()
    assert found.objective_ == pytest.approx(reference.inertia_)


def test_a_high_price_breaks_no_pair_that_can_be_kept():
    X, y = blobs()
    rng = np.random.default_rng(1)
    ends = rng.permutation(90).reshape(-1, 2)
    hidden = rng.permutation(y)
    rows, table = stack_pairs(X, ends, hidden[ends[:, 0]] == hidden[ends[:, 1]])
    labels = PCKMeans(3, penalty=1e6, random_state=0).fit_predict(rows, table)
    together = labels[0:90:2] == labels[1:90:2]
    assert (together == (hidden[ends[:, 0]] == hidden[ends[:, 1]])).all()


def test_pairs_move_the_clusters_to_the_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 50)
    # The second column is louder than the first, and says nothing.
    X = np.column_stack([3.0 * y + 0.5 * rng.normal(size=150), 6 * rng.normal(size=150)])
    ends = rng.integers(0, 150, (600, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    rows, table = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    point = table[:, 1]
    plain = KMeansBaseline(3, random_state=0).fit(rows, table)
    bound = PCKMeans(3, penalty=10, random_state=0).fit(rows, table)
    truth = partition(y[point])
    assert np.mean(partition(bound.labels_) == truth) > np.mean(partition(plain.labels_) == truth) + 0.1


def test_a_point_shown_twice_counts_once():
    X, _ = blobs()
    twice = np.vstack([X, X[:30]])
    table = np.column_stack([np.zeros(120), np.r_[np.arange(90), np.arange(30)]]).astype(int)
    found = KMeansBaseline(3, random_state=0).fit(twice, table)
    once = KMeansBaseline(3, random_state=0).fit(X)
    assert found.cluster_centers_ == pytest.approx(once.cluster_centers_)
    assert (found.labels_[90:] == found.labels_[:30]).all()
