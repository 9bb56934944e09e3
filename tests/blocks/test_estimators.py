"""Memory and blocks give one answer: every risk and loss, dense and sparse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sdulearn import SDUClassifier, SDUClassifierCV, stack_pairs
from sdulearn.blocks import HashedPairKFold, LocalBlocks
from sdulearn.blocks.double_hinge import RoundedHinge, kinked_rows
from sdulearn.blocks.estimators import fit_classifier
from sdulearn.blocks.problem import RowRule, _draw, slope_sums
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.errors import InputError
from sdulearn.losses import TRAINING_LOSSES, DoubleHinge, Logistic
from sdulearn.pairs import sources
from tests.reference import assert_same_coefficients

from .conftest import deal


def over_blocks(model, blocks):
    return model._accept(fit_classifier(model, blocks))


@pytest.mark.parametrize(
    ("risk", "make", "weighted"),
    [
        ("su", np.asarray, False),
        ("du", sparse.csr_matrix, False),
        ("sddu", np.asfortranarray, True),
        ((0.2, 0.3, 0.5), np.asarray, False),
    ],
)
@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_memory_and_blocks_agree(many, small_sample, loss, risk, make, weighted):
    rows, codes = make(many[0]), many[1]
    parameters = {"risk": risk, "loss": loss, "alpha": 0.01, "tol": 1e-10, "fit_intercept": not weighted}
    weight = 1.0 + np.abs(codes) % 3 if weighted else None
    whole = SDUClassifier(**parameters).fit(rows, codes, weight)
    parts = over_blocks(SDUClassifier(**parameters), deal(rows, codes, weight=weight))
    assert_same_coefficients(parts, whole)
    assert parts.optimality_ <= 1e-10
    assert parts.objective_ == pytest.approx(whole.objective_, abs=1e-10)
    assert parts.prior_.value == pytest.approx(whole.prior_.value, rel=1e-12)
    assert parts.n_features_in_ == 21
    assert parts.n_iter_ <= 15


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_order_threads_empty_blocks_and_one_block(many, small_sample, loss):
    rows, codes = many
    answer = over_blocks(SDUClassifier(loss=loss), deal(rows, codes))
    dealt = deal(rows, codes)
    empty = (rows[:0], codes[:0], None)
    for blocks in (
        deal(rows, codes, 1, seed=1),
        deal(rows, codes, n_jobs=2),
        LocalBlocks([*dealt.parts[::-1], lambda: [empty], lambda: []]),
    ):
        assert_same_coefficients(over_blocks(SDUClassifier(loss=loss), blocks), answer)


def test_a_few_answers_of_great_weight_among_many_rows_take_few_passes(monkeypatch):
    """All of them are in the sample, so that it differs from the rows in the unlabeled ones alone."""
    monkeypatch.setattr("sdulearn.solvers.linalg._GATHERED_NUMBERS", 2000 * 22)
    X, y = make_waveform(30_000, random_state=0)
    rows, codes = sample_sdu(X, y, n_pairs=60, n_unlabeled=12_000, prior=0.7, random_state=0)
    parameters = {"loss": "double_hinge", "gamma": 0.2, "alpha": 1e-4, "prior": 0.7}
    whole = SDUClassifier(**parameters).fit(rows, codes)
    parts = over_blocks(SDUClassifier(**parameters), deal(rows, codes))
    assert_same_coefficients(parts, whole)
    assert parts.optimality_ <= 1e-9
    assert parts.n_iter_ <= 6


def test_an_almost_unbounded_problem(many, small_sample):
    """The SU risk with a small penalty: decision values in the hundreds, far from those of the sample."""
    rows, codes = many
    parameters = {"risk": "su", "loss": "double_hinge", "alpha": 1e-4}
    whole = SDUClassifier(**parameters).fit(rows, codes)
    assert np.abs(whole.decision_function(rows)).mean() > 100
    assert_same_coefficients(over_blocks(SDUClassifier(**parameters), deal(rows, codes)), whole, 1e-6)


class Capped:
    """Logistic loss without a second derivative."""

    def __init__(self):
        inner = Logistic()
        self.value, self.even, self.even_grad = inner.value, inner.even, inner.even_grad


def test_a_loss_without_curvature_goes_by_lbfgs(many, small_sample):
    rows, codes = many
    parts = over_blocks(SDUClassifier(loss=Capped(), tol=1e-6), deal(rows, codes))
    assert_same_coefficients(parts, SDUClassifier(loss="logistic").fit(rows, codes), 1e-4)


@pytest.mark.parametrize(("loss", "make"), [("squared", sparse.csr_matrix), ("logistic", np.asarray)])
def test_cross_validation_on_the_same_folds(many, loss, make):
    rows, codes = make(many[0]), many[1]
    parameters = {"loss": loss, "alphas": (0.1, 1e-2), "gammas": (0.0, 1.0)}
    whole = SDUClassifierCV(**parameters, cv=HashedPairKFold(3)).fit(rows, codes)
    parts = over_blocks(SDUClassifierCV(**parameters, cv=3), deal(rows, codes))
    assert (parts.alpha_, parts.gamma_) == (whole.alpha_, whole.gamma_)
    assert parts.cv_results_["params"] == whole.cv_results_["params"]
    for name in ("mean_test_score", "split0_test_score", "split2_test_score"):
        np.testing.assert_allclose(parts.cv_results_[name], whole.cv_results_[name], atol=1e-12)
    assert_same_coefficients(parts, whole)


def spoiled(many, value, change):
    """The rows, with one end of a similar pair changed in its code or its weight."""
    rows, codes = many
    end = np.flatnonzero(codes > 0)[0]
    weight = np.ones(len(codes))
    codes = codes.copy()
    (codes if change == "code" else weight)[end] = value
    return deal(rows, codes, weight=weight)


BAD = {
    "half a pair": (lambda r, c: spoiled((r, c), 0, "code"), "one row only, or on two rows with different signs"),
    "two signs": (lambda r, c: spoiled((r, c), -c[c > 0][0], "code"), "each code must stand on exactly two rows"),
    "two weights": (lambda r, c: spoiled((r, c), 2.0, "weight"), "one sign and one weight"),
    "negative weight": (lambda r, c: spoiled((r, c), -1.0, "weight"), "must be finite and not negative"),
    "NaN": (lambda r, c: deal(np.where(r > 5, np.nan, r), c), "contains NaN"),
    "no weight": (lambda r, c: deal(r, c, weight=np.zeros(len(c))), "or all weights are zero"),
    "no rows": (lambda r, c: deal(r[:0], c[:0], 1), "every block is empty"),
    "widths": (
        lambda r, c: LocalBlocks([lambda: [(r, c, None), (r[:, :20], c, None)]]),
        "20 features, but the rows before it had 21",
    ),
    "prior": (lambda r, c: deal(r, -c), "no more similar than dissimilar"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_blocks(many, case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        over_blocks(SDUClassifier(), make(*many))


def test_bad_folds_and_sources(many):
    rows, codes = many
    with pytest.raises(ValueError, match="needs dissimilar pairs, and `y` marks none"):
        over_blocks(SDUClassifier(prior=0.7), deal(rows[codes >= 0], codes[codes >= 0]))
    with pytest.raises(ValueError, match=r"needs all rows at once .*HashedPairKFold"):
        over_blocks(SDUClassifierCV(cv=object()), deal(rows, codes))
    few = (codes >= 0) | (codes == codes.min())
    with pytest.raises(ValueError, match="so few dissimilar pairs, a fold got none"):
        over_blocks(SDUClassifierCV(), deal(rows[few], codes[few]))


def two_classes(seed, prior, signal, n_pairs=600, n_unlabeled=4000, make=lambda X: X):
    """Rows of two classes with random pairs; ``make`` turns Gaussian features into others."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(2 * n_pairs + n_unlabeled) < prior, 1, -1)
    first, second = y[: 2 * n_pairs : 2], y[1 : 2 * n_pairs : 2]
    answers = np.where(first == second, 1, -1) * np.arange(1, n_pairs + 1)
    codes = np.concatenate([np.repeat(answers, 2), np.zeros(n_unlabeled, dtype=np.int64)])
    return make(rng.normal(size=(len(y), 4)) + signal * y[:, None]), codes


