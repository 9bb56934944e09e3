"""Batches of whole components of answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import CutComponentWarning, InputError, warn
from sdulearn.types import Indices


class PairBatchSampler:
    """Batches of row numbers for a DataLoader (``batch_sampler``) that keep all answers about a point together.

    Every answer and every label is in one batch of a pass. A component with more rows than a batch is cut into its
    answers, with a warning.

    Parameters
    ----------
    y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5)
        What is known about each row: answer, point, annotator, label, question.
    batch_size : int
        Maximum number of rows with answers or labels in a batch, at least 2.
    unlabeled : int, default=0
        Number of other rows in each batch, after these and beyond ``batch_size``.
    random_state : int, default=0
        Seed of the order, which differs from pass to pass.

    Examples
    --------
    >>> from sdulearn.torch import PairBatchSampler
    >>> sampler = PairBatchSampler([1, 1, -2, -2, 0, 0, 0, 3, 3], batch_size=4, unlabeled=1)
    >>> len(sampler), sorted(len(batch) for batch in sampler)
    (2, [3, 5])
    """

    def __init__(self, y: ArrayLike, batch_size: int, *, unlabeled: int = 0, random_state: int = 0) -> None:
        if batch_size < 2 or unlabeled < 0:
            raise InputError("`batch_size` must be at least 2, the rows of one answer, and `unlabeled` at least 0.")
        self.batch_size = batch_size
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_passes = 0
        graph = AnswerGraph.from_y(y)
        known = ((graph.degree > 0) | (graph.labels != 0))[graph.row_point]
        self._free = np.flatnonzero(~known)
        if unlabeled and not len(self._free):
            raise InputError("`unlabeled` needs rows without answers and labels, but `y` has none. Leave it at 0.")
        unit = graph.component[graph.row_point]
        large = np.bincount(unit[known], minlength=graph.n_components) > batch_size
        if (n_large := int(large.sum())) > 0:
            warn(
                f"{n_large} component(s) of the answers have more rows than a batch of {batch_size} and are cut into "
                "their answers, which loses what these say together. Give a larger `batch_size`.",
                CutComponentWarning,
            )
            # Both rows of an answer stay together; a row in no answer is a unit of its own.
            alone = np.arange(len(unit)) + graph.n_answers
            alone[graph.end_rows] = np.arange(graph.n_answers)[:, None]
            unit = np.where(large[unit], graph.n_components + alone, unit)
        order = np.flatnonzero(known)[np.argsort(unit[known], kind="stable")]
        self._units = np.split(order, np.flatnonzero(np.diff(unit[order])) + 1) if len(order) else []
        self._batches = self._pack()

    def _pack(self) -> list[Indices]:
        """Rows of each batch: consecutive units in random order while they fit, then unlabeled rows."""
        rng = np.random.default_rng([self.random_state, self.n_passes])
        units = [self._units[k] for k in rng.permutation(len(self._units))]
        sizes = [len(unit) for unit in units]
        filled = accumulate(sizes, lambda total, n: n if total + n > self.batch_size else total + n)
        starts = [k for k, (total, n) in enumerate(zip(filled, sizes, strict=True)) if total == n]
        batches = [np.concatenate(units[a:b]) for a, b in pairwise([*starts, len(units)])]
        free = rng.permutation(self._free)
        places = (np.arange(len(batches) * self.unlabeled) % max(len(free), 1)).reshape(len(batches), -1)
        return [np.concatenate([batch, free[place]]) for batch, place in zip(batches, places, strict=True)]

    def __iter__(self) -> Iterator[list[int]]:
        batches = self._batches
        self.n_passes += 1
        self._batches = self._pack()
        return iter([batch.tolist() for batch in batches])

    def __len__(self) -> int:
        return len(self._batches)
