import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from scipy.stats import binom

from sdulearn.bounds import bound_rate, estimation_error_bound, order_probability, rademacher_linear, recommended_gamma
from sdulearn.risks import dissimilar_share, mixture, similar_share, source_weights

MODEL = {"lipschitz": 1.5, "complexity": 0.7, "loss_bound": 2.0, "delta": 0.1}
COUNTS = {"n_similar": 58, "n_dissimilar": 42, "n_unlabeled": 500, "prior": 0.7}

priors = st.floats(0.02, 0.98).filter(lambda p: abs(p - 0.5) > 0.01)
counts = st.integers(1, 10**6)


def bound(risk="sd", **change):
    return estimation_error_bound(risk, **{**COUNTS, **MODEL, **change})


def constant(prior, events):
    square = 2 * MODEL["loss_bound"] ** 2 * math.log(events / MODEL["delta"])
    return (4 * MODEL["lipschitz"] * MODEL["complexity"] + math.sqrt(square)) / abs(2 * prior - 1)


@given(priors, counts, counts, counts)
def test_theorem_est_as_printed(prior, n_S, n_D, n_U):
    ps, pd = prior**2 + (1 - prior) ** 2, 2 * prior * (1 - prior)
    printed = {
        "su": 2 * ps / math.sqrt(2 * n_S) + 1 / math.sqrt(n_U),
        "du": 2 * pd / math.sqrt(2 * n_D) + 1 / math.sqrt(n_U),
        "sd": ps / math.sqrt(2 * n_S) + pd / math.sqrt(2 * n_D),
    }
    sizes = {"n_similar": n_S, "n_dissimilar": n_D, "n_unlabeled": n_U, "prior": prior}
    for risk, rate in printed.items():
        assert estimation_error_bound(risk, **sizes, **MODEL) == pytest.approx(constant(prior, 8) * rate)
        # A mixture pays log(12 / delta), at a corner too.
        corner = estimation_error_bound(mixture(risk), **sizes, **MODEL)
        assert corner == pytest.approx(constant(prior, 12) * rate)
        # Without independent ends the pair terms grow by sqrt(2).
        twice = {**sizes, "n_similar": 2 * n_S, "n_dissimilar": 2 * n_D}
        paired = estimation_error_bound(risk, **twice, **MODEL, paired=True)
        assert paired == pytest.approx(constant(prior, 8) * rate)


@given(priors, st.floats(0, 1), st.sampled_from(["su", "du", "sd", "sdsu", "sddu", "sudu"]))
def test_the_rate_is_the_size_of_the_row_weights(prior, gamma, risk):
    # The bracket of Theorem est_sdu over |p - q| is sum |P| + |N| of each source of the table over sqrt(size).
    g, sizes = mixture(risk, gamma), (116.0, 84.0, 500.0)
    from_table = np.abs(source_weights(g, prior)).sum(axis=1) @ (1 / np.sqrt(sizes))
    assert bound_rate(g, prior, sizes) / abs(2 * prior - 1) == pytest.approx(from_table)


@pytest.mark.parametrize("prior", [0.03, 0.45, 0.51, 0.7, 0.9])
@pytest.mark.parametrize("n_pairs", [1, 2, 7, 50, 400])
def test_the_order_happens_at_least_as_often_as_the_corollary_says(prior, n_pairs):
    def bound_of(risk, n_D):
        with np.errstate(divide="ignore"):
            S, D = 1 / np.sqrt(2.0 * np.array([n_pairs - n_D, n_D]))
        ps, pd, U = similar_share(prior), dissimilar_share(prior), 1 / math.sqrt(500)
        return {"su": 2 * ps * S + U, "du": 2 * pd * D + U, "sd": ps * S + pd * D}[risk]

    n_D = np.arange(n_pairs + 1)
    holds = np.array([bound_of("su", k) >= max(bound_of("du", k), bound_of("sd", k)) for k in n_D])
    exact = binom.pmf(n_D, n_pairs, dissimilar_share(prior)) @ holds
    assert exact >= order_probability(n_pairs, prior) - 1e-12
    assert exact == pytest.approx(order_probability(n_pairs, prior, exact=True), abs=1e-9)
    # As the corollary prints it.
    ps, pd = similar_share(prior), dissimilar_share(prior)
    exponent = n_pairs * pd / (2 * ps) * ((ps**2 + pd**2 - pd) / (ps**2 + pd**2)) ** 2
    assert order_probability(n_pairs, prior) == pytest.approx(1 - math.exp(-exponent))


