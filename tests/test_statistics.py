"""Statistics that add up: any portions in any order give the model of all rows."""

from contextlib import nullcontext
from dataclasses import astuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sdulearn import SDUClassifier
from sdulearn.answers.y import sources
from sdulearn.risks import even_and_linear, mixture, row_weights
from tests.reference import assert_same_coefficients


def fed(rows, codes, portions, weight=None, **parameters):
    model = SDUClassifier(**parameters)
    for some in portions:
        model.partial_fit(rows[some], codes[some], sample_weight=None if weight is None else weight[some])
    return model


def shuffled(n, k, seed=0):
    return np.array_split(np.random.default_rng(seed).permutation(n), k)


@pytest.mark.parametrize("make", [np.asfortranarray, sparse.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("risk", ["su", "du", (0.2, 0.3, 0.5)])
def test_partial_fit_equals_fit(waveform, risk, fit_intercept, make):
    rows, codes = make(waveform[0]), waveform[1]
    parameters = {"risk": risk, "fit_intercept": fit_intercept, "alpha": 0.01}
    whole = SDUClassifier(**parameters).fit(rows, codes)
    parts = fed(rows, codes, shuffled(len(codes), 7), **parameters)
    assert_same_coefficients(parts, whole, 1e-10)
    # Dense portions among sparse ones, and float32.
    portions = shuffled(len(codes), 3)
    mixed = fed(waveform[0], codes, portions[:1], **parameters)
    for some in portions[1:]:
        mixed.partial_fit(rows[some], codes[some])
    assert_same_coefficients(mixed, whole)
    single = waveform[0].astype(np.float32)
    assert_same_coefficients(fed(single, codes, portions, **parameters), whole, 1e-4)
    assert parts.prior_ == whole.prior_
    assert parts.objective_ == pytest.approx(whole.objective_, abs=1e-12)
    assert parts.optimality_ < 1e-12


def test_weights_and_a_large_mean(waveform):
    rows, codes = waveform[0] + 1e6, waveform[1]
    weight = 1.0 + (np.abs(codes) % 3)
    whole = SDUClassifier().fit(rows, codes, weight)
    # Weights have no unit.
    parts = fed(rows, codes, shuffled(len(codes), 5), 64 * weight)
    assert_same_coefficients(parts, whole)
    assert astuple(parts.prior_) == pytest.approx(astuple(whole.prior_))


def test_the_checksum_waits_for_the_other_end(waveform):
    rows, codes = waveform
    first = np.unique(np.abs(codes), return_index=True)[1]
    model = fed(rows, codes, [first], prior=0.7)
    assert model.statistics_.checksum != 0
    model.partial_fit(np.delete(rows, first, axis=0), np.delete(codes, first))
    assert model.statistics_.checksum == 0
    assert_same_coefficients(model, SDUClassifier(prior=0.7).fit(rows, codes))


def test_a_model_is_fitted_while_the_rows_so_far_determine_one(waveform):
    rows, codes = waveform
    model = fed(rows, codes, [codes <= 0])
    with pytest.raises(NotFittedError, match=r"rows so far do not determine a model\. .* \(0 and "):
        model.predict(rows)
    assert_same_coefficients(model.partial_fit(rows[codes > 0], codes[codes > 0]), SDUClassifier().fit(rows, codes))
    for k in (1000, 2000, 3000):
        # More dissimilar pairs than any prior explains.
        model.partial_fit(rows[codes < 0], codes[codes < 0] - k)
    with pytest.raises(NotFittedError, match="rows so far do not determine a model"):
        model.predict(rows)
    assert not hasattr(model, "coef_")
    model.set_params(prior=0.7).partial_fit(rows[codes == 0], codes[codes == 0])
    assert (model.predict(rows) == 1).any()


def test_a_call_that_fails_adds_no_rows(waveform):
    rows, codes = waveform
    first, second = shuffled(len(codes), 2)
    model = fed(rows, codes, [first], prior=0.7)
    with pytest.raises(ValueError, match=r"undefined at `prior=0\.5`"):
        model.set_params(prior=0.5).partial_fit(rows[first], codes[first])
    model.set_params(prior=0.7).partial_fit(rows[second], codes[second])
    assert_same_coefficients(model, SDUClassifier(prior=0.7).fit(rows, codes), 1e-10)


def test_fit_starts_afresh_and_so_does_what_follows_it(waveform):
    rows, codes = waveform
    model = fed(rows, codes, [slice(None), slice(None)])
    model.fit(rows, codes)
    assert not hasattr(model, "statistics_")
    assert_same_coefficients(model.partial_fit(rows, codes), SDUClassifier().fit(rows, codes))
    assert model.statistics_.weight.sum() == len(codes)


@pytest.mark.parametrize("parameters", [{"loss": "logistic"}, {"loss": "double_hinge"}, {"solver": "newton"}])
def test_other_losses_are_refused_with_the_reason(waveform, parameters):
    model = SDUClassifier(**parameters)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(*waveform)
    assert "sdulearn.large.fit_rows" in str(caught.value.__cause__ or caught.value)


@pytest.mark.parametrize("heavy", ["similar", "unlabeled", "one pair"])
def test_weights_of_all_sizes(waveform, heavy):
    """A group of rows must not be what rounding leaves of all rows less the heavy ones."""
    rows, codes = waveform
    chosen = {"similar": codes > 0, "unlabeled": codes == 0, "one pair": codes == 1}
    weight = np.where(chosen[heavy], 1e14, 1.0)
    whole = SDUClassifier(prior=0.7).fit(rows, codes, weight)
    assert_same_coefficients(fed(rows, codes, shuffled(len(codes), 5), weight, prior=0.7), whole)
    assert_same_coefficients(fed(rows, codes, [slice(None)], weight, prior=0.7), whole)


def least_squares(rows, codes, alpha):
    """Squared loss as the least squares problem that it is, so that no rounding is squared."""
    a, m = even_and_linear(*row_weights(mixture("sddu"), 0.7, sources(codes)))
    A = np.column_stack([rows, np.ones(len(rows))])
    active = a > 0
    root = np.sqrt(a[active] / 2)
    # The linear term of rows without an even one joins the others by a right-hand side of the penalty.
    assert not m[~active].any()
    penalty = np.sqrt(alpha) * np.eye(len(A.T))[:-1]
    top = root[:, None] * A[active]
    return np.linalg.lstsq(np.vstack([top, penalty]), np.r_[m[active] / root, np.zeros(len(penalty))], rcond=None)[0]


def test_an_outlier_takes_no_digits_in_memory_and_the_certificate_counts_them_in_portions(waveform):
    """The larger the outlier, the more rounding hides; never less than the objective is found to be off."""
    rows, codes = waveform[0].copy(), waveform[1]
    a, m = even_and_linear(*row_weights(mixture("sddu"), 0.7, sources(codes)))

    def J(v):
        z = rows @ v[:-1] + v[-1]
        return 0.1 / 2 * v[:-1] @ v[:-1] + a @ (z**2 / 4) - m @ z

    hidden = []
    for size in (1e5, 1e7, 1e8):
        rows[0] = size
        expected = least_squares(rows, codes, 0.1)
        whole = SDUClassifier(prior=0.7).fit(rows, codes)
        np.testing.assert_allclose(whole.coef_[0], expected[:-1], atol=1e-4 * np.abs(expected[:-1]).max())
        with nullcontext() if size < 1e7 else pytest.warns(ConvergenceWarning, match="standardise the features"):
            parts = fed(rows, codes, [slice(None)], prior=0.7)
        assert J(np.append(parts.coef_, parts.intercept_)) - J(expected) < 3 * parts.optimality_
        hidden.append(parts.optimality_)
    assert hidden[0] < 1e-8 < 1e-6 < hidden[1] < hidden[2]
    # An outlier in one column does no harm.
    rows[0] = waveform[0][0]
    rows[0, 3] = 1e9
    assert_same_coefficients(fed(rows, codes, shuffled(len(codes), 5)), SDUClassifier().fit(rows, codes))


@pytest.mark.parametrize(
    ("portion", "message"),
    [
        (lambda X, y: (X[:, :20], y), "expecting 21 features"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y), "contains NaN"),
        (lambda X, y: (X, y + 0.5), "`y`"),
        (lambda X, y: (X, y[:-1]), "numbers of samples"),
        (lambda X, y: (X, y, None, np.full(len(y), 1e160)), "divide all by the largest"),
    ],
)
def test_bad_portions(waveform, portion, message):
    with pytest.raises(ValueError, match=message):
        SDUClassifier().partial_fit(*waveform).partial_fit(*portion(*waveform))
    with pytest.raises(ValueError, match="4,000 is the limit"):
        SDUClassifier().partial_fit(sparse.csr_matrix((4, 4001)), [1, 1, 0, 0])
