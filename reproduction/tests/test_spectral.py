from __future__ import annotations

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_moons

from reproduction.baselines import SpectralPairs
from reproduction.baselines.spectral import _adjust, _neighbour_affinity, _normalised, _spread
from sdulearn.answers.graph import AnswerGraph


def clustering_accuracy(truth, labels):
    """Of two clusters, under the better of the two namings."""
    right = np.mean((np.asarray(truth) > 0) == (labels > 0))
    return max(right, 1 - right)


def moons_with_pairs(n_pairs, noise, seed=0):
    X, y = make_moons(200, noise=noise, random_state=seed)
    ends = np.random.default_rng(seed).choice(200, (n_pairs, 2), replace=False)
    codes = np.zeros(200, dtype=np.int64)
    for k, (a, b) in enumerate(ends, start=1):
        codes[[a, b]] = k if y[a] == y[b] else -k
    return X, y, codes


def mean_accuracy(noise, with_pairs):
    scores = []
    for seed in range(5):
        X, y, codes = moons_with_pairs(12, noise, seed)
        labels = SpectralPairs(sigma2=0.05, random_state=0).fit_predict(X, codes if with_pairs else None)
        scores.append(clustering_accuracy(y, labels))
    return np.mean(scores)


def test_few_pairs_recover_two_moons():
    assert mean_accuracy(0.06, with_pairs=True) > 0.98


def test_few_pairs_help_where_the_moons_touch():
    assert mean_accuracy(0.15, with_pairs=True) > mean_accuracy(0.15, with_pairs=False) + 0.05


def test_rows_of_no_pair_follow_the_pairs_around_them():
    # Four clouds; the pairs alone say which two belong together.
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [0, 6], [6, 0], [6, 6]])
    cloud = np.repeat(np.arange(4), 25)
    X = centres[cloud] + rng.normal(size=(100, 2)) * 0.7
    codes = np.zeros(100, dtype=np.int64)
    for k in range(1, 6):
        codes[[k, 75 + k]], codes[[25 + k, 50 + k]] = k, 10 + k  # diagonal clouds together
        codes[[6 + k, 31 + k]] = -20 - k
    labels = SpectralPairs(random_state=0).fit_predict(X, codes)
    assert clustering_accuracy(np.isin(cloud, (0, 3)), labels) == 1


def test_propagation_is_the_formula(blobs):
    X, _, codes = blobs
    graph, alpha = AnswerGraph.from_y(codes), 0.6
    S = _normalised(_neighbour_affinity(X, 5, 1.0))
    Z = np.zeros((60, 60))
    for (a, b), similar in zip(graph.end_rows, graph.same > 0, strict=True):
        Z[a, b] = Z[b, a] = 1 if similar else -1
    inverse = np.linalg.inv(np.eye(60) - alpha * S)
    np.testing.assert_allclose(_spread(S, graph, alpha), (1 - alpha) ** 2 * inverse @ Z @ inverse, atol=1e-12)


def test_affinity_stays_between_zero_and_one_and_moves_the_way_of_the_answer(blobs):
    X, _, codes = blobs
    W = _neighbour_affinity(X, 5, 1.0)
    codes[[6, 7 + W[6, 7:].argmax()]] = -99  # a dissimilar pair of neighbours
    F = _spread(_normalised(W), AnswerGraph.from_y(codes), 0.8)
    adjusted = _adjust(W, F)
    assert np.abs(F).max() <= 1
    assert adjusted.min() >= 0
    assert adjusted.max() <= 1
    assert (np.sign(adjusted - W)[(F > 0) & (W < 1)] > 0).all()
    assert ((F < 0) & (W > 0)).any()
    assert (adjusted < W)[(F < 0) & (W > 0)].all()
    assert (adjusted == W)[(F < 0) & (W == 0)].all()
    np.testing.assert_allclose(adjusted, adjusted.T, atol=1e-15)


def test_without_pairs_the_affinity_is_that_of_the_neighbours(blobs):
    X = blobs[0]
    model = SpectralPairs(random_state=0).fit(X)
    W = _neighbour_affinity(X, 5, 1.0)
    np.testing.assert_allclose(model.affinity_matrix_, W)
    plain = SpectralClustering(2, affinity="precomputed", random_state=0, assign_labels="kmeans")
    labels = plain.fit_predict(W + 1e-9)
    assert clustering_accuracy(labels, model.labels_) > 0.95


def test_neighbour_affinity():
    X = np.array([[0.0], [1.0], [3.0]])
    near, far = np.exp(-0.5 / 2), np.exp(-4 / 4)
    np.testing.assert_allclose(_neighbour_affinity(X, 1, 2.0)[0, 1], np.exp(-1 / 4))
    np.testing.assert_allclose(_neighbour_affinity(X, 1, 1.0), [[0, near**2, 0], [near**2, 0, far**2], [0, far**2, 0]])
    assert (_neighbour_affinity(X, 5, 1.0) > 0).sum() == 6


def test_order_of_rows_does_not_matter():
    X, _, codes = moons_with_pairs(12, noise=0.12)
    order = np.random.default_rng(1).permutation(len(X))
    a = SpectralPairs(sigma2=0.05, random_state=0).fit_predict(X, codes)
    b = SpectralPairs(sigma2=0.05, random_state=0).fit_predict(X[order], codes[order])
    assert clustering_accuracy(a[order], b) == 1


def test_graph_in_many_parts_still_gives_labels():
    # Distances of 1000 with sigma2 = 1: every affinity underflows.
    X = 1000.0 * np.arange(30)[:, None]
    labels = SpectralPairs(random_state=0).fit_predict(X, np.r_[1, 1, -2, -2, np.zeros(26, dtype=int)])
    assert labels.shape == (30,)
    # The one affinity that is left is that of the similar pair.
    assert labels[0] == labels[1]
    assert set(labels) == {0, 1}


def test_no_predict():
    assert not hasattr(SpectralPairs(), "predict")
