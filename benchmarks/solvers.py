"""How fast the solvers are, against other people's, as ratios from one run on one thread.

    SDULEARN_DATA=folder make bench

prints the tables and writes the section "solvers" of docs/evidence/speed.md. Times are medians; a ratio over 1 means
sdulearn is faster.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable

import clarabel
import cvxopt
import numpy as np
import piqp
from pages import EVIDENCE, folded, write_section
from paper import load_benchmark
from runs import versions
from scipy import sparse
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from sdulearn import PairKFold, SDUClassifier, SDUClassifierCV, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.datasets import sample_sdu
from sdulearn.risks import mixture, row_weights

SETS = ("adult", "spambase", "magic", "w8a")
ALPHAS = (1e-1, 1e-4, 1e-7)
GAMMAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def seconds(job: Callable[[], object], repeats: int) -> float:
    """Median wall-clock time of a job after one run to warm up; of a job over half a second, that one run."""
    times: list[float] = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
        if times[0] > 0.5:
            return times[0]
    return statistics.median(times[1:])


def rows_of(name: str, seed: int = 0):
    """Standardised rows, their codes, and the true labels for the supervised peer."""
    X, y = load_benchmark(name)
    tagged = np.column_stack([X, y])
    rows, codes = sample_sdu(tagged, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=seed)
    return StandardScaler().fit_transform(rows[:, :-1]), codes, rows[:, -1]


class LeanProgram:
    """The double hinge problem for a general QP solver, one slack a row:

    min alpha/2 |w|^2 - c.(w,b) + (a/2).e   s.t.  e >= 0,  e >= z - 1,  e >= -z - 1.
    """

    def __init__(self, X, codes, alpha, prior):
        source = np.where(codes > 0, 0, np.where(codes < 0, 1, 2))
        P, N = row_weights(mixture("sddu", 0.5), prior, source)
        self.A = np.column_stack([X, np.ones(len(X))])
        self.a = P + N
        n, p = self.A.shape
        self.n, self.p = n, p
        ridge = np.r_[np.full(p - 1, alpha), 0.0]
        self.ridge = ridge
        self.c = self.A.T @ ((P - N) / 2)
        self.quadratic = sparse.diags(np.r_[ridge, np.zeros(n)], format="csc")
        self.linear = np.r_[-self.c, self.a / 2]
        block = sparse.csc_matrix(self.A)
        eye = sparse.identity(n, format="csc")
        self.hinges = sparse.vstack([sparse.hstack([block, -eye]), sparse.hstack([-block, -eye])], format="csc")
        self.ones = np.ones(2 * n)
        self.lower = np.r_[np.full(p, -np.inf), np.zeros(n)]
        self.with_bounds = sparse.vstack([self.hinges, sparse.hstack([sparse.csc_matrix((n, p)), -eye])], format="csc")
        self.with_bounds_rhs = np.r_[self.ones, np.zeros(n)]

    def objective(self, x):
        w = x[: self.p]
        return self.ridge @ w**2 / 2 + self.a @ np.maximum(1, np.abs(self.A @ w)) / 2 - self.c @ w

    def piqp(self):
        solver = piqp.SparseSolver()
        infinite = np.full(2 * self.n, -np.inf)
        upper = np.full(self.n + self.p, np.inf)
        solver.setup(self.quadratic, self.linear, None, None, self.hinges, infinite, self.ones, self.lower, upper)
        solver.solve()
        return np.asarray(solver.result.x)

    def clarabel(self):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.NonnegativeConeT(3 * self.n)]
        program = (self.quadratic, self.linear, self.with_bounds, self.with_bounds_rhs, cones, settings)
        return np.asarray(clarabel.DefaultSolver(*program).solve().x)

    def cvxopt(self):
        cvxopt.solvers.options["show_progress"] = False
        G = self.with_bounds.tocoo()
        solution = cvxopt.solvers.qp(
            cvxopt.spmatrix(self.quadratic.diagonal(), range(self.n + self.p), range(self.n + self.p)),
            cvxopt.matrix(self.linear),
            cvxopt.spmatrix(G.data, G.row.tolist(), G.col.tolist(), G.shape),
            cvxopt.matrix(self.with_bounds_rhs),
        )
        return np.asarray(solution["x"]).ravel()


def single_fits(repeats: int) -> list[str]:
    """Double hinge, one fit each, against general QP solvers."""
    lines = [
        "| set | d | alpha | sdulearn, ms | PIQP | Clarabel | cvxopt | objective above the best other's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        X, codes, _ = rows_of(name)
        for alpha in ALPHAS:
            ours = SDUClassifier(loss="double_hinge", alpha=alpha)
            spent = seconds(lambda ours=ours, X=X, codes=codes: ours.fit(X, codes), 3 * repeats)
            program = LeanProgram(X, codes, alpha, ours.prior_.value)
            best = program.objective(np.r_[ours.coef_[0], ours.intercept_])
            ratios, peers, found = [], [], []
            for peer in (program.piqp, program.clarabel, program.cvxopt):
                peer_time = seconds(lambda peer=peer, found=found: found.append(peer()), repeats)
                peers.append(program.objective(found[-1]))
                ratios.append(f"{peer_time / spent:.1f}x" if peer_time < 10 * spent else f"{peer_time / spent:.0f}x")
            worse = (best - min(peers)) / abs(min(peers))
            lines.append(
                f"| {name} | {X.shape[1]} | {alpha:g} | {1e3 * spent:.1f} | {' | '.join(ratios)} | {worse:+.1e} |"
            )
            print(lines[-1], flush=True)
    return lines


def cross_validation(repeats: int) -> list[str]:
    """Whole grids: double hinge against cold single fits, squared against LogisticRegressionCV."""
    lines = [
        "| set | double hinge CV, ms | 91 separate fits | squared CV, ms | LogisticRegressionCV(Cs=18, cv=5) |",
        "|---|---|---|---|---|",
    ]
    for name in SETS:
        X, codes, labels = rows_of(name)
        folds = list(PairKFold(5, random_state=0).split(X, codes))

        def cold(X=X, codes=codes, folds=folds):
            prior = SDUClassifier().fit(X, codes).prior_.value
            for train, _ in folds:
                for alpha in ALPHAS:
                    for gamma in GAMMAS:
                        SDUClassifier(loss="double_hinge", alpha=alpha, gamma=gamma, prior=prior).fit(
                            X[train], codes[train]
                        )
            SDUClassifier(loss="double_hinge", alpha=alpha, gamma=gamma, prior=prior).fit(X, codes)

        def supervised(X=X, labels=labels):
            kwargs = (
                {}
                if "use_legacy_attributes" not in LogisticRegressionCV().get_params()
                else {"use_legacy_attributes": False}
            )
            LogisticRegressionCV(Cs=18, cv=5, max_iter=1000, scoring="accuracy", **kwargs).fit(X, labels)

        hinge = seconds(lambda X=X, codes=codes: SDUClassifierCV(loss="double_hinge").fit(X, codes), repeats)
        squared = seconds(lambda X=X, codes=codes: SDUClassifierCV().fit(X, codes), 3 * repeats)
        cold_time, peer_time = seconds(cold, 1), seconds(supervised, 1)
        lines.append(
            f"| {name} | {1e3 * hinge:.0f} | {cold_time / hinge:.1f}x | {1e3 * squared:.1f} | "
            f"{peer_time / squared:.0f}x |"
        )
        print(lines[-1], flush=True)
    return lines


def memory() -> list[str]:
    """Peak memory of one fit over the size of the rows, as rows and columns grow."""
    lines = ["| n x d | rows, MB | squared | double hinge | logistic |", "|---|---|---|---|---|"]
    rng = np.random.default_rng(0)
    for n, d in ((20_000, 50), (80_000, 50), (20_000, 200)):
        X = rng.normal(size=(n, d))
        codes = np.r_[np.repeat(np.arange(1, 5801), 2), np.repeat(-np.arange(5801, 8001), 2)]
        codes = np.r_[codes, np.zeros(n - len(codes), dtype=int)]
        cells = []
        for loss in ("squared", "double_hinge", "logistic"):
            tracemalloc.start()
            SDUClassifier(loss=loss).fit(X, codes)
            cells.append(f"{tracemalloc.get_traced_memory()[1] / X.nbytes:.1f}x")
            tracemalloc.stop()
        lines.append(f"| {n} x {d} | {X.nbytes / 1e6:.0f} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def pair_codes() -> str:
    """Seconds to build and to check the codes of 10^6 pairs."""
    n = 10**6
    rng = np.random.default_rng(0)
    X, ends, same = np.zeros((2 * n, 1)), rng.permutation(2 * n).reshape(n, 2), rng.random(n) < 0.58
    codes = rng.permutation(stack_pairs(X, ends, same)[1])
    build, check = seconds(lambda: stack_pairs(X, ends, same), 3), seconds(lambda: AnswerGraph.from_y(codes), 3)
    return f"`stack_pairs` {build:.2f} s, checking codes in random order {check:.2f} s."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    software = versions("numpy", "scipy", "scikit-learn", "piqp", "clarabel", "cvxopt")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers complain about convergence in their own ways
        lines = [
            f"200 pairs, 500 unlabeled rows, one thread; {software}. A ratio is the time of the other solver divided "
            "by ours in the same run. Our time is that of `SDUClassifier.fit` with all its checks; the others are "
            "timed on a finished program, set-up and solve only.",
            *folded("Double hinge, one fit", single_fits(arguments.repeats)),
            "",
            "Whole cross-validations, 18 settings x 5 folds and a refit: double hinge against 91 separate fits, "
            "squared loss against scikit-learn's `LogisticRegressionCV` on the labels of the same rows.",
            "",
            *cross_validation(arguments.repeats),
            "",
            "Peak memory of one fit, divided by the size of the rows:",
            "",
            *memory(),
            "",
            "Pair codes of 10^6 pairs: " + pair_codes(),
        ]
    write_section(EVIDENCE / "speed.md", "solvers", lines, f"medians of {arguments.repeats} runs")


if __name__ == "__main__":
    main()
