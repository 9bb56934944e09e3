"""Rows as trees take them: numbers, NaN where a value is missing, and whole numbers for categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sdulearn.errors import InputError
from sdulearn.io.typed import read
from sdulearn.types import Array, Frame, Indices, MatrixLike, Rows

Categories = dict[int, list[Any]]
"""Values of each categorical column, by its number; a value is coded by its place."""

_CATEGORY_TYPES = ("category", "Categorical", "Enum", "str", "String", "object", "large_string")


def find_categories(X: MatrixLike, categorical: str | ArrayLike | None) -> Categories:
    """The values of each categorical column."""
    if categorical is None or sparse.issparse(X):
        return {}
    if isinstance(categorical, str):
        places = _by_type(X)
    else:
        places = _places(X, np.atleast_1d(np.asarray(categorical, dtype=object)).tolist())
    return {place: _values(_column(X, place)) for place in places}


def encode(X: MatrixLike, categories: Categories) -> Rows:
    """Rows as a float matrix; a value that is no known category is missing."""
    if not is_frame(X):
        if not categories:
            return X
        columns = list(np.asarray(X, dtype=object).T)
    else:
        columns = [_column(X, place) for place in range(len(X.columns))]
    coded = [
        _codes(column, categories[place]) if place in categories else _numbers(column, place)
        for place, column in enumerate(columns)
    ]
    return np.column_stack(coded)


def checked_categories(found: dict[str, list[Any]], n_features: int) -> Categories:
    """Categories from an untrusted model file."""
    categories: Categories = {}
    for place, values in found.items():
        column = int(place)
        plain = [_plain(value) for value in read(list[Any], values)]
        if not 0 <= column < n_features or None in plain or len(set(plain)) < len(plain):
            raise InputError("the categories of a column are not what a model has")
        categories[column] = plain
    return categories


def is_frame(X: MatrixLike) -> bool:
    """Whether rows have named columns."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def _by_type(X: MatrixLike) -> list[int]:
    if not is_frame(X):
        return []
    types = [str(X[name].dtype) for name in X.columns]
    return [place for place, dtype in enumerate(types) if dtype.startswith(_CATEGORY_TYPES)]


def _places(X: MatrixLike, given: Sequence[Any]) -> list[int]:
    names = [str(name) for name in X.columns] if is_frame(X) else []
    places = [names.index(item) if item in names else item for item in given]
    width = len(names) or np.shape(X)[1]
    if wrong := [item for item in places if not (isinstance(item, int) and 0 <= item < width)]:
        raise InputError(
            f"`categorical_features` names {wrong[0]!r}, which is no column of `X`. Give names or numbers of columns."
        )
    return sorted(places)


def _column(X: MatrixLike, place: int) -> NDArray[Any]:
    """A column as an array; None where a value is missing."""
    if not is_frame(X):
        return np.asarray(X, dtype=object)[:, place]
    column = X[X.columns[place]]
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values
    missing = np.asarray(_missing(column), dtype=bool)
    values = values.astype(object)
    values[missing] = None
    return values


def _missing(column: Frame) -> ArrayLike:
    return column.isna() if hasattr(column, "isna") else column.is_null()


def _values(column: NDArray[Any]) -> list[Any]:
    """Different values in order; numbers before texts."""
    present = {_plain(value) for value in column.tolist()}
    return sorted((value for value in present if value is not None), key=lambda value: (isinstance(value, str), value))


def _plain(value: Any) -> Any:
    """A value as JSON has it; None for a missing one."""
    if value is None or value != value:
        return None
    return value if isinstance(value, str) else float(value)


def _codes(column: NDArray[Any], values: list[Any]) -> Array:
    code = {value: float(place) for place, value in enumerate(values)}
    return np.array([code.get(_plain(value), np.nan) for value in column.tolist()])


def _numbers(column: NDArray[Any], place: int) -> Array:
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"Column {place} of `X` holds texts. Name it in `categorical_features`, or give it a categorical type."
        ) from None


def one_hot(codes: Array, n_values: int) -> Array:
    """One column for each value; zeros where the value is missing."""
    return (codes[:, None] == np.arange(n_values)).astype(np.float64)


def take(X: Rows, rows: Indices) -> Rows:
    """Rows of a matrix, or all of it where these are all in order."""
    if len(rows) == X.shape[0] and (rows == np.arange(len(rows))).all():
        return X
    return X[rows]
