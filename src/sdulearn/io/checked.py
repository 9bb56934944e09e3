"""Values from a stranger's model file, each checked for type and size before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.error_rates import ErrorRate, ErrorRates
from sdulearn.prior import PriorEstimate
from sdulearn.types import Array


def checked_text(value: object) -> str:
    """A text that can be printed."""
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    value.encode()  # a lone surrogate, which JSON can spell, could not be printed
    return value


def checked_list(value: object) -> list[Any]:
    """A list of anything."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def checked_finite(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("expected a finite number")
    return float(value)


def checked_share(value: object) -> float:
    """A number from 0 to 1."""
    share = checked_finite(value)
    if not 0 <= share <= 1:
        raise ValueError("a share does not lie between 0 and 1")
    return share


def checked_whole(value: object, low: int, high: int) -> int:
    """A whole number within limits."""
    if type(value) is not int or not low <= value <= high:
        raise TypeError(f"expected a whole number from {low} to {high}")
    return value


def checked_interval(value: object) -> tuple[int, int]:
    """Two numbers of classes, the smaller first."""
    low, high = (checked_whole(end, 2, 2**16) for end in checked_list(value))
    if low > high:
        raise ValueError("an interval ends before it begins")
    return low, high


def checked_numbers(array: NDArray[Any]) -> Array:
    """An array of finite floats."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError("numbers are missing or infinite")
    return array


def checked_prior(prior: Mapping[str, Any]) -> PriorEstimate:
    """A prior with its interval."""
    if type(prior["identified"]) is not bool:
        raise TypeError("expected true or false")
    counts = {name: prior.get(name) for name in ("n_similar", "n_dissimilar", "confidence", "n_effective")}
    return PriorEstimate(
        value=checked_share(prior["value"]),
        low=checked_share(prior["low"]),
        high=checked_share(prior["high"]),
        identified=prior["identified"],
        **{name: None if value is None else checked_finite(value) for name, value in counts.items()},
    )


def checked_error_rates(rates: Mapping[str, Any]) -> ErrorRates:
    """Error rates with their intervals."""
    found = []
    for one in checked_list(rates["annotators"]):
        if type(one["identified"]) is not bool:
            raise TypeError("expected true or false")
        found.append(
            ErrorRate(
                annotator=checked_whole(one["annotator"], 0, 2**62),
                rate=checked_share(one["rate"]),
                low=checked_share(one["low"]),
                high=checked_share(one["high"]),
                identified=one["identified"],
                n_answers=checked_whole(one["n_answers"], 0, 2**62),
            )
        )
    return ErrorRates(tuple(found))
