from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from sdulearn import stack_pairs
from sdulearn.baselines import ConstrainedKMeans
from sdulearn.pairs import read_pairs


def broken(labels, codes):
    pairs = read_pairs(codes)
    together = labels[pairs.ends[:, 0]] == labels[pairs.ends[:, 1]]
    return int((together != pairs.similar).sum())


def consistent_pairs(rng, n_points, n_classes, n_pairs):
    """Index pairs, possibly overlapping, with answers from hidden classes that say nothing of the features."""
    hidden = rng.integers(n_classes, size=n_points)
    pairs = np.array([rng.choice(n_points, 2, replace=False) for _ in range(n_pairs)], dtype=int).reshape(-1, 2)
    return pairs, hidden[pairs[:, 0]] == hidden[pairs[:, 1]]


def partition(labels):
    return np.asarray(labels)[:, None] == np.asarray(labels)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_points=st.integers(4, 20),
    n_pairs=st.integers(0, 25),
    init=st.booleans(),
)
def test_two_clusters_never_break_a_pair(seed, n_points, n_pairs, init):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points + 2, 2))  # two points of no pair, so that there are always two groups
    pairs, same = consistent_pairs(rng, n_points, 2, n_pairs)
    rows, codes = stack_pairs(X, pairs, same, unlabeled="all")
    model = ConstrainedKMeans(n_init=2, init="random" if init else "k-means++", random_state=seed % 1000)
    assert broken(model.fit_predict(rows, codes), codes) == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_pairs=st.integers(1, 30))
