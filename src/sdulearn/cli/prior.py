"""The share of the larger class from numbers of same/different answers, with its interval.

Give two counts (sdulearn prior 58 42) or a file of answers (sdulearn prior pairs.csv). The pairs
must have been drawn at random: the share of similar ones among random pairs is p^2 + (1 - p)^2.
Answers of a file may share points; their likelihood over groups of connected points allows for it.
Of a log of sdulearn ask the random questions count, not those that were chosen.
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
from sdulearn.answers import AnswerGraph, Answers, read_answers
from sdulearn.answers.records import random_ends
from sdulearn.cli.options import add_answer_options, in_options
from sdulearn.cli.screen import add_json_option, print_json, say
from sdulearn.diagnostics import Finding, check_component_ratio, shares_points
from sdulearn.errors import InputError, UndeterminedError
from sdulearn.pairs import UNSURE
from sdulearn.prior import random_of
from sdulearn.report.facts import facts_of_answers, lines, sentence
from sdulearn.types import Array, Codes, Mask

_SUSPICIOUS = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn prior``."""
    parser.add_argument(
        "source",
        nargs="+",
        metavar="COUNTS|FILE",
        help="numbers of similar and of dissimilar pairs, or one file of answers with columns id_a, id_b, label",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        help="level of the interval (default: %(default)s)",
    )
    parser.add_argument(
        "--majority",
        choices=("positive", "negative"),
        default="positive",
        help="which class is the larger; counts cannot tell (default: %(default)s)",
    )
    add_answer_options(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the estimate and its meaning."""
    counts = read_counts(arguments.source)
    level = {"majority": arguments.majority, "confidence": arguments.confidence}
    read: list[Finding] = []
    # What a test of answers that are not loose pairs found; loose pairs have a p-value.
    found: list[Finding] | None = None
    about = "pairs"
    if counts is not None:
        estimate = estimate_prior(*counts, **level)
    else:
        answers = read_answers(arguments.source[0], columns=arguments.pair_columns, words=arguments.answers)
        read = facts_of_answers(answers)
        y, weights, random_points = rows_of_answers(answers)
        estimate = estimate_prior(y=y, sample_weight=weights, random_points=random_points, **level)
        graph = AnswerGraph.from_y(y)
        counted = random_of(graph, random_points)
        if counted is not None:
            about = "answers to random questions; chosen ones do not count"
        elif shares_points(graph):
            about = f"answers about {int(np.sum(graph.degree > 0)):,} points"
        if about != "pairs":
            found = check_component_ratio(graph, None, counted)
    if arguments.json:
        print_json(as_data(estimate, loose=found is None))
        return 0
    if read:
        say("\n".join(lines(read)) + "\n")
    say(describe(estimate, about))
    for line in meaning(estimate, None if found is None else [in_options(sentence(one)) for one in found]):
        say("\n" + textwrap.fill(line, 100))
    return 0


def read_counts(source: Sequence[str]) -> tuple[float, float] | None:
    """Two numbers; None where a file is named in their place."""
    if len(source) == 2:
        return _count(source[0]), _count(source[1])
    if len(source) > 2 or (_is_number(source[0]) and not Path(source[0]).exists()):
        raise InputError(
            "Give two numbers, of similar and of dissimilar pairs (sdulearn prior 58 42), or one file "
            f"of answers (sdulearn prior pairs.csv); got {' '.join(source)!r}."
        )
    return None


def rows_of_answers(answers: Answers) -> tuple[Codes, Array, Mask | None]:
    """What is known of two rows for each answer, their weights, and which of them show random points."""
    if answers.epsilon is not None:
        raise InputError(
            f"{answers.name}: the answers were flipped at random before they were stored (epsilon "
            f"{answers.epsilon:g}), so their counts imply no prior. `sdulearn fit` allows for the flips and estimates "
            "it."
        )
    own = answers.ids[:, 0] == answers.ids[:, 1]
    used = np.flatnonzero((answers.answers != UNSURE) & (answers.weights > 0) & ~own)
    if not len(used):
        raise InputError(f"{answers.name} holds no answer 'similar' or 'dissimilar': nothing to estimate a prior from.")
    ends = np.unique(answers.ids[used].astype(str), return_inverse=True)[1].reshape(-1, 2)
    marked = random_ends(ends, None if answers.kinds is None else answers.kinds[used])
    if marked is not None and not marked.any():
        raise UndeterminedError(
            f"{answers.name} holds no random question. Chosen rows do not tell the share of a class: ask about random "
            "ones, as every fourth question of sdulearn ask does."
        )
    codes = answers.answers[used] * np.arange(1, len(used) + 1)
    y = np.column_stack([np.repeat(codes, 2), ends.ravel()])
    return y, np.repeat(answers.weights[used], 2), None if marked is None else marked.ravel()


def as_data(estimate: PriorEstimate, loose: bool = True) -> dict[str, object]:
    """All numbers; ``value`` is NaN, in JSON null, where the counts have no answer."""
    return {
        **asdict(estimate),
        "value": estimate.value if estimate.has_value else math.nan,
        "has_value": estimate.has_value,
        "noise_factor": estimate.noise_factor,
        "noise_range": estimate.noise_range,
        # Of answers that share points the counts alone say nothing.
        "p_value": estimate.p_value if loose else None,
    }


def describe(estimate: PriorEstimate, about: str = "pairs") -> str:
    """The numbers, in two lines."""
    value = f"{estimate.value:.3f}" if estimate.has_value else "no value"
    return (
        f"prior: {value}, {estimate.confidence:.0%} interval {estimate.low:.3f} to {estimate.high:.3f}\n"
        f"from {estimate.n_similar:g} similar and {estimate.n_dissimilar:g} dissimilar {about}"
    )


def meaning(estimate: PriorEstimate, found: list[str] | None = None) -> list[str]:
    """What the estimate says about the choice of a method, a paragraph each.

    ``found`` is what a test of answers that are no loose pairs said.
    """
    if not estimate.has_value:
        if found is not None:
            return [_EVEN, *found, _UNKNOWN]
        return [_TOO_FEW_SIMILAR, _explain_too_few(estimate), _UNKNOWN]
    if not estimate.n_dissimilar:
        return [_NO_DISSIMILAR]
    least, most = estimate.noise_range
    if not estimate.identified:
        return [
            "The interval reaches 1/2: the counts do not tell whether one class is larger at all. The "
            "marginal risks (su, du, sd and their mixtures) divide by p - q, which may be anything "
            f"from zero to {1 / least:.2f}: what they learn with this prior may be far off.",
            _UNKNOWN,
        ]
    larger = "positive" if estimate.value > 0.5 else "negative"
    return [
        "The interval stays clear of 1/2, so either method works: the joint one "
        "(PairLogisticRegression), which takes the prior as a hint, or a marginal risk such as sddu "
        "(SDUClassifier), which divides by p - q and so multiplies the noise of the data by "
        f"1 / (p - q) = {estimate.noise_factor:.1f}; within the interval, {least:.1f} to {most:.1f}.",
        f"Counts never tell which class is which: the larger one is taken for the {larger} one. If "
        "that may be wrong, label a few points and call orient(X, y_true) on the fitted model.",
    ]


_EVEN = "The answers put about as many points on one side as on the other: no class is seen to be the larger one."

_TOO_FEW_SIMILAR = (
    "There are no more similar than dissimilar pairs, and no prior makes that the rule: at p = 1/2 the "
    "two are equally frequent, else similar pairs are more frequent."
)

_NO_DISSIMILAR = (
    "Not one dissimilar pair: one class is rare. The interval says how rare it may be; no model can "
    "learn what a class looks like from pairs that hold (nearly) none of it. Ask about more random "
    "pairs."
)

_UNKNOWN = (
    "Use the joint method (PairLogisticRegression): it needs no prior and works at 1/2. Then label a "
    "few points and call orient(X, y_true) to name the classes. Or ask about more random pairs; "
    "'sdulearn plan' says how fast the interval shrinks."
)


def _explain_too_few(estimate: PriorEstimate) -> str:
    if estimate.p_value is not None and estimate.p_value < _SUSPICIOUS:
        return (
            f"Chance does not explain it (probability at most {estimate.p_value:.1g}): these pairs "
            "were not drawn at random, or there are more than two classes. A prior from their counts "
            "would be wrong, whatever the method."
        )
    return "By chance this happens with a prior near 1/2 or with few pairs; it is no sign of a mistake."


def _count(text: str) -> float:
    if not _is_number(text):
        raise InputError(
            f"{text!r} is not a number of pairs. Give two counts (sdulearn prior 58 42), or one file alone."
        )
    return float(text)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
