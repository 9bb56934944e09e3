"""The share of the larger class, estimated from same/different answers, with its interval.

Give two counts (sdulearn prior 58 42) or a file of answers (sdulearn prior pairs.csv). The pairs
must have been drawn at random: the share of similar ones among random pairs is p^2 + (1 - p)^2.
Answers in a file may share points; the estimate allows for it. Of a log of sdulearn ask only the
random questions count, not the chosen ones.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from sdulearn import PriorEstimate, estimate_prior
from sdulearn.answers import AnswerGraph, Answers
from sdulearn.answers.checks import known_answers
from sdulearn.answers.records import random_ends
from sdulearn.cli import options as cli
from sdulearn.diagnostics import Finding, check_answers_ratio
from sdulearn.errors import InputError, UndeterminedError
from sdulearn.prior import random_of
from sdulearn.report.facts import ITEMS_SHOWN, facts_of_answers, lines, sentence
from sdulearn.types import Array, Codes, Mask

_SUSPICIOUS = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn prior``."""
    add = parser.add_argument
    text = "number of similar and of dissimilar pairs, or one file of answers with columns id_a, id_b, label"
    add("source", nargs="+", metavar="COUNTS|FILE", help=text)
    add("--confidence", type=float, default=0.95, help="level of the interval (default: %(default)s)")
    text = "which class is larger; the counts do not show it (default: %(default)s)"
    add("--majority", choices=("positive", "negative"), default="positive", help=text)
    cli.add_answer_options(parser)
    cli.add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the estimate and what it means."""
    counts = read_counts(arguments.source)
    level = {"majority": arguments.majority, "confidence": arguments.confidence}
    read: list[Finding] = []
    # The test of answers that share points; loose pairs have a p-value instead.
    tested: list[Finding] | None = None
    about = "pairs"
    if counts is not None:
        estimate = estimate_prior(*counts, **level)
    else:
        answers = cli.answers_of(arguments, arguments.source[0])
        read = facts_of_answers(answers)
        y, weights, random_points = rows_of_answers(answers)
        estimate = estimate_prior(y=y, sample_weight=weights, random_points=random_points, **level)
        graph = AnswerGraph.from_y(y)
        counted = random_of(graph, random_points)
        if counted is not None:
            about = "answers to random questions; chosen ones do not count"
        elif graph.degree.max() > 1:
            about = f"answers about {int(np.sum(graph.degree > 0)):,} points"
        if about != "pairs":
            tested = check_answers_ratio(graph, None, counted)
    if arguments.json:
        numbers = {name: getattr(estimate, name) for name in ("has_value", "noise_factor", "noise_range")}
        # The p-value is of counts of loose pairs.
        numbers["p_value"] = estimate.p_value if tested is None else None
        cli.print_json({**asdict(estimate), **numbers, "value": estimate.value if estimate.has_value else None})
        return 0
    if read:
        cli.say("\n".join(lines(read, ITEMS_SHOWN)) + "\n")
    cli.say(describe(estimate, about))
    for line in meaning(estimate, None if tested is None else [cli.in_options(sentence(one)) for one in tested]):
        cli.say("\n" + textwrap.fill(line, 100))
    return 0


def read_counts(source: Sequence[str]) -> tuple[float, float] | None:
    """Return two numbers, or None if a file is named instead."""
    try:
        numbers = [float(text) for text in source]
    except ValueError:
        numbers = []
    if len(numbers) == 2 and all(map(math.isfinite, numbers)):
        return numbers[0], numbers[1]
    if len(source) == 1 and (not numbers or Path(source[0]).exists()):
        return None
    raise InputError(
        "Give two numbers, of similar and dissimilar pairs (sdulearn prior 58 42), or one file of "
        f"answers (sdulearn prior pairs.csv); got {' '.join(source)!r}."
    )


def rows_of_answers(answers: Answers) -> tuple[Codes, Array, Mask | None]:
    """Return y with two rows per answer, their weights, and which rows are random points."""
    if answers.epsilon is not None:
        raise InputError(
            f"{answers.name}: the answers were flipped at random before they were stored (epsilon "
            f"{answers.epsilon:g}), so their counts imply no prior. Use `sdulearn fit`, which "
            "allows for the flips."
        )
    graph, used = known_answers(answers)
    if not len(used):
        raise InputError(f"{answers.name} holds no answer 'similar' or 'dissimilar': nothing to estimate a prior from.")
    marked = random_ends(answers, graph.ends, used)
    if marked is not None and not marked.any():
        raise UndeterminedError(
            f"{answers.name} holds no random question, and chosen rows do not represent the others."
            " Ask about random rows, as every fourth question of sdulearn ask does."
        )
    return graph.y, np.repeat(graph.weights, 2), None if marked is None else marked.ravel()


def describe(estimate: PriorEstimate, about: str = "pairs") -> str:
    """Format the estimate, in two lines."""
    value = f"{estimate.value:.3f}" if estimate.has_value else "no value"
    return (
        f"prior: {value}, {estimate.confidence:.0%} interval {estimate.low:.3f} to {estimate.high:.3f}\n"
        f"from {estimate.n_similar:g} similar and {estimate.n_dissimilar:g} dissimilar {about}"
    )


def meaning(estimate: PriorEstimate, tested: list[str] | None = None) -> list[str]:
    """Explain what the estimate, and the test of connected answers, mean for the method."""
    if not estimate.has_value:
        if tested is not None:
            return [_EVEN, *tested, _UNKNOWN]
        chance = estimate.p_value is None or estimate.p_value >= _SUSPICIOUS
        return [_TOO_FEW_SIMILAR + (_CHANCE if chance else _NO_CHANCE.format(estimate.p_value)), _UNKNOWN]
    if not estimate.n_dissimilar:
        return [_ONE_CLASS]
    least, most = estimate.noise_range
    if not estimate.identified:
        return [_INCLUDES_HALF.format(1 / least), _UNKNOWN]
    larger = "positive" if estimate.value > 0.5 else "negative"
    return [_EITHER.format(estimate.noise_factor, least, most), _NAMES.format(larger)]


_EVEN = "The answers put about as many points in one class as in the other: neither class is shown to be larger."
_TOO_FEW_SIMILAR = "There are no more similar than dissimilar pairs; with any prior but 1/2 there should be. "
_CHANCE = "With few pairs this happens by chance; it does not indicate a mistake."
_NO_CHANCE = (
    "Chance does not explain it (probability at most {:.1g}): the pairs were not drawn at random, "
    "or there are more than two classes, so their counts imply no prior."
)
_UNKNOWN = (
    "Use the joint method (PairLogisticRegression), which needs no prior, and label a few points "
    "to name the classes: orient(X, y_true). Or ask about more random pairs; see 'sdulearn plan'."
)
_ONE_CLASS = (
    "There is no dissimilar pair: one class is rare, and the interval shows how rare it may be. A "
    "model cannot learn a class that is in no pair. Ask about more random pairs."
)
_INCLUDES_HALF = (
    "The interval includes 1/2: neither class is shown to be larger. The marginal risks (su, du, "
    "sd and mixtures) divide by p - q, at most {:.2f} here: their result may be far off."
)
_EITHER = (
    "The interval excludes 1/2, so either method works: the joint one (PairLogisticRegression), or"
    " a marginal risk such as sddu (SDUClassifier). A marginal risk divides by p - q and so "
    "multiplies the noise of the data by {:.1f}; within the interval, {:.1f} to {:.1f}."
)
_NAMES = (
    "Counts do not show which class is which: the larger one is taken as the {} one. If that may "
    "be wrong, label a few points and call orient(X, y_true) on the fitted model."
)
