"""Batches of whole components of answers, and distortions that keep the class of a row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import CutComponentWarning, InputError, warn
from sdulearn.torch.loss import Tensor, torch
from sdulearn.types import Indices


class PairBatchSampler:
    """Batches of row numbers for a DataLoader that keep all answers about a point together.

    Give it as ``batch_sampler``. Every answer and every label is in one batch of a pass; rows in no
    answer only if ``unlabeled`` asks for them. A component with more rows than a batch is cut into
    its answers, with a warning.

    Parameters
    ----------
    y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5)
        What is known of each row: answer, point, annotator, label.
    batch_size : int
        The most rows of answers and labels in a batch, at least 2.
    unlabeled : int, default=0
        Number of rows without answers and labels in each batch, after the others and beyond
        ``batch_size``.
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
            raise InputError("`unlabeled` asks for rows of which nothing is known, but `y` has none. Leave it at 0.")
        unit = np.where(known, graph.component[graph.row_point], -1)
        large = np.bincount(unit[known], minlength=graph.n_components) > batch_size
        if (n_large := int(large.sum())) > 0:
            warn(
                f"{n_large} component(s) of the answers have more rows than a batch of {batch_size} and are cut into "
                "their answers: what these say together is lost. Give a larger `batch_size`.",
                CutComponentWarning,
            )
            cut = known & large[unit]
            # Both rows of an answer stay together; a row in no answer is a unit of its own.
            alone = np.arange(len(unit)) + graph.n_answers
            alone[graph.end_rows] = np.arange(graph.n_answers)[:, None]
            unit = np.where(cut, graph.n_components + alone, unit)
        self._units = by_unit(np.flatnonzero(known), unit)
        self._batches = self._pack()

    def _pack(self) -> list[Indices]:
        """Rows of each batch, with units in random order."""
        rng = np.random.default_rng([self.random_state, self.n_passes])
        units = [self._units[k] for k in rng.permutation(len(self._units))]
        free = rng.permutation(self._free)
        batches = pack(units, self.batch_size)
        places = (np.arange(len(batches) * self.unlabeled) % max(len(free), 1)).reshape(len(batches), -1)
        return [np.concatenate([batch, free[place]]) for batch, place in zip(batches, places, strict=True)]

    def __iter__(self) -> Iterator[list[int]]:
        batches = self._batches
        self.n_passes += 1
        self._batches = self._pack()
        return iter([batch.tolist() for batch in batches])

    def __len__(self) -> int:
        return len(self._batches)


def by_unit(rows: Indices, unit: Indices) -> list[Indices]:
    """Group rows by the unit of every row."""
    order = rows[np.argsort(unit[rows], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(unit[order])) + 1) if len(order) else []


def pack(units: list[Indices], most: int) -> list[Indices]:
    """Join consecutive units to batches of at most so many rows."""
    sizes = [len(unit) for unit in units]
    filled = accumulate(sizes, lambda total, n: n if total + n > most else total + n)
    starts = [k for k, (total, n) in enumerate(zip(filled, sizes, strict=True)) if total == n]
    return [np.concatenate(units[a:b]) for a, b in pairwise([*starts, len(units)])]


def distort_images(
    images: Tensor,
    generator: Tensor = None,
    *,
    rotation: float = 25.0,
    shift: float = 0.15,
    scale: float = 0.2,
    shear: float = 0.25,
    erase: float = 0.4,
    noise: float = 0.1,
) -> Tensor:
    """Rotate, shift, scale, shear, partly erase and add noise to each image at random, on its device.

    Parameters
    ----------
    images : tensor of shape (n_images, n_channels, height, width)
        The images, surrounded by zeros.
    generator : torch.Generator, optional
        Source of random numbers, on the same device.
    rotation, shift, scale, shear : float
        Largest rotation (degrees), shift (share of the size), scaling (share of the size, of each
        side independently) and shear (sideways, share of the height).
    erase : float, default=0.4
        Longest side of the patch that is set to 0, as a share of the image's.
    noise : float, default=0.1
        Standard deviation of the noise, in units of that of all pixels.

    Returns
    -------
    tensor of the same shape
        The distorted images.

    Examples
    --------
    >>> import torch
    >>> from sdulearn.torch import distort_images
    >>> images = torch.rand(5, 1, 28, 28)
    >>> distort_images(images).shape
    torch.Size([5, 1, 28, 28])
    """
    n, _, height, width = images.shape
    size = {"generator": generator, "device": images.device, "dtype": images.dtype}

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, **size) - 1

    angle = uniform(n) * np.deg2rad(rotation)
    factor = 1 + scale * uniform(2, n)
    rotated = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).reshape(n, 2, 2)
    slant = torch.stack([torch.ones_like(angle), shear * uniform(n), 0 * angle, torch.ones_like(angle)], -1)
    sheared = rotated @ slant.reshape(n, 2, 2)
    matrix = torch.cat([sheared * factor.T[:, None, :], 2 * shift * uniform(n, 2, 1)], -1)
    grid = torch.nn.functional.affine_grid(matrix, list(images.shape), align_corners=False)
    moved = torch.nn.functional.grid_sample(images, grid, align_corners=False)
    half = erase / 2 * torch.rand(2, n, 1, **size)
    centre = torch.rand(2, n, 1, **size)
    rows = torch.linspace(0, 1, height, device=images.device, dtype=images.dtype)
    columns = torch.linspace(0, 1, width, device=images.device, dtype=images.dtype)
    hidden = ((rows - centre[0]).abs() < half[0])[:, :, None] & ((columns - centre[1]).abs() < half[1])[:, None, :]
    kept = moved.masked_fill(hidden[:, None], 0.0)
    return kept + noise * images.std() * torch.randn(images.shape, **size)
