"""The share of the larger class from numbers of same/different answers, with its interval and what it means.

Give two counts (sdulearn prior 58 42) or a file of answers (sdulearn prior pairs.csv). The pairs
must have been drawn at random: the share of similar ones among random pairs is p^2 + (1 - p)^2.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

from scipy.stats import binom

from sdulearn import PriorEstimate, estimate_prior
from sdulearn.cli.pair_options import add_pair_options, read_pairs_as_told
from sdulearn.errors import InputError

HELP = "the class prior from pair counts or a pair file, with its interval"

_SUSPICIOUS = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn prior``."""
    parser.add_argument(
        "source", nargs="+", metavar="COUNTS|FILE",
        help="numbers of similar and of dissimilar pairs, or one file of answers with columns id_a, id_b, label",
    )  # fmt: skip
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="level of the interval (default: %(default)s)"
    )  # fmt: skip
    parser.add_argument(
        "--majority", choices=("positive", "negative"), default="positive",
        help="which class is the larger; counts cannot tell (default: %(default)s)",
    )  # fmt: skip
    add_pair_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the estimate and its meaning."""
    n_similar, n_dissimilar = read_counts(arguments)
    options = {"majority": arguments.majority, "confidence": arguments.confidence}
    estimate = estimate_prior(n_similar, n_dissimilar, **options)
    print(describe(estimate))
    for line in meaning(estimate):
        print("\n" + textwrap.fill(line, 100))
    return 0


def read_counts(arguments: argparse.Namespace) -> tuple[float, float]:
    """Two numbers, or the counts of a pair file."""
    source: Sequence[str] = arguments.source
    if len(source) == 2:
        similar, dissimilar = (_count(text) for text in source)
        return similar, dissimilar
    if len(source) > 2 or (_is_number(source[0]) and not Path(source[0]).exists()):
        raise InputError(
            "Give two numbers, of similar and of dissimilar pairs (sdulearn prior 58 42), or one file of answers "
            f"(sdulearn prior pairs.csv); got {' '.join(source)!r}."
        )
    pairs = read_pairs_as_told(Path(source[0]), arguments)
    print("\n".join(pairs.describe()) + "\n")
    if pairs.n_similar + pairs.n_dissimilar == 0:
        raise InputError(f"{source[0]} holds no answer 'similar' or 'dissimilar': nothing to estimate a prior from.")
    return pairs.n_similar, pairs.n_dissimilar


def describe(estimate: PriorEstimate) -> str:
    """The numbers, in two lines."""
    counts = f"{estimate.n_similar:g} similar and {estimate.n_dissimilar:g} dissimilar pairs"
    interval = f"{estimate.confidence:.0%} interval {estimate.low:.3f} to {estimate.high:.3f}"
    if no_answer(estimate):
        return f"prior: no value, {interval}\nfrom {counts}"
    return f"prior: {estimate.value:.3f}, {interval}\nfrom {counts}"


def no_answer(estimate: PriorEstimate) -> bool:
    """Whether there are no more similar than dissimilar pairs: no prior makes that likely."""
    return (estimate.n_similar or 0) <= (estimate.n_dissimilar or 0)


def meaning(estimate: PriorEstimate) -> list[str]:
    """What the estimate says about the choice of a method, a paragraph each."""
    if no_answer(estimate):
        return [*_too_few_similar(estimate), _UNKNOWN]
    if not estimate.n_dissimilar:
        return [_NO_DISSIMILAR]
    gaps = sorted(abs(2 * end - 1) for end in (estimate.low, estimate.high))
    if not estimate.identified:
        return [
            "The interval reaches 1/2: the counts do not tell whether one class is larger at all. The marginal risks "
            "(su, du, sd and their mixtures) divide by p - q, which may be anything from zero to "
            f"{gaps[1]:.2f}: what they learn with this prior may be far off.",
            _UNKNOWN,
        ]
    return [
        "The interval stays clear of 1/2, so either method works: the joint one (PairLogisticRegression), which "
        "takes the prior as a hint, or a marginal risk such as sddu (SDUClassifier), which divides by p - q and so "
        f"multiplies the noise of the data by 1 / (p - q) = {_factor(abs(2 * estimate.value - 1))}; within the "
        f"interval, {_factor(gaps[1])} to {_factor(gaps[0])}.",
        "Counts never tell which class is which: the larger one is taken for the "
        f"{'positive' if estimate.value > 0.5 else 'negative'} one. If that may be wrong, label a few points and call "
        "orient(X, y_true) on the fitted model.",
    ]


_NO_DISSIMILAR = (
    "Not one dissimilar pair: one class is rare. The interval says how rare it may be; no model can learn what a class "
    "looks like from pairs that hold (nearly) none of it. Ask about more random pairs."
)

_UNKNOWN = (
    "Use the joint method (PairLogisticRegression): it needs no prior and works at 1/2. Then label a few points and "
    "call orient(X, y_true) to settle which class is which. Or ask about more random pairs; 'sdulearn plan' says how "
    "fast the interval shrinks."
)


def _too_few_similar(estimate: PriorEstimate) -> list[str]:
    """At p = 1/2 half of all random pairs are similar, at any other p more: fewer is chance or not random."""
    n_similar, n_dissimilar = round(estimate.n_similar or 0), round(estimate.n_dissimilar or 0)
    chance = float(binom.cdf(n_similar, n_similar + n_dissimilar, 0.5))
    said = [
        "There are no more similar than dissimilar pairs, and no prior makes that the rule: at p = 1/2 the two are "
        "equally frequent, else similar pairs are more frequent."
    ]
    if chance < _SUSPICIOUS:
        said.append(
            f"Chance does not explain it (probability at most {chance:.1g}): these pairs were not drawn at random, or "
            "there are more than two classes. A prior from their counts would be wrong, whatever the method."
        )
    else:
        said.append("By chance this happens with a prior near 1/2 or with few pairs; it is no sign of a mistake.")
    return said


def _factor(gap: float) -> str:
    return f"{1 / gap:.1f}" if gap > 0 else "infinity"


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
