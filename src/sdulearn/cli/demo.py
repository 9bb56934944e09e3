"""Train every risk and loss on pairs drawn from data that needs no download.

SU, DU, SD, SDSU, SDDU and SUDU with each loss and the joint estimator, settings chosen by
cross-validation on the pairs alone, beside k-means and true labels.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from sdulearn.cli.options import positive
from sdulearn.cli.output import add_json_option, print_json
from sdulearn.cli.screen import say
from sdulearn.experiments import Summary, demonstrate
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS

BESIDE = {
    "joint": "joint likelihood of pairs",
    "km": "k-means, no pairs",
    "supervised": "logistic regression, true labels",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn demo``."""
    parser.add_argument("--out", type=Path, default=Path("sdulearn-demo"), help="folder (default: %(default)s)")
    parser.add_argument("--seeds", type=positive, default=6, help="random draws (default: %(default)s)")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration."""
    results = demonstrate(arguments.out, trials=arguments.seeds)
    picture = arguments.out / "demo.png"
    numbers = arguments.out / "demo.csv"
    if arguments.json:
        print_json({"results": results, "picture": picture, "numbers": numbers})
    else:
        say("\n".join(describe(results)))
        say(f"\nPicture: {picture}\nNumbers: {numbers}")
    return 0


def describe(results: Sequence[Summary]) -> Iterator[str]:
    """The printed table: accuracy of each risk and loss at the largest number of pairs."""
    largest = max(line.n_pairs for line in results)
    shown = [line for line in results if line.n_pairs == largest]
    yield (
        f"Accuracy in % on test points, mean ± standard error over {shown[0].trials} draws, "
        f"{shown[0].prior:.0%} positive."
    )
    yield 'The models were given answers to "same class?" and unlabeled rows, never a label;'
    yield "settings were chosen on the answers alone."
    for dataset in dict.fromkeys(line.dataset for line in shown):
        lines = {line.method: line for line in shown if line.dataset == dataset}
        yield ""
        yield f"{dataset}: {largest} pairs, {shown[0].n_unlabeled} unlabeled rows"
        yield " " * 8 + "".join(f"{loss:>15}" for loss in TRAINING_LOSSES)
        for risk in RISKS:
            cells = (describe_mean(lines[f"{risk}-{loss}"]) for loss in TRAINING_LOSSES)
            yield f"  {risk:<6}" + "".join(f"{cell:>15}" for cell in cells)
        for method, name in BESIDE.items():
            yield f"  {name:<36}{describe_mean(lines[method]):>15}"


def describe_mean(line: Summary) -> str:
    """Mean and standard error; a single draw has none, and a method without an answer neither."""
    if line.accuracy is None or line.standard_error is None:
        return "no answer"
    error = "?" if math.isnan(line.standard_error) else f"{line.standard_error:3.1f}"
    return f"{line.accuracy:5.1f} ± {error}"
