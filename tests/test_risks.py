import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdulearn.errors import InputError
from sdulearn.losses import ALL_LOSSES, get_loss
from sdulearn.metrics import pair_risk
from sdulearn.risks import MIXED_RISKS, dissimilar_share, even_and_linear, mixture, similar_share, source_weights

priors = st.floats(0.02, 0.98).filter(lambda p: abs(p - 0.5) > 0.01)
mixtures = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).filter(lambda g: sum(g) > 0.1)


@given(priors, mixtures)
def test_the_table_is_unbiased_for_every_prior_and_mixture(p, g):
    """The expected risk puts p on loss +1 over the positive density, and 1 - p on loss -1 over the negative one."""
    table = source_weights(tuple(np.array(g) / sum(g)), p)
    # Share of positive points in S, D and U (appendix A, pointwise densities).
    positive = np.array([p * p / similar_share(p), 0.5, p])
    np.testing.assert_allclose([positive @ table, (1 - positive) @ table], np.diag([p, 1 - p]), atol=1e-9)


@given(priors, mixtures)
def test_even_weights_are_never_negative(p, g):
    g = tuple(np.array(g) / sum(g))
    a, _ = even_and_linear(*source_weights(g, p).T)
    assert (a >= -1e-12).all()
    assert a.sum() == pytest.approx(1)
    # Slip 4 of the paper: the Hessian's weights carry ps and pd.
    np.testing.assert_allclose(a, [g[2] * similar_share(p), g[2] * dissimilar_share(p), g[0] + g[1]], atol=1e-9)


@given(priors)
def test_for_linear_odd_losses_sd_is_halfway_between_su_and_du(p):
    linear = {r: even_and_linear(*source_weights(mixture(r), p).T)[1] for r in ("su", "du", "sd")}
    np.testing.assert_allclose((linear["su"] + linear["du"]) / 2, linear["sd"], atol=1e-12)


def test_mixtures():
    assert mixture("sdsu", 0.3) == (0.3, 0, 0.7)
    assert mixture("sddu", 0.3) == (0, 0.3, 0.7)
    assert mixture("sudu", 0.3) == (0.7, 0.3, 0)
    for form in (tuple, list, np.array, np.float32):
        assert mixture(form((0.25, 0.25, 0.5))) == (0.25, 0.25, 0.5)
    for wrong in (["a", "b", "c"], [None, 1, 0], np.ones((3, 1)) / 3, [0.5, 0.5], [np.nan, 0.5, 0.5]):
        with pytest.raises(InputError, match="three numbers >= 0 of sum 1"):
            mixture(wrong)
    for risk, corners in zip(MIXED_RISKS, (("sd", "su"), ("sd", "du"), ("su", "du")), strict=True):
        assert (mixture(risk, 0.0), mixture(risk, 1.0)) == tuple(mixture(c) for c in corners)


def propositions(z, source, p, loss):
    """Empirical SU, DU and SD risks as Proposition 1 and Theorem 1 print them, term by term."""
    d = p - (1 - p)

    def L(z, t):
        return (p * loss.value(z, t) - (1 - p) * loss.value(z, -t)) / d

    def L_tilde(z):  # slip 2: with 1 / (p - q)
        return (loss.value(z, 1) - loss.value(z, -1)) / d

    S, D, U = (z[source == k] for k in range(3))
    ps, pd = similar_share(p), dissimilar_share(p)
    return {
        "su": ps * L_tilde(S).mean() + L(U, -1).mean(),
        "du": -pd * L_tilde(D).mean() + L(U, 1).mean(),
        "sd": ps * L(S, 1).mean() + pd * L(D, -1).mean(),
    }


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_pair_risk_is_the_paper_s_formula(loss):
    rng = np.random.default_rng(0)
    codes = np.r_[np.repeat([1, 2, 3], 2), np.repeat([-4, -5], 2), np.zeros(7, dtype=int)]
    z = rng.normal(size=len(codes))
    source = np.where(codes > 0, 0, np.where(codes < 0, 1, 2))
    for p in (0.2, 0.7):
        printed = propositions(z, source, p, get_loss(loss))
        for risk, value in printed.items():
            assert pair_risk(z, codes, prior=p, loss=loss, risk=risk) == pytest.approx(value)
        mixed = pair_risk(z, codes, prior=p, loss=loss, risk="sudu", gamma=0.3)
        assert mixed == pytest.approx(0.7 * printed["su"] + 0.3 * printed["du"])
    # Nothing is clipped.
    assert pair_risk([5, 5, 5, -5], [1, 1, -2, -2], prior=0.6) < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": 1.0}, "strictly between 0 and 1"),
        ({"prior": 0.7, "risk": "ud"}, "Unknown `risk='ud'`"),
        ({"prior": 0.7, "risk": "su"}, "needs unlabeled rows.*'sd'"),
        ({"prior": 0.7, "risk": "sudu", "gamma": 1.5}, "`gamma` must lie between"),
        ({"prior": 0.7, "sample_weight": [1, 2, 1, 1]}, "must carry one weight"),
        ({"prior": 0.7, "decision": [1.0]}, "`decision` has shape"),
    ],
)
def test_bad_input(arguments, message):
    decision = arguments.pop("decision", [1.0, -1.0, 2.0, 0.5])
    with pytest.raises(ValueError, match=message):
        pair_risk(decision, [1, 1, -2, -2], **arguments)