@pytest.mark.parametrize("loss", ["logistic", "double_hinge"])
@pytest.mark.parametrize(
    "make",
    [
        lambda X: (X > 0).astype(float),
        lambda X: np.round(X),
        lambda X: X * [1e-3, 1.0, 1e2, 1e3] + 50.0,
        lambda X: np.sign(X) * X**4,
    ],
    ids=["few different rows", "many equal rows", "raw units", "heavy tails"],
)
def test_tables_of_all_kinds(small_sample, loss, make):
    rows, codes = two_classes(0, 0.7, 0.5, make=make)
    parameters = {"loss": loss, "alpha": 1e-3, "prior": 0.7}
    whole = SDUClassifier(**parameters).fit(rows, codes)
    parts = over_blocks(SDUClassifier(**parameters), deal(rows, codes))
    z, z_parts = whole.decision_function(rows), parts.decision_function(rows)
    np.testing.assert_allclose(z_parts, z, rtol=0, atol=1e-6 * np.abs(z).max())
    assert parts.objective_ == pytest.approx(whole.objective_, abs=1e-8)


def test_all_rows_on_a_kink(small_sample):
    """With nothing to tell the classes by, double hinge says the larger class everywhere: z = 1, on the kink."""
    rows, codes = two_classes(1, 0.9, 0.0)
    parameters = {"loss": "double_hinge", "alpha": 1.0, "prior": 0.9, "tol": 1e-6}
    whole = SDUClassifier(**parameters).fit(rows, codes)
    np.testing.assert_allclose(whole.decision_function(rows), 1.0, atol=1e-5)
    parts = over_blocks(SDUClassifier(**parameters), deal(rows, codes))
    np.testing.assert_allclose(parts.decision_function(rows), 1.0, atol=1e-5)
    assert parts.objective_ == pytest.approx(whole.objective_, abs=1e-6)


