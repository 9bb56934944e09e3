"""Slip 1 of the paper, shown by somebody else's solver."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from sdulearn import SDUClassifier
from sdulearn.losses import DoubleHinge
from sdulearn.pairs import sources
from sdulearn.risks import even_and_linear, mixture, row_weights

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


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_double_hinge_with_more_columns_than_rows(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60)) * (rng.random((30, 60)) < 0.3)
    codes = np.r_[np.repeat(np.arange(1, 7), 2), np.repeat(-np.arange(7, 10), 2), np.zeros(12, dtype=int)]
    P, N = row_weights(mixture("sddu", 0.5), 0.7, sources(codes))
    a, m = even_and_linear(P, N)
    theirs = solved(X, a / 2, a / 2, np.column_stack([X, np.ones(30)]).T @ m)
    model = SDUClassifier(loss="double_hinge", alpha=ALPHA, prior=0.7).fit(make(X), codes)
    z = model.decision_function(make(X))
    ours = ALPHA / 2 * np.sum(model.coef_**2) + P @ DoubleHinge().value(z, 1) + N @ DoubleHinge().value(z, -1)
    assert ours == pytest.approx(theirs.obj_val, abs=1e-6)
    assert model.objective_ == pytest.approx(ours)
