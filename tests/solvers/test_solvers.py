"""Every solver's answer is checked by code that is not the solver's: KKT by hand, other people's solvers."""

import tracemalloc

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from sdulearn import SDUClassifier
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import sources
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.losses import TRAINING_LOSSES, DoubleHinge, get_loss
from sdulearn.risks import even_and_linear, mixture, row_weights
from sdulearn.solvers import SOLVERS, choose_solver, solve
from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Design, Problem, Solution

ALPHAS = (1e-1, 1e-4, 1e-7)


def weights_of(codes, risk="sddu", gamma=0.5, prior=0.7):
    return even_and_linear(*row_weights(mixture(risk, gamma), prior, AnswerGraph.from_y(codes).source))


def raw_objective(X, codes, loss, alpha, risk="sddu", prior=0.7):
    """J(coef, intercept) written out from the paper, with no help from the solvers."""
    a, m = weights_of(codes, risk, prior=prior)
    found = get_loss(loss)

    def J(v):
        z = X @ v[:-1] + v[-1]
        return alpha / 2 * v[:-1] @ v[:-1] + a @ found.even(z) - m @ z

    return J


def kkt_residual(X, codes, loss, alpha, coef, intercept, risk="sddu"):
    """|gradient| of J at the returned coefficients, in the units of each column, for smooth losses."""
    a, m = weights_of(codes, risk)
    z = X @ coef + intercept
    slope = a * get_loss(loss).even_grad(z) - m
    scale = np.sqrt(a @ X**2) + np.abs(m) @ np.abs(X)
    return max(np.max(np.abs(alpha * coef + X.T @ slope) / np.where(scale > 0, scale, 1)), abs(slope.sum()))