def test_five_clusters_never_break_a_pair(seed, n_pairs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    pairs, same = consistent_pairs(rng, 25, 3, n_pairs)
    rows, codes = stack_pairs(X, pairs, same, unlabeled="all")
    try:
        labels = ConstrainedKMeans(5, n_init=3, random_state=0).fit_predict(rows, codes)
    except ValueError as error:
        if "No valid assignment was found" not in str(error):
            raise
        reject()
    assert broken(labels, codes) == 0


def test_disjoint_pairs_always_find_an_assignment():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    codes = np.repeat(np.where(np.arange(20) % 2, -1, 1) * np.arange(1, 21), 2)
    for k in (2, 3, 7):
        assert broken(ConstrainedKMeans(k, random_state=0).fit_predict(X, codes), codes) == 0


@pytest.mark.parametrize("seed", range(8))
def test_assignment_step_is_the_cheapest_valid_one_of_all(seed):
    # At a fixed point, no other valid labeling is cheaper for the centres found.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2))
    rows, codes = stack_pairs(X, *consistent_pairs(rng, 8, 2, 5), unlabeled=None)
    model = ConstrainedKMeans(init=rng.normal(size=(2, 2))).fit(rows, codes)
    cost = ((rows[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    _, point = np.unique(rows, axis=0, return_inverse=True)
    choices = (np.array(c)[point.ravel()] for c in itertools.product((0, 1), repeat=point.max() + 1))
    valid = [cost[np.arange(len(rows)), labels].sum() for labels in choices if broken(labels, codes) == 0]
    assert model.inertia_ == pytest.approx(min(valid))


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_without_pairs_it_is_plain_kmeans(blobs, n_clusters):
    X = blobs[0] + 100
    start = X[:n_clusters]
    ours = ConstrainedKMeans(n_clusters, init=start).fit(X)
    plain = KMeans(n_clusters, init=start, n_init=1, tol=0).fit(X)
    np.testing.assert_array_equal(ours.labels_, plain.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, plain.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(plain.inertia_)
    np.testing.assert_array_equal(ours.predict(X[::2]), plain.predict(X[::2]))


def test_similar_pairs_are_closed_transitively():
    X = np.array([[0.0], [1.0], [9.0], [10.0], [0.2], [9.8]])
    rows, codes = stack_pairs(X, [(0, 1), (1, 2), (2, 3)], [True, True, True])
    labels = ConstrainedKMeans(random_state=0).fit_predict(rows, codes)
    assert len(set(labels[codes[:, 0] > 0])) == 1
    apart = ConstrainedKMeans(merge_duplicates=False, random_state=0).fit_predict(rows, codes)
    assert len(set(apart[codes[:, 0] > 0])) == 2  # every row a point of its own: the chain falls apart
    assert broken(apart, codes) == 0


def test_super_point_weighs_as_many_rows_as_it_has():
    X = np.array([[0.0], [2.0], [10.0], [11.0]])
    model = ConstrainedKMeans(init=[[0.0], [10.0]]).fit(X, [1, 1, 0, 0])
    np.testing.assert_allclose(model.cluster_centers_.ravel(), [1.0, 10.5])
    assert model.inertia_ == pytest.approx(1 + 1 + 0.25 + 0.25)


def test_heavier_end_of_a_dissimilar_pair_gets_its_way():
    # To the centre at 0, five rows at 4.5 are worth 5 x 10, one row at 3 is worth 40.
    X = np.array([[4.5]] * 5 + [[3.0]])
    model = ConstrainedKMeans(init=[[0.0], [10.0]], max_iter=1).fit(X, [-1, 0, 0, 0, 0, -1])
    assert model.labels_.tolist() == [0, 0, 0, 0, 0, 1]


def test_order_of_rows_ends_and_codes_does_not_matter(blobs):
    X, _, codes = blobs
    rng = np.random.default_rng(3)
    order = rng.permutation(len(X))
    renamed = np.sign(codes) * (7 * np.abs(codes) % 11)
    for k in (2, 4):
        a = ConstrainedKMeans(k, random_state=0).fit(X, codes)
        b = ConstrainedKMeans(k, random_state=0).fit(X[order], renamed[order])
        np.testing.assert_array_equal(partition(a.labels_)[np.ix_(order, order)], partition(b.labels_))
        assert a.inertia_ == pytest.approx(b.inertia_)


def test_more_starts_never_raise_the_inertia(blobs):
    X, _, codes = blobs
    few = ConstrainedKMeans(4, n_init=1, random_state=0).fit(X, codes)
    many = ConstrainedKMeans(4, n_init=20, random_state=0).fit(X, codes)
    assert many.inertia_ <= few.inertia_ * (1 + 1e-12)


def test_pairs_that_contradict_each_other():
    X = np.arange(4.0)[:, None]
    rows, codes = stack_pairs(X, [(0, 1), (1, 2), (0, 2)], [True, True, False], unlabeled="all")
    with pytest.raises(ValueError, match=r"joined by a chain of similar pairs .* Remove the wrong answer"):
        ConstrainedKMeans().fit(rows, codes)
    with pytest.raises(ValueError, match="merge_duplicates=False"):
        ConstrainedKMeans().fit(np.ones((4, 1)), [-1, -1, 0, 0])


def test_a_ring_of_three_needs_three_clusters():
    X = np.arange(5.0)[:, None]
    rows, codes = stack_pairs(X, [(0, 1), (1, 2), (0, 2)], [False] * 3)
    with pytest.raises(ValueError, match=r"ring of dissimilar pairs of odd length .* `n_clusters`"):
        ConstrainedKMeans().fit(rows, codes)
    assert broken(ConstrainedKMeans(3, random_state=0).fit_predict(rows, codes), codes) == 0


def test_no_valid_assignment_to_more_clusters():
    X = np.arange(6.0)[:, None]
    everyone = list(itertools.combinations(range(4), 2))
    rows, codes = stack_pairs(X, everyone, [False] * 6)
    with pytest.raises(ValueError, match=r"No valid assignment was found .* Raise `n_clusters`"):
        ConstrainedKMeans(3, random_state=0).fit(rows, codes)
    with pytest.raises(ValueError, match="No valid assignment"):
        ConstrainedKMeans(1, random_state=0).fit(rows, codes)
    assert broken(ConstrainedKMeans(4, random_state=0).fit_predict(rows, codes), codes) == 0


def test_other_inputs_that_cannot_work():
    X = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match=r"leave 1 groups .* Lower `n_clusters`"):
        ConstrainedKMeans().fit(X[:2], [1, 1])
    with pytest.raises(ValueError, match=r"`init` has shape \(2, 3\)"):
        ConstrainedKMeans(init=np.zeros((2, 3))).fit(X)
    with pytest.raises(ValueError, match="n_samples=1 should be >= `n_clusters=2`"):
        ConstrainedKMeans().fit(X[:1])


def test_empty_cluster_keeps_its_centre(blobs):
    X = blobs[0]
    model = ConstrainedKMeans(init=[X.mean(axis=0), np.full(3, 1e6)]).fit(X)
    assert set(model.labels_) == {0}
    np.testing.assert_allclose(model.cluster_centers_[1], 1e6)
