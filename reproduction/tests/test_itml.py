from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from reproduction.baselines import ITMLKMeans
from sdulearn.answers.graph import AnswerGraph

# Made once with Python 3.11, metric-learn 0.7.0, scikit-learn 1.5.2 and numpy 1.26.4:
#   i, j = np.mgrid[0:24, 0:d]; X = np.sin(1.7 * i + 2.3 * j + 0.5 * i * j) * (1 + j)
#   metric_learn.ITML(**params).fit(X.reshape(12, 2, d), np.where(np.arange(12) % 3 == 2, -1, 1))
# then get_mahalanobis_matrix(), bounds_ and n_iter_ (which counts from 0).
METRIC_LEARN = [
    (
        {},
        9,
        [
            [0.22581721972122254, -0.0015022119772566142, -0.03334528205473371],
            [-0.0015022119772566142, 0.04951205846881167, 0.0014412592704488012],
            [-0.03334528205473371, 0.0014412592704488012, 0.011714176516252712],
        ],
    ),
    (
        {"gamma": 0.1, "tol": 1e-9, "max_iter": 100000},
        9,
        [
            [0.45219171817424875, -0.005684272189185865, -0.04313829867764332],
            [-0.005684272189185865, 0.11169734192283017, 0.0029445963975548413],
            [-0.04313829867764332, 0.0029445963975548413, 0.034566741042295845],
        ],
    ),
]
METRIC_LEARN_BOUNDS = (0.41588889693320596, 6.002679381761056)
METRIC_LEARN_WIDE_BOUNDS = (11.88574269328987, 35.13665945156108)
METRIC_LEARN_WIDE_DIAGONAL = [  # d = 13 features, more than the 12 pairs
    0.9859929047085435, 0.777744330231852, 0.6284173861791054, 0.1878666945055791, 0.3925383420144332,
    0.45810258014924254, 0.13572044709071268, 0.43334335822763753, 0.720378429905906, 0.9815038769594728,
    0.6843415253652231, 0.1482233269340364, 0.04664060937311019,
]  # fmt: skip


def formula_data(d):
    i, j = np.mgrid[0:24, 0:d]
    X = np.sin(1.7 * i + 2.3 * j + 0.5 * i * j) * (1 + j)
    sign = np.where(np.arange(12) % 3 == 2, -1, 1)
    return X, np.repeat(sign * np.arange(1, 13), 2)


def squared_distances(X, codes, A):
    ends = AnswerGraph.from_y(codes).ends
    V = X[ends[:, 0]] - X[ends[:, 1]]
    return np.einsum("ij,jk,ik->i", V, A, V)


@pytest.mark.parametrize(("params", "n_iter", "expected"), METRIC_LEARN)
def test_metric_is_that_of_metric_learn(params, n_iter, expected):
    model = ITMLKMeans(**params, random_state=0).fit(*formula_data(3))
    np.testing.assert_allclose(model.mahalanobis_, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.bounds_, METRIC_LEARN_BOUNDS, rtol=1e-12)
    assert model.n_iter_ == n_iter


def test_metric_is_that_of_metric_learn_with_more_features_than_pairs():
    model = ITMLKMeans(random_state=0).fit(*formula_data(13))
    np.testing.assert_allclose(np.diag(model.mahalanobis_), METRIC_LEARN_WIDE_DIAGONAL, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.bounds_, METRIC_LEARN_WIDE_BOUNDS, rtol=1e-12)
    assert model.n_iter_ == 4


@pytest.mark.parametrize("d", [3, 13])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_optimality_conditions_of_the_soft_problem(d, gamma):
    X, codes = formula_data(d)
    model = ITMLKMeans(gamma=gamma, tol=1e-12, max_iter=10**5, random_state=0).fit(X, codes)
    graph = AnswerGraph.from_y(codes)
    sign = np.where(graph.same > 0, 1, -1)
    # Each pair's own bound after slack: 1/xi = 1/bound -+ dual/gamma.
    inverse_xi = 1 / np.where(graph.same > 0, *model.bounds_) - sign * model.dual_ / gamma
    excess = sign * (inverse_xi - 1 / squared_distances(X, codes, model.mahalanobis_))
    active = model.dual_ > 0
    assert active.any()
    assert (model.dual_ >= 0).all()
    np.testing.assert_allclose(excess[active], 0, atol=1e-8)
    assert (excess[~active] <= 1e-8).all()