def test_blocks_that_do_not_answer_alike_are_not_believed(many, small_sample, monkeypatch):
    """Were a row on another side in two passes, the count of rows would betray it."""
    rows, codes = many
    whole = SDUClassifier(loss="double_hinge").fit(rows, codes)
    calls = []

    def forgetful(*arguments):
        calls.append(found := kinked_rows(*arguments))
        if 2 <= len(calls) <= 8:
            found["known"] += 1
        return found

    monkeypatch.setattr("sdulearn.blocks.double_hinge.kinked_rows", forgetful)
    parts = over_blocks(SDUClassifier(loss="double_hinge"), deal(rows, codes))
    assert len(calls) > 8
    assert_same_coefficients(parts, whole, 1e-6)


def test_a_fold_that_is_not_solved_warns(many, small_sample):
    rows, codes = many
    with pytest.warns(ConvergenceWarning, match="relative KKT residual") as caught:
        over_blocks(SDUClassifierCV("sd", "logistic", alphas=(0.1,), cv=2, max_iter=1), deal(rows, codes))
    assert len(caught) == 3  # two folds and the fit on all rows


@pytest.mark.parametrize(("count", "weighted"), [(5, True), (100, False), (10_000, True)])
def test_a_sample_weighs_what_its_block_weighs(many, count, weighted):
    rows, codes = many
    weight = np.random.default_rng(0).random(len(codes)) if weighted else None
    drawn, its_codes, stands_for = _draw(rows, codes, weight, count)
    assert len(drawn) == len(its_codes) == len(stands_for) <= 3 * count
    whole = np.bincount(sources(codes), weights=weight, minlength=3)
    np.testing.assert_allclose(np.bincount(sources(its_codes), weights=stands_for, minlength=3), whole)


