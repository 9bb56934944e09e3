"""Read a file of answers and say what is in it and what is wrong with it.

Counts, how columns and labels were understood, unreadable rows by line, pairs of a point with
itself, repeated questions, and contradictions: direct ones, ones through chains of similar pairs,
and cycles that two classes cannot explain. With --features also the ids that the table does not
have. Exit code 0: nothing wrong; 1: something to look at.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sdulearn.answers.checks import AnswerChecks, Contradiction, check_answers
from sdulearn.cli.pair_options import add_pair_options, read_pairs_as_told
from sdulearn.io.answers import NAMES, PairFile
from sdulearn.io.tables import read_ids

HELP = "counts, mistakes and contradictions in a file of answers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn check``."""
    parser.add_argument("pairs", type=Path, help="file of answers: .csv, .tsv, .jsonl or .parquet, gzipped or not")
    add_pair_options(parser)
    parser.add_argument("--features", type=Path, help="table that the ids must be in")
    parser.add_argument("--id", help="id column of that table (default: id, or else row numbers from 0)")
    parser.add_argument("--show", type=int, default=10, help="findings to list of each kind (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Print what was read and what is wrong."""
    pairs = read_pairs_as_told(arguments.pairs, arguments)
    print("\n".join(pairs.describe()[:3]))
    known = None if arguments.features is None else set(read_ids(arguments.features, arguments.id))
    checks = check_answers(pairs)
    findings = [*_unreadable(pairs), *_unknown(pairs, known), *describe_checks(pairs, checks)]
    for title, items in findings:
        print(f"\n{title}: {len(items):,}")
        print("\n".join(f"  {item}" for item in items[: arguments.show]))
        if len(items) > arguments.show:
            print(f"  ... and {len(items) - arguments.show:,} more (--show {len(items)})")
    if suspects := checks.suspects():
        print("\nOne wrong answer can make many contradictions; look first at")
        print("\n".join(f"  {_answer(pairs, k)} (in {times} of the first chains)" for k, times in suspects))
    print("\nNothing wrong." if not findings else "\nOf a contradiction at least one answer is wrong: ask again.")
    return 1 if findings else 0


def describe_checks(pairs: PairFile, checks: AnswerChecks) -> list[tuple[str, Sequence[str]]]:
    """Findings by kind, each as a line to read."""
    kinds: list[tuple[str, Sequence[str]]] = [
        ("Pairs of a point with itself", [_answer(pairs, k) for k in checks.self_pairs.tolist()]),
        ("Repeated questions with the same answer", [_answer(pairs, k) for k in checks.repeats.tolist()]),
        ("Questions answered both ways", [_chain(pairs, c) for c in checks.disagreements]),
        ("Dissimilar, but similar through others", [_chain(pairs, c) for c in checks.closure]),
        ("Cycles that two classes cannot explain", [_chain(pairs, c) for c in checks.odd_cycles]),
    ]
    return [(title, items) for title, items in kinds if items]


def _answer(pairs: PairFile, k: int) -> str:
    a, b = pairs.ids[k]
    return f"line {pairs.lines[k]}: {a} and {b} {NAMES[int(pairs.answers[k])]}"


def _chain(pairs: PairFile, contradiction: Contradiction) -> str:
    return "; ".join(_answer(pairs, k) for k in contradiction.answers)


def _unreadable(pairs: PairFile) -> list[tuple[str, Sequence[str]]]:
    return [("Unreadable rows", [f"line {row.line}: {row.reason}" for row in pairs.bad_rows])] if pairs.bad_rows else []


def _unknown(pairs: PairFile, known: set[str] | None) -> list[tuple[str, Sequence[str]]]:
    if known is None:
        return []
    missing = [(k, name) for k, row in enumerate(pairs.ids) for name in row if name not in known]
    items = [f"line {pairs.lines[k]}: {name}" for k, name in missing]
    return [("Ids that the table does not have", items)] if items else []