def double_hinge_gap(X, codes, alpha, prior=0.7):
    """Relative duality gap of the returned coefficients, from the slopes that the solver claims, put on all rows."""
    a, m = weights_of(codes, prior=prior)
    design = Design.from_rows(X, True)
    solution = solve(design.problem(a, m, get_loss("double_hinge"), alpha), "interior_point", 1e-8, 1000)
    theta = np.zeros(len(a))
    theta[a > 0] = solution.dual
    assert (np.abs(theta) <= a / 2 + 1e-15).all()
    assert abs(theta.sum() - m.sum()) < 1e-9
    J = raw_objective(X, codes, "double_hinge", alpha, prior=prior)(np.append(*design.coefficients(solution.w)))
    dual = -np.sum((X.T @ (m - theta)) ** 2) / (2 * alpha) - np.abs(theta).sum() + a.sum() / 2
    return (J - dual) / abs(J)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("risk", ["su", "du", "sd", "sddu"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_smooth_losses_reach_a_zero_gradient(waveform, loss, risk, alpha):
    rows, codes = waveform
    model = SDUClassifier(risk, loss, alpha=alpha, prior=0.7).fit(rows, codes)
    assert model.optimality_ < 1e-8
    # Each penalty of the continuation starts the next; only the last is solved to the end.
    assert model.n_iter_ <= 50
    assert kkt_residual(rows, codes, loss, alpha, model.coef_[0], model.intercept_[0], risk) < 1e-7


@pytest.mark.parametrize("form", ["raw", "standardised, with duplicate columns"])
def test_benchmark_sets_are_solved_exactly(benchmark_rows, form):
    rows, codes = benchmark_rows
    if form != "raw":
        rows = StandardScaler().fit_transform(rows)
        rows = np.column_stack([rows, rows[:, :2]])
    for alpha in ALPHAS:
        assert SDUClassifier(alpha=alpha).fit(rows, codes).optimality_ < 1e-8
        assert abs(double_hinge_gap(rows, codes, alpha)) < 1e-8


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_all_solvers_of_a_smooth_loss_agree(waveform, loss):
    rows, codes = waveform
    able = [name for name, (needs, _) in SOLVERS.items() if hasattr(get_loss(loss), needs)]
    assert len(able) >= 2
    fits = [SDUClassifier(loss=loss, solver=s, tol=1e-6).fit(rows, codes) for s in able]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.coef_, fits[0].coef_, atol=1e-5)


def test_a_very_wide_sparse_matrix_is_never_made_dense():
    n, d = 60, 100_000
    X = sparse.random(n, d, density=1e-4, format="csr", random_state=0)
    codes = np.r_[np.repeat(np.arange(1, 13), 2), np.repeat(-np.arange(13, 21), 2), np.zeros(20, dtype=int)]
    tracemalloc.start()
    for loss in TRAINING_LOSSES:
        SDUClassifier(loss=loss).fit(X, codes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 8 * d < 8 * n * d  # a few vectors of length d, never n of them


@pytest.mark.parametrize("loss", ["double_hinge", "logistic"])
def test_no_convergence_is_never_silent(waveform, loss):
    rows, codes = waveform
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations at a relative KKT residual of .*alpha"):
        model = SDUClassifier(loss=loss, max_iter=1, alpha=1e-4).fit(rows, codes)
    assert model.optimality_ > 1e-8


def test_a_start_is_believed_by_its_slopes_alone():
    rng = np.random.default_rng(0)
    A, a = rng.normal(size=(40, 3)), np.full(40, 1 / 40)
    hinge = Problem(A, a, A.T @ rng.normal(size=40) / 40, np.full(3, 0.1), get_loss("double_hinge"))
    right = solve(hinge, "interior_point", 1e-8, 100)
    assert solve(hinge, "interior_point", 1e-6, 100, [right]).n_iter == 0
    for w, dual in ((right.w, None), (right.w + 0.01, right.dual), (right.w, right.dual + 1e-3 * a)):
        assert solve(hinge, "interior_point", 1e-6, 100, [Solution(w, 0, dual)]).n_iter > 0


@pytest.mark.parametrize("prior", [0.501, 0.5 - 1e-6])
def test_newton_near_one_half_takes_a_bounded_number_of_steps(prior):
    """Weights of 1 / |p - q| make the solution so huge that the loss is all kink."""
    X, y = make_waveform(2000, random_state=0)
    rows, codes = sample_sdu(X, y, n_pairs=100, n_unlabeled=200, prior=0.7, random_state=0)
    for alpha in ALPHAS[:2]:
        model = SDUClassifier(loss="logistic", prior=prior, alpha=alpha).fit(rows, codes)
        assert model.optimality_ < 1e-8
        assert model.n_iter_ < 300
    # Beyond what rounding resolves the solver stops and says so.
    with pytest.warns(ConvergenceWarning):
        model = SDUClassifier(loss="logistic", prior=0.5 + 1e-9, alpha=1e-7).fit(rows, codes)
    assert model.n_iter_ < 300


def test_solver_choice():
    assert choose_solver("auto", get_loss("squared"), 10) == "closed_form"
    assert choose_solver("auto", get_loss("double_hinge"), 10) == "interior_point"
    assert choose_solver("auto", get_loss("logistic"), 10) == "newton"
    assert choose_solver("auto", get_loss("logistic"), 10**5) == "lbfgs"
    for solver, loss in (("closed_form", "logistic"), ("lbfgs", "double_hinge"), ("newton", "double_hinge")):
        with pytest.raises(ValueError, match=f"`solver='{solver}'` needs a loss with .*use `solver='auto'`"):
            choose_solver(solver, get_loss(loss), 10)


ALPHA = 0.1


def solved(X, upper, lower, linear):
    """Minimise ``alpha/2 |w|^2 + upper.xi + lower.eta - linear.w`` over slacks that bound double hinge from above.

    ``xi`` stands for the loss at label +1 and ``eta`` for that at -1: each is bounded from below only.
    """
    A = np.column_stack([X, np.ones(len(X))])
    n, p = A.shape
    quadratic = sparse.diags_array(np.r_[np.full(p - 1, ALPHA), np.zeros(2 * n + 1)]).tocsc()
    cost = np.r_[-linear, upper, lower]
    eye, none = np.eye(n), np.zeros((n, n))
    # slack >= 0, slack >= (1 - t z) / 2, slack >= -t z, for t = +1 and t = -1
    rows = [[np.zeros((n, p)), -eye, none], [-A / 2, -eye, none], [-A, -eye, none]]
    rows += [[np.zeros((n, p)), none, -eye], [A / 2, none, -eye], [A, none, -eye]]
    right = np.tile(np.r_[np.zeros(n), np.full(n, -0.5), np.zeros(n)], 2)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    program = (quadratic, cost, sparse.csc_matrix(np.block(rows)), right, [clarabel.NonnegativeConeT(len(right))])
    return clarabel.DefaultSolver(*program, settings).solve()


@pytest.mark.parametrize("risk", ["su", "du", "sd", "sddu"])
def test_the_paper_s_own_program_falls_without_end_and_the_right_one_does_not(waveform, risk):
    """Appendix B puts the weights P and N themselves on the slacks, and some are negative.

    The right form has the even weights ``a = P + N``, half on either slack, and the rest in a linear term.
    """
    X, codes = waveform[0][:, :4], waveform[1]
    P, N = row_weights(mixture(risk, 0.5), 0.7, sources(codes))
    a, m = even_and_linear(P, N)
    columns = np.column_stack([X, np.ones(len(X))])
    assert str(solved(X, P, N, np.zeros(5)).status) == "DualInfeasible"
    right = solved(X, a / 2, a / 2, columns.T @ m)
    assert str(right.status) == "Solved"
    model = SDUClassifier(risk, "double_hinge", alpha=ALPHA, prior=0.7).fit(X, codes)
    z = model.decision_function(X)
    ours = ALPHA / 2 * np.sum(model.coef_**2) + P @ DoubleHinge().value(z, 1) + N @ DoubleHinge().value(z, -1)
    assert ours == pytest.approx(right.obj_val, abs=1e-6)


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_more_columns_than_rows(loss, make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60)) * (rng.random((30, 60)) < 0.3)
    codes = np.r_[np.repeat(np.arange(1, 7), 2), np.repeat(-np.arange(7, 10), 2), np.zeros(12, dtype=int)]
    model = SDUClassifier(loss=loss, alpha=ALPHA, prior=0.7).fit(make(X), codes)
    if loss == "double_hinge":
        a, m = weights_of(codes)
        theirs = solved(X, a / 2, a / 2, np.column_stack([X, np.ones(30)]).T @ m)
        assert model.objective_ == pytest.approx(theirs.obj_val, abs=1e-6)
        return
    assert kkt_residual(X, codes, loss, ALPHA, model.coef_[0], model.intercept_[0]) < 1e-7


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("prior", [0.55, 0.7, 0.9])
@pytest.mark.parametrize("n", [600, 3000, 9000])
def test_double_hinge_is_certified_at_every_size(n, prior, alpha):
    X, y = make_waveform(4 * n, random_state=0)
    rows, codes = sample_sdu(X, y, n_pairs=n // 6, n_unlabeled=n - n // 3, prior=prior, random_state=0)
    assert abs(double_hinge_gap(rows, codes, alpha, prior)) < 1e-8


def test_cholesky_of_singular_systems():
    np.testing.assert_array_equal(Cholesky(np.zeros((2, 2)), np.zeros(2)).solve(np.zeros(2)), 0)
    assert np.isfinite(Cholesky(np.ones((2, 2)), np.zeros(2)).solve(np.ones(2))).all()


@pytest.mark.parametrize("apart", [1e-4, 1e-6], ids=["normal equations", "QR"])
def test_closed_form_where_columns_are_nearly_equal(apart):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 10))
    A[:, 1:] = A[:, :1] + apart * A[:, 1:]
    a = np.full(200, 1 / 200)
    b = rng.normal(size=200)
    problem = Problem(A, a, A.T @ b / 200, np.full(10, 1e-13), get_loss("squared"))
    found = solve(problem, "closed_form", 1e-8, 1)
    once = Cholesky(weighted_gram(A, a / 2), problem.ridge).solve(problem.c)
    assert found.optimality < problem.certified(Solution(once, 1)).optimality / 10
    # As the least squares problem that it is: no rounding is squared.
    stacked = np.vstack([A / 20, np.sqrt(1e-13) * np.eye(10)])
    expected = np.linalg.lstsq(stacked, np.r_[b / 10, np.zeros(10)], rcond=None)[0]
    np.testing.assert_allclose(A @ found.w, A @ expected, atol=1e-6)
