"""Records grouped for comparison: means, standard errors and t-tests, in per cent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.stats import t as student

from sdulearn.experiments.protocol import Assumed
from sdulearn.experiments.results import Record
from sdulearn.types import Array

Values: TypeAlias = Mapping[int, float]
"""Accuracy in per cent by trial."""

LEVEL = 0.05


class Setting(NamedTuple):
    """All that a cell has besides method and trial."""

    dataset: str
    n_pairs: int
    n_unlabeled: int
    prior: float
    flip: float
    assumed: Assumed


@dataclass(frozen=True)
class Mean:
    """Mean of some trials with its standard error, in per cent."""

    value: float
    error: float
    trials: int


class Measurements:
    """Accuracies of one protocol by setting, method and trial.

    Parameters
    ----------
    records : iterable of dict
        Lines of results.
    quantity : {"accuracy", "matched"}, default="accuracy"
        "matched" counts the better of the two namings of the classes, for every method.
    """

    def __init__(self, records: Iterable[Record], quantity: str = "accuracy") -> None:
        self._values: dict[Setting, dict[str, dict[int, float]]] = {}
        self.seconds: dict[tuple[str, str, int], list[float]] = {}
        self.failures: dict[tuple[Setting, str], int] = {}
        for record in records:
            setting = Setting(*(record[name] for name in Setting._fields))
            method = record["method"]
            if record["error"] is not None:
                self.failures[setting, method] = self.failures.get((setting, method), 0) + 1
                continue
            of_setting = self._values.setdefault(setting, {})
            of_setting.setdefault(method, {})[record["trial"]] = 100 * record[quantity]
            seconds = self.seconds.setdefault((method, setting.dataset, setting.n_pairs), [])
            seconds.append(record["seconds"])

    def settings(self, dataset: str | None = None) -> list[Setting]:
        """The settings measured, or those of one data set."""
        return sorted(s for s in self._values if dataset in (None, s.dataset))

    def datasets(self) -> list[str]:
        """The data sets measured."""
        return sorted({s.dataset for s in self._values})

    def methods(self, setting: Setting) -> dict[str, dict[int, float]]:
        """Accuracies of every method in a setting."""
        return self._values.get(setting, {})

    def tried(self, setting: Setting) -> list[str]:
        """Names of the methods in a setting, with an answer or without."""
        failed = {method for where, method in self.failures if where == setting}
        return sorted({*self.methods(setting), *failed})

    def values(self, setting: Setting, method: str) -> dict[int, float]:
        """Accuracies of one method in a setting; empty where it was not measured."""
        return self.methods(setting).get(method, {})


def mean_of(values: Values) -> Mean:
    """Mean and standard error."""
    numbers = _numbers(values)
    spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else math.nan
    return Mean(float(np.mean(numbers)), spread / math.sqrt(len(numbers)), len(numbers))


def not_worse_than_best(values: Mapping[str, Values]) -> set[str]:
    """The paper's bold face: the best, and all that a one-sided t-test at 5% cannot tell from it."""
    means = {method: mean_of(v) for method, v in values.items() if v}
    if not means:
        return set()
    best = max(means, key=lambda method: means[method].value)
    return {m for m in means if m == best or not is_above(values[best], values[m])}


def is_above(first: Values, second: Values) -> bool:
    """Whether the first mean is above the second by a one-sided t-test of Welch at 5%."""
    a = mean_of(first)
    b = mean_of(second)
    gap = a.value - b.value
    variance = _square(a.error) + _square(b.error)
    if variance == 0 or min(a.trials, b.trials) < 2:
        return gap > 0 and min(a.trials, b.trials) > 1
    spread = sum(_square(_square(m.error)) / (m.trials - 1) for m in (a, b))
    return _tail(gap / math.sqrt(variance), variance**2 / spread) < LEVEL


def paired_outcome(first: Values, second: Values) -> int:
    """+1 where the first wins, -1 where it loses, else 0: a one-sided t-test at 5% on common trials."""
    trials = sorted(first.keys() & second.keys())
    gaps = np.array([first[trial] - second[trial] for trial in trials])
    if len(gaps) < 2:
        return 0
    mean = float(gaps.mean())
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    if error > 0 and _tail(abs(mean) / error, len(gaps) - 1) >= LEVEL:
        return 0
    return int(np.sign(mean))


def _tail(statistic: float, freedom: float) -> float:
    return float(student.sf(statistic, freedom))


def _square(x: float) -> float:
    return 0.0 if math.isnan(x) else x * x


def _numbers(values: Values) -> Array:
    return np.array([values[trial] for trial in sorted(values)])