def test_without_slack_every_pair_keeps_its_bound():
    # Class and noise on separate axes, so that bounds exist that all pairs can keep.
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 20)
    X = np.c_[y + 0.1 * rng.normal(size=40), 3 * rng.normal(size=40)]
    order = np.r_[0:20:2, 20:40:2, 1:20:2, 21:40:2]
    X, y = X[order], y[order]
    codes = np.where(y[0::2] == y[1::2], 1, -1).repeat(2) * np.arange(1, 21).repeat(2)
    codes[20:] = 0
    codes[[20, 30]], codes[[21, 31]] = -50, -51
    model = ITMLKMeans(gamma=np.inf, bounds=(0.5, 2.0), tol=1e-10, max_iter=10**5, random_state=0).fit(X, codes)
    distance, similar = squared_distances(X, codes, model.mahalanobis_), AnswerGraph.from_y(codes).same > 0
    assert 0 < similar.sum() < len(similar)
    assert (distance[similar] <= 0.5 + 1e-6).all()
    assert (distance[~similar] >= 2.0 - 1e-6).all()


@pytest.mark.parametrize("d", [3, 13])
def test_components_metric_and_kmeans_agree(d):
    X, codes = formula_data(d)
    model = ITMLKMeans(random_state=0).fit(X, codes)
    np.testing.assert_allclose(model.components_.T @ model.components_, model.mahalanobis_, atol=1e-12)
    assert np.linalg.eigvalsh(model.mahalanobis_).min() > 0
    plain = KMeans(2, n_init=10, random_state=0).fit(X @ model.components_.T)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_without_pairs_it_is_plain_kmeans(blobs):
    X = blobs[0]
    model = ITMLKMeans(random_state=0).fit(X)
    np.testing.assert_array_equal(model.mahalanobis_, np.eye(3))
    np.testing.assert_array_equal(model.labels_, KMeans(2, n_init=10, random_state=0).fit(X).labels_)


def test_rotated_features_rotate_the_metric():
    X, codes = formula_data(13)
    Q = np.linalg.qr(np.cos(np.arange(169.0).reshape(13, 13)))[0]
    A = ITMLKMeans(random_state=0).fit(X, codes).mahalanobis_
    B = ITMLKMeans(random_state=0).fit(X @ Q, codes).mahalanobis_
    np.testing.assert_allclose(B, Q.T @ A @ Q, atol=1e-9)


def test_order_of_rows_does_not_matter_but_for_the_tolerance():
    X, codes = formula_data(3)
    order = np.random.default_rng(0).permutation(24)
    A = ITMLKMeans(random_state=0).fit(X, codes).mahalanobis_
    B = ITMLKMeans(random_state=0).fit(X[order], codes[order]).mahalanobis_
    np.testing.assert_allclose(A, B, atol=1e-12)
    renamed = np.sign(codes) * (13 - np.abs(codes))
    tight = {"tol": 1e-12, "max_iter": 10**5, "random_state": 0}
    A, B = (ITMLKMeans(**tight).fit(X, c).mahalanobis_ for c in (codes, renamed))
    np.testing.assert_allclose(A, B, atol=1e-8)


def test_pair_of_equal_rows_is_left_out():
    X, codes = formula_data(3)
    bounds = METRIC_LEARN_BOUNDS
    twin = np.r_[X, X[:1], X[:1]], np.r_[codes, [-99, -99]]
    A = ITMLKMeans(bounds=bounds, random_state=0).fit(X, codes).mahalanobis_
    B = ITMLKMeans(bounds=bounds, random_state=0).fit(*twin).mahalanobis_
    np.testing.assert_array_equal(A, B)


def test_stopping_early_warns():
    with pytest.warns(ConvergenceWarning, match=r"`max_iter=2` .* Raise `max_iter`"):
        ITMLKMeans(max_iter=2, random_state=0).fit(*formula_data(3))


@pytest.mark.parametrize("seed", range(20))
def test_few_pairs(seed):
    # Below 20 ends the 5th percentile would be a point's distance to itself, and the bound zero.
    rng = np.random.default_rng(seed)
    d, m = rng.integers(1, 6), rng.integers(1, 10)
    X = rng.normal(size=(2 * m + 6, d)) * 10 ** rng.uniform(-3, 3)
    codes = np.r_[np.repeat(rng.choice([-1, 1], m) * np.arange(1, m + 1), 2), np.zeros(6, dtype=int)]
    model = ITMLKMeans(n_init=1, random_state=0, max_iter=10**4).fit(X, codes)
    distances = pdist(X[: 2 * m])
    np.testing.assert_allclose(model.bounds_, np.percentile(np.r_[distances, distances], (5, 95)))
    assert np.linalg.eigvalsh(model.mahalanobis_).min() > 0
    assert set(model.predict(X)) == {0, 1}


def test_all_pairs_of_equal_rows_teach_nothing():
    X = np.array([[1.0, 2.0]] * 4 + [[0.0, 0.0], [5.0, 5.0]])
    model = ITMLKMeans(random_state=0).fit(X, [1, 1, -2, -2, 0, 0])
    np.testing.assert_array_equal(model.mahalanobis_, np.eye(2))
