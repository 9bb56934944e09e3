"""An image set of our own: ten letters from many fonts, sheared, rotated, light or dark, noisy.

    python benchmarks/letters.py /tmp/letters.npz

Fonts are those of the system and of matplotlib. Test images have the same fonts and other random changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.font_manager import findSystemFonts
from PIL import Image, ImageDraw, ImageFont

LETTERS = "ABDEGHKRSY"
SIDE = 32
# Fonts of symbols and of other alphabets, and tall parts of mathematics.
_NOT_LETTERS = ("symbol", "emoji", "cmsy", "cmex", "cmmi", "stixsiz", "nonuni", "dingbat", "icons", "math", "display")


def fonts():
    """Return font files that draw the letters differently from a missing one, sorted by name."""
    own = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    paths = {Path(path).name: path for path in [*findSystemFonts(), *map(str, own.glob("*.ttf"))]}
    return [paths[name] for name in sorted(paths) if not any(part in name.lower() for part in _NOT_LETTERS)]


def render(letter, path, rng):
    """Return one image, SIDE x SIDE, values 0 to 255."""
    size = 3 * SIDE
    font = ImageFont.truetype(path, int(rng.uniform(0.45, 0.8) * size))
    image = Image.new("L", (size, size), 0)
    ImageDraw.Draw(image).text((size / 2, size / 2), letter, fill=255, font=font, anchor="mm")
    shear, (dx, dy) = rng.uniform(-0.3, 0.3), rng.uniform(-0.1, 0.1, 2) * size
    image = image.rotate(rng.uniform(-15, 15), resample=Image.Resampling.BILINEAR)
    affine = (1, shear, dx - shear * size / 2, 0, 1, dy)
    image = image.transform((size, size), Image.Transform.AFFINE, affine, resample=Image.Resampling.BILINEAR)
    pixels = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX), dtype=float) / 255
    ink, paper = rng.permutation([rng.uniform(0, 0.4), rng.uniform(0.6, 1)])
    return 255 * np.clip(paper + (ink - paper) * pixels + rng.normal(0, 0.1, pixels.shape), 0, 1)


def letters(n=24_000, seed=0):
    """Return flat images (n, SIDE * SIDE) uint8, and the numbers of their letters."""
    rng = np.random.default_rng(seed)
    paths = fonts()
    y = rng.integers(0, len(LETTERS), n)
    images = [render(LETTERS[k], paths[rng.integers(len(paths))], rng) for k in y]
    return np.rint(images).astype(np.uint8).reshape(n, -1), y


if __name__ == "__main__":
    X, y = letters()
    np.savez_compressed(sys.argv[1], X=X, y=y)
    print(f"{len(X):,} images, {len(fonts())} fonts, in {sys.argv[1]}")