def test_above_the_limit_no_kinked_rows_are_given():
    rows = np.linspace(0.9, 1.1, 11)[:, None]
    rule = RowRule(np.zeros(1), False, np.full(3, 1.0), DoubleHinge())
    block = (rows, np.zeros(11, dtype=int), None, rule, [np.ones(1)], 1.0)
    found = kinked_rows(*block, 11)
    assert (found["given"], found["overflow"], len(found["rows"][0])) == (11, 0, 11)
    found = kinked_rows(*block, 10)
    assert (found["given"], found["overflow"], found["rows"]) == (11, 1, [])


@pytest.mark.parametrize("loss", [Logistic(), RoundedHinge(1.0, 0.3), RoundedHinge(1.0, 2.0)])
def test_sums_of_a_newton_step_are_derivatives(loss):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.r_[np.ones(20), -np.ones(20), np.zeros(10)]).astype(int)
    rule = RowRule(np.array([0.1, 0.2, 0.3]), True, np.array([0.5, 0.3, 0.2]), loss)
    block = (rng.normal(size=(50, 3)), codes, rng.random(50), rule)
    w = rng.normal(size=4)
    step = 1e-6
    around = [[slope_sums(*block, w + sign * e, True) for sign in (1, -1)] for e in step * np.eye(4)]
    found = slope_sums(*block, w, True)
    slopes = [(up["value"] - down["value"]) / (2 * step) for up, down in around]
    np.testing.assert_allclose(found["slopes"], slopes, rtol=1e-5, atol=1e-7)
    second = np.array([(up["slopes"] - down["slopes"]) / (2 * step) for up, down in around])
    np.testing.assert_allclose(found["second"], second, rtol=1e-5, atol=1e-7)
    # A secant's curvature times z is the slope, row by row.
    careful = slope_sums(*block, w, True, careful=True)
    np.testing.assert_allclose(careful["second"] @ w, found["slopes"], rtol=1e-9)
    if isinstance(loss, RoundedHinge):
        z = np.array([-9.0, -3.5, 3.5, 9.0])
        np.testing.assert_allclose(loss.even(z), DoubleHinge().even(z))


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_a_given_prior_is_all_that_a_risk_needs(shared, loss):
    rows, y = shared
    options = {"loss": loss, "prior": 0.7, "tol": 1e-10}
    whole = SDUClassifier(**options).fit(rows, y)
    np.testing.assert_allclose(over_blocks(SDUClassifier(**options), deal(rows, y)).coef_, whole.coef_, atol=1e-7)
    if loss == "squared":
        portions = SDUClassifier(**options).partial_fit(rows[:100], y[:100]).partial_fit(rows[100:], y[100:])
        np.testing.assert_allclose(portions.coef_, whole.coef_)


def test_what_needs_the_graph_is_refused(shared):
    rows, y = shared
    for fit in (lambda model: fit_classifier(model, deal(rows, y)), lambda model: model.partial_fit(rows, y)):
        with pytest.raises(InputError, match=r"The 120 answers share 59 points.*`prior=None`.*Give `prior`"):
            fit(SDUClassifier())
    with pytest.raises(InputError, match=r"a choice by folds over points needs all of these.*in memory"):
        fit_classifier(SDUClassifierCV(prior=0.7), deal(rows, y))
    star = stack_pairs(rows[:31], [(0, k) for k in range(1, 31)], np.arange(30) % 3 > 0)
    with pytest.raises(InputError, match=r"Point 0 is in 30 of the 30 answers"):
        fit_classifier(SDUClassifier(prior=0.7), deal(*star))


def test_loose_pairs_with_points_are_as_without():
    rng = np.random.default_rng(0)
    rows, y = stack_pairs(rng.normal(size=(500, 3)), np.arange(200).reshape(-1, 2), np.arange(100) < 60)
    found = fit_classifier(SDUClassifierCV(), deal(rows, y))
    plain = fit_classifier(SDUClassifierCV(), deal(rows, y[:, 0]))
    np.testing.assert_array_equal(found.coef, plain.coef)
    assert found.prior == plain.prior
