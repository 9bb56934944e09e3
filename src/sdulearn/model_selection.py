"""Cross-validation that never tears a pair apart, and a score of held-out answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sdulearn.errors import InputError
from sdulearn.pairs import read_pairs
from sdulearn.types import Array


class PairKFold:
    """K folds with both ends of a pair in one fold; similar, dissimilar and unlabeled each spread over all folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether pairs and unlabeled rows are dealt out in random order.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle; give an int for the same folds every time.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import PairKFold
    >>> y = np.array([1, 1, 2, 2, -3, -3, -4, -4, 0, 0])
    >>> for train, test in PairKFold(2, shuffle=False).split(y, y):
    ...     print(y[test])
    [ 1  1 -3 -3  0]
    [ 2  2 -4 -4  0]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None) -> None:
        if not (isinstance(n_splits, int | np.integer) and n_splits >= 2):
            raise InputError(f"n_splits must be an integer of 2 or more, got {n_splits!r}.")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"PairKFold({self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield row numbers of training and test part, in ascending order."""
        fold = self.folds(y)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def folds(self, y: Any) -> NDArray[np.intp]:
        """The fold of every row."""
        pairs = read_pairs(y)
        rng = check_random_state(self.random_state)
        fold = np.empty(2 * len(pairs.ends) + len(pairs.unlabeled), dtype=np.intp)
        for name, members in (
            ("similar", pairs.ends[pairs.similar]),
            ("dissimilar", pairs.ends[~pairs.similar]),
        ):
            if 0 < len(members) < self.n_splits:
                raise InputError(
                    f"{self.n_splits} folds need at least {self.n_splits} {name} pairs, but there are "
                    f"{len(members)}. Lower the number of folds or add pairs."
                )
            fold[members] = self._deal(len(members), rng)[:, None]
        fold[pairs.unlabeled] = self._deal(len(pairs.unlabeled), rng)
        return fold

    def _deal(self, count: int, rng: np.random.RandomState) -> NDArray[np.intp]:
        dealt = np.arange(count) % self.n_splits
        return rng.permutation(dealt) if self.shuffle else dealt


def positive_grid(name: str, values: Sequence[float]) -> list[float]:
    """A grid of penalties as floats, or a ValueError."""
    grid = [float(value) for value in values]
    if not grid or min(grid) <= 0:
        raise InputError(f"{name} must hold at least one number, all greater than zero; got {values!r}.")
    return grid


def grid_results(
    alphas: list[float], gammas: list[Any], scores: Array, fit_time: Array, score_time: Array
) -> dict[str, Any]:
    """The table of GridSearchCV, settings in the order of ``ParameterGrid``: alpha, then gamma."""
    by_split = scores.reshape(len(scores), -1)
    mean = by_split.mean(axis=0)
    settings = [(alpha, gamma) for alpha in alphas for gamma in gammas]
    params = [{"alpha": a} if g is None else {"alpha": a, "gamma": float(g)} for a, g in settings]
    results: dict[str, Any] = {}
    for name, seconds in (("fit", fit_time), ("score", score_time)):
        results[f"mean_{name}_time"] = np.full(len(params), seconds.mean())
        results[f"std_{name}_time"] = np.full(len(params), seconds.std())
    for name in params[0]:
        results[f"param_{name}"] = np.array([setting[name] for setting in params])
    results["params"] = params
    for k, split in enumerate(by_split):
        results[f"split{k}_test_score"] = split
    results["mean_test_score"] = mean
    results["std_test_score"] = by_split.std(axis=0)
    # Rounded, so that settings with equal answers tie instead of being ranked by the last bit.
    results["rank_test_score"] = np.array([1 + np.sum(mean.round(10) > m) for m in mean.round(10)], dtype=np.int32)
    return results
