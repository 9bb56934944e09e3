"""How many random pairs to ask about: expected accuracy and the prior's interval against the number of pairs.

An estimate by simulation, on generated points or on your own unlabeled rows with made-up classes:
pairs are drawn, models trained as 'sdulearn fit' would, and their accuracy computed. It stands or
falls with --ceiling, the accuracy of the best possible classifier, which nobody knows beforehand:
try two values.
"""

from __future__ import annotations

import argparse
import csv
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.bounds import order_probability, recommended_gamma
from sdulearn.cli.numbers import positive
from sdulearn.extras import require
from sdulearn.planning import METHODS, SIZES, Plan, simulate_plan
from sdulearn.prior import dissimilar_share, similar_share

HELP = "how many pairs a target accuracy takes, by simulation; a table, a picture and a CSV"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn plan``."""
    add = parser.add_argument
    add("--prior", type=float, required=True, metavar="P", help="share of one class, such as 0.7; a guess will do")
    add("--target", type=float, required=True, metavar="A", help="accuracy to reach, such as 0.85")
    add("--features", type=Path, metavar="FILE", help="table of your unlabeled rows (default: generated points)")
    add("--id", metavar="COLUMN", help="id column of that table, which is no feature (default: id, if there is one)")
    add("--missing", choices=("error", "mean"), default="error", help="missing values in it (default: %(default)s)")
    add("--method", choices=METHODS, help="plan for one method (default: both)")
    add("--ceiling", type=float, metavar="A", help="accuracy of the best possible classifier (default: 1 - q / 3)")
    add("--n-features", type=positive, default=10, metavar="N", help="of generated points (default: %(default)s)")
    add("--n-unlabeled", type=positive, default=500, metavar="N", help="unlabeled rows (default: %(default)s)")
    add(
        "--direction", choices=("random", "principal"), default="random",
        help="what separates the made-up classes of your rows: a random direction, or the one in which they vary most, "
        "the easiest case (default: %(default)s)",
    )  # fmt: skip
    add("--known-prior", action="store_true", help="the models will be told the prior, not take it from the counts")
    add("--oriented", action="store_true", help="a few labelled points will settle which class is which")
    add("--sizes", type=positive, nargs="+", default=SIZES, metavar="N", help="numbers of pairs (default: 25 to 1600)")
    add("--repeats", type=positive, default=20, metavar="N", help="simulated draws (default: %(default)s)")
    add("--seed", type=int, default=0, help="seed of the simulation (default: %(default)s)")
    add("--out", type=Path, default=Path("sdulearn-plan"), help="folder (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, print the table, write the picture and the numbers."""
    tqdm = require("tqdm", "demo").tqdm
    figure_class = require("matplotlib.figure", "demo").Figure
    began = time.perf_counter()
    X = read_features(arguments.features, arguments.id, arguments.missing) if arguments.features else None
    methods = (arguments.method,) if arguments.method else METHODS
    if arguments.prior == 0.5 and not arguments.method:
        print("At prior 0.5 the sddu method is undefined, so this plans for the joint one alone.\n")
        methods = ("joint",)
    arguments.out.mkdir(parents=True, exist_ok=True)
    plan = simulate_plan(
        prior=arguments.prior, X=X, methods=methods, sizes=arguments.sizes, ceiling=arguments.ceiling,
        n_features=arguments.n_features, n_unlabeled=arguments.n_unlabeled, direction=arguments.direction,
        known_prior=arguments.known_prior, oriented=arguments.oriented, n_repeats=arguments.repeats,
        random_state=arguments.seed, target_accuracy=arguments.target,
        progress=lambda fits: tqdm(fits, unit="fit", leave=False),
    )  # fmt: skip
    print(report(plan, arguments.target))
    _write_csv(arguments.out / "plan.csv", plan)
    _draw(figure_class, arguments.out / "plan.png", plan, arguments.target)
    print(f"\nPicture: {arguments.out / 'plan.png'}\nNumbers: {arguments.out / 'plan.csv'}")
    print(f"{time.perf_counter() - began:.0f} seconds.")
    return 0


def report(plan: Plan, target: float) -> str:
    """Answer, table and explanations as text."""
    answers = [str(plan.pairs_needed(target, curve.method)) for curve in plan.curves]
    said = [
        f"An estimate by simulation ({plan.n_repeats} draws, {plan.prior:.0%} of the points in the larger class, "
        f"{plan.n_unlabeled} unlabeled rows), from {plan.basis}. The range allows for the noise of the simulation, not "
        "for assumptions that are off: with less separable classes or more features it takes more pairs.",
        "Columns: accuracy in % with its standard error; the prior's 95% interval at the expected counts; the chance "
        "that there are no more similar than dissimilar pairs, so that the counts imply no prior; "
        "the paper's lower bound on the chance that DU and SD have smaller error bounds than SU (and the chance "
        "itself); the mixture weight gamma that makes SDDU's linear term least noisy.",
    ]
    return "\n\n".join(["\n".join(answers), table(plan), *(textwrap.fill(text, 110) for text in (*said, advice(plan)))])


