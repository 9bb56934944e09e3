"""How many random pairs to ask about: expected accuracy and the prior's interval.

An estimate by simulation, on generated points or on your own unlabeled rows with made-up classes:
pairs are drawn, linear models trained as by 'sdulearn fit', and their accuracy computed. It stands or
falls with --ceiling, the accuracy of the best possible classifier, which nobody knows beforehand:
try two values.
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
import textwrap
import time
from pathlib import Path

from sdulearn.answers.records import flip_rate
from sdulearn.asking import effective_answers
from sdulearn.cli.options import positive
from sdulearn.cli.screen import add_json_option, make_folder, print_json, say
from sdulearn.extras import require
from sdulearn.planning import METHODS, SIZES, PairsNeeded, Plan, PlanRow, simulate_plan
from sdulearn.plotting import PlanDisplay
from sdulearn.types import MatrixLike

# Longer lines are hard to read.
_WIDEST = 110
_ACCURACY = ("accuracy", "error", "unfitted")
_THEORY = ("no_value_probability", "order_bound", "order_probability", "recommended_gamma")


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
        "--direction",
        choices=("random", "principal"),
        default="random",
        help="what separates the made-up classes of your rows: a random direction, or the one in "
        "which they vary most, the easiest case (default: %(default)s)",
    )
    add("--known-prior", action="store_true", help="the models are given the prior, not its estimate")
    add("--oriented", action="store_true", help="a few labelled points will name the classes")
    add("--epsilon", type=float, metavar="E", help="what it costs to flip answers for privacy at this epsilon")
    add("--sizes", type=positive, nargs="+", default=SIZES, metavar="N", help="numbers of pairs (default: 25 to 1600)")
    add("--repeats", type=positive, default=20, metavar="N", help="simulated draws (default: %(default)s)")
    add("--seed", type=int, default=0, help="seed of the simulation (default: %(default)s)")
    add("--out", type=Path, default=Path("sdulearn-plan"), help="folder (default: %(default)s)")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, print the table, write the picture and the numbers."""
    require("matplotlib", "demo")  # before the work, not after it
    cost = None if arguments.epsilon is None else 1 / effective_answers(1, arguments.epsilon)
    began = time.perf_counter()
    make_folder(arguments.out)
    plan = simulate(arguments)
    needed = [plan.pairs_needed(arguments.target, curve.method) for curve in plan.curves]
    files = {"picture": arguments.out / "plan.png", "numbers": arguments.out / "plan.csv"}
    draw(files["picture"], plan, arguments.target)
    write_csv(files["numbers"], plan)
    if arguments.json:
        print_json({**as_data(plan, needed, files), "times_as_many_for_privacy": cost})
        return 0
    say(report(plan, needed))
    if cost is not None:
        say("\n" + describe_privacy(arguments.epsilon, cost))
    say(f"\nPicture: {files['picture']}\nNumbers: {files['numbers']}")
    say(f"{time.perf_counter() - began:.0f} seconds.")
    return 0


def simulate(arguments: argparse.Namespace) -> Plan:
    """The plan that the options ask for, with a progress bar."""
    tqdm = require("tqdm", "demo").tqdm
    return simulate_plan(
        prior=arguments.prior,
        X=read_features(arguments.features, arguments.id, arguments.missing),
        methods=choose_methods(arguments.method, arguments.prior),
        sizes=arguments.sizes,
        ceiling=arguments.ceiling,
        n_features=arguments.n_features,
        n_unlabeled=arguments.n_unlabeled,
        direction=arguments.direction,
        known_prior=arguments.known_prior,
        oriented=arguments.oriented,
        n_repeats=arguments.repeats,
        random_state=arguments.seed,
        target_accuracy=arguments.target,
        # None: a bar on a terminal only.
        progress=lambda fits: tqdm(fits, unit="fit", leave=False, disable=None),
    )


def choose_methods(method: str | None, prior: float) -> tuple[str, ...]:
    """The one asked for, or all that the prior allows."""
    if method:
        return (method,)
    return ("joint",) if prior == 0.5 else METHODS


def as_data(plan: Plan, needed: list[PairsNeeded], files: dict[str, Path]) -> dict[str, object]:
    """All numbers; a number of pairs beyond the largest simulated is infinite, in JSON null."""
    answers = [{"method": one.method, "n_pairs": one.n_pairs, "low": one.low, "high": one.high} for one in needed]
    return {
        "target_accuracy": needed[0].target_accuracy,
        "pairs_needed": answers,
        "plan": plan,
        "files": files,
    }


def report(plan: Plan, needed: list[PairsNeeded]) -> str:
    """Answer, table and explanations as text."""
    paragraphs = [
        f"An estimate by simulation ({plan.n_repeats} draws, {plan.prior:.0%} of the points in the "
        f"larger class, {plan.n_unlabeled} unlabeled rows), from {basis(plan)}. The range allows for "
        "the noise of the simulation, not for assumptions that are off: with less separable classes "
        "or more features it takes more pairs.",
        "Columns: accuracy in % with its standard error; the prior's 95% interval at the expected "
        "counts; the chance that there are no more similar than dissimilar pairs, so that the counts "
        "imply no prior; the paper's lower bound on the chance that DU and SD have smaller error "
        "bounds than SU (and the chance itself); the mixture weight gamma that makes SDDU's linear "
        "term least noisy.",
        advice(plan),
    ]
    answers = "\n".join(describe_need(one) for one in needed)
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return "\n\n".join([answers, table(plan), *(textwrap.fill(text, width) for text in paragraphs)])


