"""The options by which every command reads a pair file."""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn.io.answers import PairFile, read_pair_file

_ROLES = ("id_a", "id_b", "label", "weight", "annotator")


def add_pair_options(parser: argparse._ActionsContainer) -> None:
    """``--pair-columns`` and ``--answers``."""
    parser.add_argument(
        "--pair-columns",
        type=_columns,
        metavar="A,B,LABEL[,WEIGHT[,ANNOTATOR]]",
        help="columns of the pair file, where their names are unusual",
    )
    parser.add_argument(
        "--answers",
        type=_labels,
        metavar="TEXT=MEANING,...",
        help="what unusual labels mean, for example yes=similar,no=dissimilar,maybe=unsure",
    )


def read_pairs_as_told(path: Path, arguments: argparse.Namespace) -> PairFile:
    """The pair file, read with the options above."""
    return read_pair_file(path, columns=arguments.pair_columns, labels=arguments.answers)


def _columns(text: str) -> dict[str, str]:
    names = [name.strip() for name in text.split(",")]
    if not 3 <= len(names) <= len(_ROLES) or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} does not name three to five columns, with commas between them")
    return dict(zip(_ROLES, names, strict=False))


def _labels(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(spelling and mark and meaning for spelling, mark, meaning in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form yes=similar,no=dissimilar")
    return {spelling.strip(): meaning.strip() for spelling, _, meaning in parts}
