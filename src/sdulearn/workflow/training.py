"""From a table and a file of answers to the rows and pair codes that an estimator learns from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.answers.checks import group_questions
from sdulearn.errors import InputError
from sdulearn.io.answers import PairFile
from sdulearn.pairs import SIMILAR, stack_pairs
from sdulearn.types import Array, Indices

# Columns beyond which rows, not columns, must stay few: the eigenvectors of the smaller side are
# needed.
_WIDE = 3000
_UNLABELED_WIDE = 1000
_LINES_SHOWN = 5


@dataclass(frozen=True)
class Questions:
    """Usable answers by row number, one for each question."""

    ends: Indices
    similar: NDArray[np.bool_]
    weights: Array
    left_out: list[str]


@dataclass(frozen=True)
class TrainingSet:
    """Standardised rows with pair codes, and the standardisation."""

    rows: Any
    codes: NDArray[np.int64]
    weights: Array | None
    mean: Array
    spread: Array
    n_unlabeled: int


def usable_questions(pairs: PairFile, place: Mapping[str, int], skip_bad: bool, hint: str = "") -> Questions:
    """Answers that name two different rows; a question asked again counts once, by majority.

    ``place`` gives the row of an id; ``hint`` says more where ids are unknown.
    """
    ends = np.array([place.get(name, -1) for name in pairs.ids.ravel().tolist()], dtype=np.intp).reshape(-1, 2)
    unknown, own = np.any(ends < 0, axis=1), np.array([a == b for a, b in pairs.ids], dtype=bool)
    faults = []
    if pairs.bad_rows:
        faults.append(f"{len(pairs.bad_rows):,} unreadable rows (lines {_listed([r.line for r in pairs.bad_rows])})")
    for found, what in ((own, "pairs of a point with itself"), (unknown & ~own, "pairs with an id not in the table")):
        if found.any():
            faults.append(f"{int(found.sum()):,} {what} (lines {_listed(pairs.lines[found].tolist())})")
    if faults and not skip_bad:
        raise InputError(
            f"{pairs.path} has {' and '.join(faults)}. See them all with: sdulearn check; or pass --skip-bad to leave "
            "them out." + hint * bool(unknown.any())
        )
    chosen, ties, repeats = _majority(
        ends, pairs, np.flatnonzero(~unknown & ~own & (pairs.answers != 0) & (pairs.weights > 0))
    )
    left_out = faults + [f"{repeats:,} repeated questions, each counted once by majority"] * (repeats > 0)
    left_out += [f"{ties:,} questions answered both ways equally often"] * (ties > 0)
    questions = Questions(ends[chosen], pairs.answers[chosen] == SIMILAR, pairs.weights[chosen], left_out)
    check_enough(pairs.path, questions)
    return questions


def rows_of_ids(ids: Sequence[str]) -> dict[str, int]:
    """The row of every id; each must tell its row apart."""
    place = {name: row for row, name in enumerate(ids)}
    if len(place) < len(ids):
        refuse_repeated(*Counter(ids).most_common(1)[0])
    return place


def refuse_repeated(name: str, count: int) -> None:
    """Raise for an id that is on several rows."""
    raise InputError(f"The table's ids must tell rows apart, but {name!r} occurs {count:,} times.")


def numbering_hint(id_column: str | None, n_rows: int) -> str:
    """What to know about ids where a table has none of its own."""
    if id_column is not None:
        return ""
    return f" The table has no id column, so its rows are numbered 0 to {n_rows - 1}; name one with --id."


def _listed(lines: list[int]) -> str:
    return ", ".join(map(str, lines[:_LINES_SHOWN])) + (", ..." if len(lines) > _LINES_SHOWN else "")


def _majority(ends: Indices, pairs: PairFile, usable: Indices) -> tuple[Indices, int, int]:
    """One answer for each question: the weightier one; none where both weigh the same."""
    chosen, ties, repeats = [], 0, 0
    for asked in group_questions(ends, usable.tolist()).values():
        vote = float(pairs.answers[asked] @ pairs.weights[asked])
        repeats += len(asked) > 1
        if vote:
            chosen.append(next(k for k in asked if pairs.answers[k] * vote > 0))
        else:
            ties += 1
    return np.array(chosen, dtype=np.intp), ties, repeats - ties


def check_enough(path: str, questions: Questions) -> None:
    """At least two pairs of each kind."""
    n_similar, n_dissimilar = int(questions.similar.sum()), int((~questions.similar).sum())
    if min(n_similar, n_dissimilar) < 2:
        raise InputError(
            f"{path} has {n_similar} similar and {n_dissimilar} dissimilar pairs to use; at least 2 of each are "
            "needed, and 50 of each are a start. Ask about more pairs."
        )


def drawn_rows(n_rows: int, width: int, max_unlabeled: int, seed: int = 0) -> Indices:
    """Numbers of the rows that serve as unlabeled, sorted."""
    limit = most_unlabeled(width, max_unlabeled)
    if limit >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, limit, replace=False))


def most_unlabeled(width: int, max_unlabeled: int) -> int:
    """As many as asked for, and no more than a wide table bears."""
    return min(max_unlabeled, _UNLABELED_WIDE) if width > _WIDE else max_unlabeled


def training_set(X: Any, questions: Questions, unlabeled: Indices, mean: Array, spread: Array) -> TrainingSet:
    """Stack pairs and unlabeled rows, standardised by the mean and spread of the whole table."""
    rows, codes = stack_pairs(X, questions.ends, questions.similar, unlabeled=unlabeled)
    weights = None
    if (questions.weights != 1).any():
        weights = np.concatenate([np.repeat(questions.weights, 2), np.ones(len(unlabeled))])
    return TrainingSet(standardise(rows, mean, spread), codes, weights, mean, spread, len(unlabeled))


def moments(X: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; no mean where the table is sparse and must stay so."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        spread, mean = np.sqrt(np.maximum(variance, 0)), np.zeros(X.shape[1])
    else:
        mean, spread = X.mean(axis=0), X.std(axis=0)
    return mean, usable_spread(mean, spread)


def usable_spread(mean: Array, spread: Array) -> Array:
    """1 for a constant column: its deviation is rounding, and dividing by it would make noise of it."""
    return np.where(spread > 1e-10 * np.maximum(np.abs(mean), 1e-200), spread, 1.0)


def standardise(rows: Any, mean: Array, spread: Array) -> Any:
    """``(x - mean) / spread``; sparse rows are only divided."""
    if sparse.issparse(rows):
        return sparse.csr_matrix(rows @ sparse.diags_array(1 / spread))
    return (rows - mean) / spread