def describe_need(needed: PairsNeeded) -> str:
    """How many pairs a target takes, in a line."""
    first = needed.plan.sizes[0]
    last = needed.plan.sizes[-1]
    if math.isinf(needed.n_pairs):
        amount = f"more than {last} pairs"
    elif needed.n_pairs <= first:
        amount = f"{first} pairs or fewer"
    else:
        high = f"more than {last}" if math.isinf(needed.high) else f"{needed.high:.0f}"
        amount = f"about {needed.n_pairs:.0f} pairs ({needed.low:.0f} to {high})"
    return f"{needed.target_accuracy:.1%} with the {needed.method} method: {amount}"


def describe_privacy(epsilon: float, cost: float) -> str:
    """What flipped answers cost, in a line."""
    return (
        f"With --epsilon {epsilon:g} each answer is flipped with probability {flip_rate(epsilon):.1%} before it is "
        f"stored: it takes about {cost:.1f} times as many."
    )


def basis(plan: Plan) -> str:
    """What was simulated, under which conditions."""
    if plan.n_rows is None:
        points = f"generated points: two Gaussian classes in {plan.n_features} dimensions, so far apart"
    else:
        cut = ""
        if plan.n_axes < plan.n_features:
            cut = f" (cut to the {plan.n_axes} main directions: optimistic)"
        way = "the principal direction"
        if plan.direction == "random":
            way = "a random direction, a new one in each draw"
        points = (
            f"your {plan.n_rows} rows of {plan.n_features} features{cut}, with made-up classes: "
            f"a logistic model along {way}, so steep"
        )
    prior = "known" if plan.known_prior else "taken from the counts"
    names = "the larger class taken for the positive one"
    if plan.oriented:
        names = "a few labelled points to name the classes"
    return (
        f"{points} that the best possible classifier is right {plan.ceiling:.1%} of the time; pairs "
        f"drawn at random ({points_asked(plan)}), every answer right, the prior {prior}, {names}"
    )


def points_asked(plan: Plan) -> str:
    """How many points so many answers are about: two each, but that rows of a table come again."""
    if plan.n_rows is None:
        return "each of two points of its own"
    ends = 2 * plan.sizes[-1]
    n = plan.n_rows
    different = n * (1 - (1 - 1 / n) ** ends)
    return f"{plan.sizes[-1]} answers are about {different:.0f} of your rows"


def table(plan: Plan) -> str:
    """One line a number of pairs."""
    heads = "".join(f"{curve.method + ', %':>15}" for curve in plan.curves)
    lines = [f"{'pairs':>6}{heads}   prior interval   no prior   DU, SD < SU   gamma"]
    for i, row in enumerate(plan.rows):
        cells = [f"{100 * curve.accuracy[i]:.1f} ± {100 * curve.error[i]:.1f}" for curve in plan.curves]
        accuracies = "".join(f"{cell:>15}" for cell in cells)
        lines.append(f"{row.n_pairs:>6}{accuracies}{_theory_cells(row)}")
    return "\n".join(lines)


def advice(plan: Plan) -> str:
    """The paper's advice beside ours."""
    first = plan.rows[0]
    last = plan.rows[-1]
    if first.recommended_gamma is None:
        return (
            "Which mixture: none. At prior 1/2 the paper's risks are undefined, so this plans for the "
            "joint method; label a few points to find out which class is which."
        )
    return (
        "Which mixture: the paper advises SDDU, as DU and SD tend to have smaller bounds than SU, and "
        "to choose gamma by cross-validation. From counts and prior alone, gamma from "
        f"{first.recommended_gamma:.2f} ({first.n_pairs} pairs) to {last.recommended_gamma:.2f} "
        f"({last.n_pairs} pairs) makes its linear term least noisy. Where the joint method needs "
        "fewer pairs, prefer it."
    )


def read_features(path: Path | None, id_column: str | None, missing: str) -> MatrixLike | None:
    """The features of a table as 'sdulearn fit' would see them; None without a table."""
    if path is None:
        return None
    from sdulearn.io.tables import read_table

    return read_table(path, id_column=id_column, missing=missing).X


def draw(path: Path, plan: Plan, target: float) -> None:
    """The picture of a plan, as a file."""
    figure = require("matplotlib.figure", "demo").Figure(figsize=(11, 5.2), layout="constrained")
    PlanDisplay(plan=plan, target_accuracy=target).plot(figure.subplots(1, 2))
    figure.suptitle(f"An estimate from {plan.n_repeats} simulated draws")
    figure.savefig(path, dpi=120)


def write_csv(path: Path, plan: Plan) -> None:
    """All numbers of a plan, one line a number of pairs."""
    heads = [f"{curve.method}_{part}" for curve in plan.curves for part in _ACCURACY]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n_pairs", *heads, "prior_low", "prior_high", *_THEORY])
        for i, row in enumerate(plan.rows):
            accuracies = [getattr(curve, part)[i] for curve in plan.curves for part in _ACCURACY]
            theory = [getattr(row, part) for part in _THEORY]
            writer.writerow([row.n_pairs, *accuracies, row.prior.low, row.prior.high, *theory])


def _theory_cells(row: PlanRow) -> str:
    order = gamma = "-"
    if row.order_bound is not None:
        order = f"{_percent(row.order_bound)} ({_percent(row.order_probability)})"
        gamma = f"{row.recommended_gamma:.2f}"
    interval = f"{row.prior.low:.2f} to {row.prior.high:.2f}"
    no_value = _percent(row.no_value_probability)
    return f"   {interval:>14}   {no_value:>8}   {order:>11}   {gamma:>5}"


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    return "<1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"