def table(plan: Plan) -> str:
    """One line a number of pairs."""
    heads = "".join(f"{curve.method + ', %':>15}" for curve in plan.curves)
    lines = [f"{'pairs':>6}{heads}   prior interval   no prior   DU, SD < SU   gamma"]
    for i, (n, prior) in enumerate(zip(plan.sizes, plan.priors, strict=True)):
        cells = "".join(f"{f'{100 * curve.accuracy[i]:.1f} ± {100 * curve.error[i]:.1f}':>15}" for curve in plan.curves)
        order, exact, gamma = theory(plan, n)
        chance = "-" if order is None else f"{_percent(order)} ({_percent(exact)})"
        weight = "-" if gamma is None else f"{gamma:.2f}"
        interval = f"{prior.low:.2f} to {prior.high:.2f}"
        lines.append(f"{n:>6}{cells}   {interval:>14}   {_percent(plan.no_answer[i]):>8}   {chance:>11}   {weight:>5}")
    return "\n".join(lines)


def theory(plan: Plan, n_pairs: int) -> tuple[float | None, float | None, float | None]:
    """The corollary's bound, the chance that it bounds, and SDDU's gamma; None at prior 1/2, where there is no SDDU."""
    p = plan.prior
    if p == 0.5:
        return None, None, None
    counts = {"n_similar": n_pairs * similar_share(p), "n_dissimilar": n_pairs * dissimilar_share(p)}
    gamma = recommended_gamma("sddu", **counts, n_unlabeled=plan.n_unlabeled, prior=p)
    return order_probability(n_pairs, p), order_probability(n_pairs, p, exact=True), gamma


def advice(plan: Plan) -> str:
    """The paper's advice beside ours."""
    if plan.prior == 0.5:
        return (
            "Which mixture: none. At prior 1/2 the paper's risks are undefined; use the joint method, and label a few "
            "points to settle which class is which."
        )
    gammas = [theory(plan, n)[2] for n in (plan.sizes[0], plan.sizes[-1])]
    return (
        "Which mixture: the paper advises SDDU, as DU and SD tend to have smaller bounds than SU, and to choose gamma "
        f"by cross-validation. From counts and prior alone, gamma from {gammas[0]:.2f} ({plan.sizes[0]} pairs) to "
        f"{gammas[1]:.2f} ({plan.sizes[-1]} pairs) makes its linear term least noisy. "
        "Where the joint method needs fewer pairs, prefer it."
    )


def read_features(path: Path, id_column: str | None, missing: str) -> Any:
    """The features of a table as 'sdulearn fit' would see them."""
    from sdulearn.io.tables import read_table

    return read_table(path, id_column=id_column, missing=missing).X


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%" if share == 0 or share >= 0.01 else "<1%"


def _write_csv(path: Path, plan: Plan) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        parts = ("accuracy", "error", "unfitted")
        writer.writerow(
            ["n_pairs", *(f"{curve.method}_{part}" for curve in plan.curves for part in parts), "prior_low",
             "prior_high", "no_prior", "order_probability", "order_probability_exact", "recommended_gamma"]
        )  # fmt: skip
        for i, n in enumerate(plan.sizes):
            cells = [getattr(curve, part)[i] for curve in plan.curves for part in parts]
            writer.writerow([n, *cells, plan.priors[i].low, plan.priors[i].high, plan.no_answer[i], *theory(plan, n)])


def _draw(figure_class: Any, path: Path, plan: Plan, target: float) -> None:
    """Accuracy on the left, the prior's interval on the right."""
    figure = figure_class(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for curve, colour in zip(plan.curves, ("black", "tab:blue"), strict=False):
        mean, error = 100 * np.array(curve.accuracy), 100 * np.array(curve.error)
        left.errorbar(plan.sizes, mean, error, color=colour, marker="o", ms=4, capsize=3, label=curve.method)
    left.axhline(100 * target, color="tab:red", linestyle="--", label="target")
    left.axhline(100 * plan.ceiling, color="0.5", linestyle=":", label="best possible (assumed)")
    left.axhline(100 * plan.prior, color="0.5", linestyle="-.", label="always the larger class")
    left.set(title="expected accuracy ± standard error", ylabel="accuracy, %")
    low, high = [prior.low for prior in plan.priors], [prior.high for prior in plan.priors]
    right.fill_between(plan.sizes, low, high, color="tab:blue", alpha=0.25, label="95% interval")
    right.axhline(plan.prior, color="black", label="prior")
    right.axhline(0.5, color="tab:red", linestyle="--", label="1/2: counts tell nothing")
    right.set(title="prior from the counts of similar and dissimilar pairs", ylabel="share of the larger class")
    for ax in (left, right):
        ax.set(xlabel="number of pairs", xscale="log")
        ax.set_xticks(plan.sizes, [str(n) for n in plan.sizes])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2, frameon=False)
    figure.suptitle(f"An estimate from {plan.n_repeats} simulated draws")
    figure.savefig(path, dpi=120)
