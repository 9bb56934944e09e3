"""How much memory a step may take: where rows are cut, how many are gathered, and which systems are refused."""

from __future__ import annotations

from scipy import sparse

from sdulearn.errors import InputError
from sdulearn.types import Array, Rows

# A square matrix of so many columns takes 128 MB, and its Cholesky factor about a second.
LARGEST_SYSTEM = 4000
# The square of a mean of squares is still a number, with room for the number of rows.
LARGEST_NUMBER = 1e50
# A piece of rows fills so many numbers (2 MB), which stay in a core's own cache; but it has several
# times more rows than columns, so that its d x d sums of products are few.
PIECE_SIZE = 1 << 18
_ROWS_PER_COLUMN = 8
# Rows gathered in one place from many blocks fill so many numbers (16 MB), or so many square
# matrices, of which there are a few anyway.
_GATHERED_NUMBERS = 1 << 21
_GATHERED_SQUARES = 10


def check_system_size(n_columns: int) -> None:
    """Refuse more columns than a dense square matrix of them is good for."""
    if n_columns > LARGEST_SYSTEM:
        raise InputError(
            f"`X` has {n_columns:,} features. Rows that come in portions are summed up in square "
            f"matrices of that size, and {LARGEST_SYSTEM:,} is the limit. Fit in memory, or reduce "
            "the features first, for example with sklearn.random_projection."
        )


def check_magnitude(X: Rows) -> None:
    """Refuse numbers whose products overflow."""
    values = X.data if sparse.issparse(X) else X
    if values.size and max(float(values.max()), -float(values.min())) > LARGEST_NUMBER:
        raise InputError(
            f"`X` holds a number beyond {LARGEST_NUMBER:g}, whose powers overflow. Give the column a "
            "larger unit, or standardise the features first."
        )


def check_weight_range(weight: Array) -> None:
    """Refuse weights whose squares overflow or vanish."""
    positive = weight[weight > 0]
    if positive.size and not (positive.min() >= 1 / LARGEST_NUMBER and positive.max() <= LARGEST_NUMBER):
        raise InputError(
            f"`sample_weight` holds weights from {positive.min():g} to {positive.max():g}; they must lie "
            f"between {1 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}. Only their ratios matter: divide all by the "
            "largest."
        )


def piece_rows(n_features: int) -> int:
    """Rows of a piece."""
    return max(PIECE_SIZE // (n_features + 1), _ROWS_PER_COLUMN * n_features)


def affordable_rows(n_columns: int) -> int:
    """How many rows of that width may be gathered in one place."""
    return max(_GATHERED_NUMBERS // n_columns, _GATHERED_SQUARES * n_columns)
