"""How many random pairs to ask about: expected accuracy and interval of the prior.

An estimate by simulation, on generated points or on your own unlabeled rows with simulated classes:
pairs are drawn, linear models are fitted as by 'sdulearn fit', and their accuracy is computed. It
depends on --ceiling, the accuracy of the best possible classifier, which nobody knows beforehand:
try two values.
"""

from __future__ import annotations

import argparse
import math
import shutil
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdulearn.answers.records import flip_rate
from sdulearn.asking.privacy import effective_answers
from sdulearn.cli import options as cli
from sdulearn.errors import require
from sdulearn.planning import METHODS, SIZES, PairsNeeded, Plan, simulate_plan
from sdulearn.plotting import PlanDisplay
from sdulearn.types import MatrixLike

# Longer lines are hard to read.
_WIDEST = 110
_ACCURACY = ("accuracy", "error", "unfitted")
_THEORY = ("no_value_probability", "order_bound", "order_probability", "recommended_gamma")
_COLUMNS = """Columns: accuracy in % with its standard error; 95% interval of the prior at the expected
counts; "no prior": probability that similar pairs are not the majority, so that the counts imply no
prior; "DU, SD < SU": the paper's lower bound on the probability that DU and SD have smaller error
bounds than SU (and the probability itself); "gamma": the mixture weight that minimises the noise of
SDDU's linear term."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn plan``."""
    add = parser.add_argument_group("question").add_argument
    text = "share of one class, such as 0.7; a guess will do"
    add("--prior", type=float, required=True, metavar="P", help=text)
    text = "accuracy to reach, such as 0.85"
    add("--target", dest="target_accuracy", type=float, required=True, metavar="A", help=text)
    add("--method", choices=METHODS, help="plan for one method (default: both)")
    text = "numbers of pairs (default: 25 to 1600)"
    add("--sizes", type=cli.positive, nargs="+", default=SIZES, metavar="N", help=text)
    text = "also show how many more answers it takes if they are flipped for privacy at this epsilon"
    add("--epsilon", type=float, metavar="E", help=text)
    rows = parser.add_argument_group("your rows")
    add = rows.add_argument
    text = "table of your unlabeled rows (default: generated points)"
    add("--features", type=Path, metavar="FILE", help=text)
    text = "id column of that table, not a feature (default: id, if there is one)"
    add("--id", dest="id_column", metavar="COLUMN", help=text)
    cli.add_sheet_options(rows)
    text = "what to do with missing values (default: %(default)s)"
    add("--missing", choices=("auto", "error", "mean"), default="auto", help=text)
    add = parser.add_argument_group("assumptions").add_argument
    text = "accuracy of the best possible classifier (default: it errs on a third of the smaller class)"
    add("--ceiling", type=float, metavar="A", help=text)
    number: dict[str, Any] = {"type": cli.positive, "metavar": "N"}
    add("--n-features", **number, default=10, help="features of generated points (default: %(default)s)")
    add("--n-unlabeled", **number, default=500, help="unlabeled rows beside the pairs (default: %(default)s)")
    text = "simulated draws (default: %(default)s)"
    add("--repeats", dest="n_repeats", **number, default=20, help=text)
    text = "seed of the simulation (default: %(default)s)"
    add("--seed", dest="random_state", type=int, metavar="SEED", default=0, help=text)
    cli.add_out_options(parser, "sdulearn-plan")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, print the table, write the picture and the numbers."""
    cost = None if arguments.epsilon is None else 1 / effective_answers(1, arguments.epsilon)
    began = time.perf_counter()
    files = cli.output_files(arguments.out, "plan")
    plan = _simulate(arguments)
    needed = [plan.pairs_needed(arguments.target_accuracy, curve.method) for curve in plan.curves]
    figure = require("matplotlib.figure", "demo").Figure(figsize=(11, 5.2), layout="constrained")
    PlanDisplay(plan, target_accuracy=arguments.target_accuracy).plot(figure.subplots(1, 2))
    figure.suptitle(f"An estimate from {plan.n_repeats} simulated draws")
    cli.write_picture(files["picture"], figure)
    cli.write_csv(files["numbers"], _numbers(plan))
    if arguments.json:
        # Beyond the largest simulated size the number of pairs is infinite, which is null in JSON.
        answers = [{name: getattr(one, name) for name in ("method", "n_pairs", "low", "high")} for one in needed]
        data = {"target_accuracy": arguments.target_accuracy, "pairs_needed": answers, "plan": plan, "files": files}
        cli.print_json({**data, "times_as_many_for_privacy": cost})
        return 0
    cli.say("\n".join(map(describe_need, needed)))
    cli.say("\n" + table(plan))
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    for text in (describe(plan), _COLUMNS, advice(plan)):
        cli.say("\n" + textwrap.fill(" ".join(text.split()), width))
    if cost is not None:
        flipped = f"each answer is flipped with probability {flip_rate(arguments.epsilon):.1%} before it is stored"
        cli.say(f"\nWith --epsilon {arguments.epsilon:g} {flipped}: plan about {cost:.1f} times as many answers.")
    cli.say(f"\n{cli.FILES.format(**files)}\n{time.perf_counter() - began:.0f} seconds.")
    return 0


def _simulate(arguments: argparse.Namespace) -> Plan:
    """Simulate as the options say."""
    X: MatrixLike | None = None
    if arguments.features is not None:
        # The features as 'sdulearn fit' would encode them.
        from sdulearn.workflow.data import draw_rows
        from sdulearn.workflow.options import MAX_UNLABELED

        how = {"id_column": arguments.id_column, "missing": arguments.missing}
        how |= {"sheet": arguments.sheet, "skip_rows": arguments.skip_rows}
        X = draw_rows(arguments.features, MAX_UNLABELED, **how)[1]
    methods = ("joint",) if arguments.prior == 0.5 else METHODS
    if arguments.method:
        methods = (arguments.method,)
    return simulate_plan(X=X, methods=methods, **cli.parameters_of(simulate_plan, arguments))


def describe_need(needed: PairsNeeded) -> str:
    """Say how many pairs a target takes, in a line."""
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


def describe(plan: Plan) -> str:
    """Say what was simulated, under which assumptions."""
    if plan.n_rows is None:
        points = f"generated points of two Gaussian classes in {plan.n_features} dimensions"
        asked = "no point is in two pairs"
    else:
        cut = f" (reduced to {plan.n_axes} principal directions: optimistic)" if plan.n_axes < plan.n_features else ""
        points = (
            f"your {plan.n_rows} rows of {plan.n_features} features{cut}, with simulated classes: a"
            " logistic model along a random direction, a new one in each draw"
        )
        # Two rows per answer, drawn with replacement.
        different = plan.n_rows * (1 - (1 - 1 / plan.n_rows) ** (2 * plan.sizes[-1]))
        asked = f"{plan.sizes[-1]} answers are about {different:.0f} of your rows"
    half = plan.prior == 0.5
    names = "A few labelled points name the classes" if half else "The larger class is taken as the positive one"
    return (
        f"Estimated by simulation in {plan.n_repeats} draws from {points}. {plan.prior:.0%} of the "
        f"points are in the larger class, the best possible classifier is right {plan.ceiling:.1%} "
        f"of the time, and there are {plan.n_unlabeled} unlabeled rows. Pairs are random ({asked}),"
        f" every answer is right, and the prior is estimated from the counts. {names}. The range "
        "covers the noise of the simulation, not wrong assumptions: less separable classes or more"
        " features need more pairs."
    )


def table(plan: Plan) -> str:
    """Format one line per number of pairs."""
    heads = "".join(f"{curve.method + ', %':>15}" for curve in plan.curves)
    lines = [f"{'pairs':>6}{heads}   prior interval   no prior   DU, SD < SU   gamma"]
    for i, row in enumerate(plan.rows):
        cells = [f"{100 * curve.accuracy[i]:.1f} ± {100 * curve.error[i]:.1f}" for curve in plan.curves]
        accuracies = "".join(f"{cell:>15}" for cell in cells)
        interval = f"{row.prior.low:.2f} to {row.prior.high:.2f}"
        order = gamma = "-"
        if row.order_bound is not None and row.order_probability is not None:
            order = f"{_percent(row.order_bound)} ({_percent(row.order_probability)})"
            gamma = f"{row.recommended_gamma:.2f}"
        theory = f"   {interval:>14}   {_percent(row.no_value_probability):>8}   {order:>11}   {gamma:>5}"
        lines.append(f"{row.n_pairs:>6}{accuracies}{theory}")
    return "\n".join(lines)


def advice(plan: Plan) -> str:
    """Give the paper's advice and ours."""
    first = plan.rows[0]
    last = plan.rows[-1]
    if first.recommended_gamma is None:
        return (
            "Which mixture: none. At prior 1/2 the paper's risks are undefined, so this plan is "
            "for the joint method. Label a few points to find out which class is which."
        )
    return (
        "Which mixture: the paper recommends SDDU, as DU and SD tend to have smaller error bounds "
        "than SU, with gamma chosen by cross-validation. By counts and prior alone, gamma would be"
        f" {first.recommended_gamma:.2f} at {first.n_pairs} pairs and {last.recommended_gamma:.2f} "
        f"at {last.n_pairs}. Prefer the joint method where it needs fewer pairs."
    )


def _numbers(plan: Plan) -> Iterator[list[object]]:
    """Yield the header and one row per number of pairs."""
    heads = [f"{curve.method}_{part}" for curve in plan.curves for part in _ACCURACY]
    yield ["n_pairs", *heads, "prior_low", "prior_high", *_THEORY]
    for i, row in enumerate(plan.rows):
        accuracies = [getattr(curve, part)[i] for curve in plan.curves for part in _ACCURACY]
        theory = [getattr(row, part) for part in _THEORY]
        yield [row.n_pairs, *accuracies, row.prior.low, row.prior.high, *theory]


def _percent(share: float) -> str:
    return "<1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"