def test_rademacher_bounds_the_exact_complexity():
    X, radius = np.random.default_rng(0).normal(size=(11, 3)), 2.5
    signs = np.array(list(itertools.product([-1, 1], repeat=11)))
    exact = radius * np.linalg.norm(signs @ X, axis=1).mean() / 11
    bound = rademacher_linear(X, radius) / math.sqrt(11)
    assert bound / math.sqrt(2) <= exact <= bound  # Khintchine and Kahane from below, Jensen from above
    assert rademacher_linear(csr_matrix(X), radius) == pytest.approx(rademacher_linear(X, radius))


@pytest.mark.parametrize(
    ("risk", "sizes"), [("sddu", (30, 14, 60)), ("sdsu", (60, 5, 40)), ("sudu", (20, 12, 15)), ("sudu", (9, 30, 80))]
)
@pytest.mark.parametrize(("prior", "r"), [(0.7, 0.0), (0.7, 4.0), (0.25, 1.0)])
def test_recommended_gamma_minimises_the_variance(risk, sizes, prior, r):
    """Variances of the means of S, D and U: 1 within a class, and r times that of the share of class +1."""
    n_S, n_D, n_U = sizes
    share = prior**2 / similar_share(prior)
    of_U = (1 + r * prior * (1 - prior)) / n_U
    of_means = [1 / (2 * n_S) + r * share * (1 - share) / n_S, 1 / (2 * n_D), of_U]

    def variance(gamma):
        table = source_weights(mixture(risk, gamma), prior)
        return ((table[:, 0] - table[:, 1]) / 2) ** 2 @ of_means

    gamma = recommended_gamma(risk, n_similar=n_S, n_dissimilar=n_D, n_unlabeled=n_U, prior=prior, separation=r)
    best = minimize_scalar(variance, bounds=(0, 1), method="bounded", options={"xatol": 1e-10}).x
    assert gamma == pytest.approx(best, abs=1e-5)


def test_a_source_that_is_not_looked_at_may_be_missing():
    unused = {"su": "n_dissimilar", "du": "n_similar", "sd": "n_unlabeled"}
    for risk, name in unused.items():
        bounds = [bound(risk, **{name: n}) for n in (0, 1, 10**6)]
        assert bounds[0] == bounds[1] == bounds[2] > 0
    assert bound("sddu", gamma=0, n_unlabeled=0) == bound((0, 0, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bound(prior=0.5), "PairLogisticRegression"),
        (lambda: bound(prior=1.0), "`prior` must lie strictly between 0 and 1"),
        (lambda: bound("usd"), "Unknown `risk='usd'`; choose one of"),
        (lambda: bound(n_similar=0), "needs `n_similar` of 1 or more. Choose one that does without: 'su'"),
        (lambda: bound(n_dissimilar=-1), "`n_dissimilar` must be a number, zero or more"),
        (lambda: bound("su", n_unlabeled=math.nan), "`n_unlabeled` must be a number"),
        (lambda: bound(lipschitz=math.inf), "`lipschitz` must be a positive number"),
        (lambda: bound(delta=0), "`delta`, the chance of failure"),
        (lambda: order_probability(100, 0.5), "PairLogisticRegression"),
        (lambda: order_probability(0.5, 0.7), "whole number of 1 or more"),
        (lambda: rademacher_linear([[1.0]], 0), "`radius` must be a positive number"),
        (lambda: rademacher_linear([[np.nan]], 1), "NaN"),
        (lambda: recommended_gamma("sd", **COUNTS), "must be a mixture"),
        (lambda: recommended_gamma("sddu", **{**COUNTS, "prior": 0.5}), "PairLogisticRegression"),
        (lambda: recommended_gamma("sddu", **{**COUNTS, "n_unlabeled": 0}), "needs `n_unlabeled` of 1 or more"),
        (lambda: recommended_gamma("sddu", **COUNTS, separation=-1), "`separation` must be zero or"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
