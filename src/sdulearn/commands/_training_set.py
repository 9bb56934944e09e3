"""From a table and a file of answers to the rows and pair codes that an estimator learns from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.commands._answer_checks import group_questions
from sdulearn.files import SIMILAR, PairFile
from sdulearn.pairs import stack_pairs
from sdulearn.tables import Table

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Columns beyond which rows, not columns, must stay few: the eigenvectors of the smaller side are needed.
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


def usable_questions(pairs: PairFile, table: Table, skip_bad: bool) -> Questions:
    """Answers that name two different rows of the table; a question asked again counts once, by majority."""
    ends = _row_numbers(pairs, table)
    unknown, own = np.any(ends < 0, axis=1), np.array([a == b for a, b in pairs.ids], dtype=bool)
    faults = []
    if pairs.bad_rows:
        faults.append(f"{len(pairs.bad_rows):,} unreadable rows (lines {_listed([r.line for r in pairs.bad_rows])})")
    for found, what in ((own, "pairs of a point with itself"), (unknown & ~own, "pairs with an id not in the table")):
        if found.any():
            faults.append(f"{int(found.sum()):,} {what} (lines {_listed(pairs.lines[found].tolist())})")
    if faults and not skip_bad:
        raise ValueError(
            f"{pairs.path} has {' and '.join(faults)}. See them all with: sdulearn check; or pass --skip-bad to leave "
            "them out." + _hint(table, bool(unknown.any()))
        )
    chosen, ties, repeats = _majority(
        ends, pairs, np.flatnonzero(~unknown & ~own & (pairs.answers != 0) & (pairs.weights > 0))
    )
    left_out = faults + [f"{repeats:,} repeated questions, each counted once by majority"] * (repeats > 0)
    left_out += [f"{ties:,} questions answered both ways equally often"] * (ties > 0)
    questions = Questions(ends[chosen], pairs.answers[chosen] == SIMILAR, pairs.weights[chosen], left_out)
    _check_enough(pairs, questions)
    return questions


def _row_numbers(pairs: PairFile, table: Table) -> Indices:
    """Row of every id, -1 where there is none."""
    place = {name: row for row, name in enumerate(table.ids)}
    if len(place) < len(table.ids):
        name, count = Counter(table.ids).most_common(1)[0]
        raise ValueError(f"The table's ids must tell rows apart, but {name!r} occurs {count:,} times.")
    return np.array([place.get(name, -1) for name in pairs.ids.ravel().tolist()], dtype=np.intp).reshape(-1, 2)


def _hint(table: Table, unknown: bool) -> str:
    if not unknown or table.layout.id_column is not None:
        return ""
    return f" The table has no id column, so its rows are numbered 0 to {len(table.ids) - 1}; name one with --id."


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


def _check_enough(pairs: PairFile, questions: Questions) -> None:
    n_similar, n_dissimilar = int(questions.similar.sum()), int((~questions.similar).sum())
    if min(n_similar, n_dissimilar) < 2:
        raise ValueError(
            f"{pairs.path} has {n_similar} similar and {n_dissimilar} dissimilar pairs to use; at least 2 of each are "
            "needed, and 50 of each are a start. Ask about more pairs."
        )


def training_set(X: Any, questions: Questions, max_unlabeled: int, seed: int = 0) -> TrainingSet:
    """Stack pairs and a draw of unlabeled rows of the whole table, standardised by the whole table."""
    n_rows, width = X.shape
    limit = min(max_unlabeled, _UNLABELED_WIDE) if width > _WIDE else max_unlabeled
    drawn = np.random.default_rng(seed).choice(n_rows, min(limit, n_rows), replace=False)
    rows, codes = stack_pairs(X, questions.ends, questions.similar, unlabeled=np.sort(drawn))
    mean, spread = moments(X)
    weights = None
    if (questions.weights != 1).any():
        weights = np.concatenate([np.repeat(questions.weights, 2), np.ones(len(drawn))])
    return TrainingSet(standardise(rows, mean, spread), codes, weights, mean, spread, len(drawn))


def moments(X: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; no mean where the table is sparse and must stay so."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        spread, mean = np.sqrt(np.maximum(variance, 0)), np.zeros(X.shape[1])
    else:
        mean, spread = X.mean(axis=0), X.std(axis=0)
    # A constant column: its deviation is rounding, and dividing by it would make noise of it.
    return mean, np.where(spread > 1e-10 * np.maximum(np.abs(mean), 1e-200), spread, 1.0)


def standardise(rows: Any, mean: Array, spread: Array) -> Any:
    """``(x - mean) / spread``; sparse rows are only divided."""
    if sparse.issparse(rows):
        return sparse.csr_matrix(rows @ sparse.diags_array(1 / spread))
    return (rows - mean) / spread
