"""Random changes of standardised rows that keep their classes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from sdulearn.torch.loss import Tensor, torch

Generator: TypeAlias = Any
# Images: largest rotation (radians), and shift, scaling and shear as shares of the size; largest change of contrast, a
# share, and of brightness. Then the noise, in standard deviations of all pixels.
_ROTATION, _SHIFT, _SCALE, _SHEAR = np.deg2rad(20), 0.15, 0.25, 0.2
_CONTRAST, _BRIGHTNESS, _NOISE = 0.4, 0.2, 0.1
# Probability that a cell is replaced by that of another row (Bahri et al., "SCARF", ICLR 2022).
_REPLACED = 0.3


def augment_images(images: Tensor, generator: Generator = None) -> Tensor:
    """Rotate, shift, scale and shear images (n, channels, height, width), change their contrast, and add noise."""
    n = len(images)
    size = {"generator": generator, "device": images.device, "dtype": images.dtype}

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, **size) - 1

    angle, unit = _ROTATION * uniform(n), torch.ones(n, device=images.device)
    rotated = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).reshape(n, 2, 2)
    slant = torch.stack([unit, _SHEAR * uniform(n), 0 * unit, unit], -1).reshape(n, 2, 2)
    linear = rotated @ slant * (1 + _SCALE * uniform(n, 1, 2))
    matrix = torch.cat([linear, 2 * _SHIFT * uniform(n, 2, 1)], -1)
    grid = torch.nn.functional.affine_grid(matrix, list(images.shape), align_corners=False)
    moved = torch.nn.functional.grid_sample(images, grid, align_corners=False, padding_mode="border")
    centre = moved.mean((1, 2, 3), keepdim=True)
    moved = centre + (moved - centre) * (1 + _CONTRAST * uniform(n, 1, 1, 1)) + _BRIGHTNESS * uniform(n, 1, 1, 1)
    return moved + _NOISE * torch.randn(images.shape, **size)


def augment_columns(rows: Tensor, generator: Generator = None) -> Tensor:
    """Replace some cells by those of other rows of the batch, and add noise."""
    size = {"generator": generator, "device": rows.device}
    donor = torch.randint(len(rows), rows.shape, **size)
    replaced = torch.where(torch.rand(rows.shape, **size) < _REPLACED, rows.gather(0, donor), rows)
    return replaced + _NOISE * torch.randn(rows.shape, **size)
