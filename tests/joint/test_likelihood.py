import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit

from sdulearn.joint.likelihood import PairObjective, PriorPenalty, pair_loss
from sdulearn.joint.path import PairData
from sdulearn.pairs import read_pairs

margins = st.floats(-30, 30)


@given(margins, margins, st.sampled_from([-1.0, 1.0]))
def test_pair_loss_is_the_log_probability_of_the_answer(z1, z2, s):
    same = expit(z1) * expit(z2) + expit(-z1) * expit(-z2)
    different = expit(z1) * expit(-z2) + expit(-z1) * expit(z2)
    assert same + different == pytest.approx(1)
    loss = pair_loss(np.array(z1), np.array(z2), np.array(s))
    assert loss == pytest.approx(-np.log(same if s > 0 else different), rel=1e-9, abs=1e-12)
    swapped = pair_loss(np.array(z2), np.array(z1), np.array(s))
    mirrored = pair_loss(np.array(-z1), np.array(-z2), np.array(s))
    assert loss == pytest.approx(swapped)
    assert loss == pytest.approx(mirrored)


def test_no_overflow_far_out():
    assert pair_loss(np.array(1e6), np.array(-1e6), np.array(1.0)) == pytest.approx(1e6)


def make_objective(K=1, prior=0.7, strength=3.0, seed=0):
    rng = np.random.default_rng(seed)
    n, m, r = 12, 9, 4
    share = rng.random((m, 1))
    return PairObjective(
        A=rng.normal(size=(2 * n + m, r)),
        s=np.where(rng.random((n, 1)) < 0.6, 1.0, -1.0),
        omega=rng.random((n, K)) / n,
        pen=rng.random((r, K)),
        share=share / share.sum(),
        prior_penalty=PriorPenalty.of(prior, strength, m),
    )


@pytest.mark.parametrize("prior", [None, 0.3, 0.5, 0.7])
def test_gradient_and_hessian_are_exact(prior):
    objective = make_objective(prior=prior)
    w = np.random.default_rng(1).normal(size=5)

    def value(v):
        return objective.value_and_gradient(v[:, None], [0])[0][0]

    def gradient(v):
        return objective.value_and_gradient(v[:, None], [0])[1][:, 0]

    np.testing.assert_allclose(gradient(w), approx_fprime(w, value, 1e-7), atol=1e-6)
    numeric = np.array([(gradient(w + 1e-6 * e) - gradient(w - 1e-6 * e)) / 2e-6 for e in np.eye(5)])
    np.testing.assert_allclose(objective.hessian(w), numeric, atol=1e-8)


def test_many_problems_at_once_are_the_single_ones():
    objective = make_objective(K=3)
    W = np.random.default_rng(1).normal(size=(5, 3))
    values, gradients = objective.value_and_gradient(W, np.arange(3))
    for k in range(3):
        value, gradient = objective.value_and_gradient(W[:, [k]], [k])
        assert value[0] == pytest.approx(values[k])
        np.testing.assert_allclose(gradient[:, 0], gradients[:, k])


def test_the_prior_penalty_vanishes_where_the_mean_prediction_is_the_prior():
    objective = make_objective(prior=0.7)
    without = make_objective(prior=None)
    w = np.zeros((5, 1))
    w[-1] = np.log(0.7 / 0.3)
    assert objective.value_and_gradient(w, [0])[0][0] == pytest.approx(without.value_and_gradient(w, [0])[0][0])
    assert objective.value_and_gradient(0 * w, [0])[0][0] > without.value_and_gradient(0 * w, [0])[0][0]


@pytest.mark.parametrize("n_pairs", [3, 40])
def test_the_evidence_is_laplace_s_with_fisher_information(waveform, n_pairs):
    """Written out with dense matrices: misfit, penalty and determinant, of few pairs and of many."""
    rows, codes = waveform
    keep = np.abs(codes) <= n_pairs
    rows, codes = rows[keep][:, :5], codes[keep]
    pairs = read_pairs(codes)
    data = PairData.of(rows, pairs, np.ones(len(codes)), 0.7, 3.0)
    rng = np.random.default_rng(0)
    w = rng.normal(size=data.A.shape[1] + 1)
    pen = rng.random(data.A.shape[1]) + 0.1
    first, second = data.A[:n_pairs], data.A[n_pairs : 2 * n_pairs]
    s1, s2 = (expit(X @ w[:-1] + w[-1]) for X in (first, second))
    same = s1 * s2 + (1 - s1) * (1 - s2)
    chance = np.where(pairs.similar, same, 1 - same)
    # Of one answer the information about w is g g' / (same (1 - same)), g the slope of the chance of "same".
    slope = ((2 * s2 - 1) * s1 * (1 - s1))[:, None] * first + ((2 * s1 - 1) * s2 * (1 - s2))[:, None] * second
    information = (slope / (same * (1 - same))[:, None]).T @ slope
    precision = n_pairs * np.diag(pen)
    expected = np.log(chance).sum() - n_pairs * (pen @ w[:-1] ** 2) / 2
    expected -= (np.linalg.slogdet(information + precision)[1] - np.linalg.slogdet(precision)[1]) / 2
    assert data.log_evidence(w, pen) == pytest.approx(expected, rel=1e-10)
