"""Accuracy on columns of image files, from random pairs and without vectors.

    SDULEARN_DATA=folder python benchmarks/images.py -o now.jsonl
    PYTHONPATH=../before/src python benchmarks/images.py -o before.jsonl
    python benchmarks/images.py --compare before.jsonl now.jsonl

The first two measure the sdulearn that Python imports; the last prints both as a table. Images are written as PNG
files; pairs are drawn at random among the rows of a table of up to 800 images, and the accuracy of the linear model is
that on 500 others. The names of the two classes are taken from the truth, as no pair can tell them.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from runs import quietly, run_all
from sklearn.datasets import load_digits

from sdulearn import fit_table

N_ROWS = 800
N_TEST = 500
SIDE = 48


def digits(one, other, rng):
    """Return scikit-learn's digits of two groups, 8 x 8 pixels."""
    found = load_digits()
    return _two_groups(255 / 16 * found.images, found.target, one, other, rng)


def mnist(one, other, rng):
    """Return digits of two groups, 28 x 28 pixels."""
    found = np.load(Path(os.environ["SDULEARN_DATA"]) / "mnist10k.npz")
    return _two_groups(found["X"].reshape(-1, 28, 28), found["y"], one, other, rng)


def _two_groups(images, targets, one, other, rng):
    rows = rng.permutation(np.flatnonzero(np.isin(targets, [*one, *other])))[: N_ROWS + N_TEST]
    return images[rows], np.where(np.isin(targets[rows], one), 1, -1)


def made(draw, rng):
    """Draw images of two classes at 0.6 to 0.4, with noise."""
    y = np.where(rng.random(N_ROWS + N_TEST) < 0.6, 1, -1)
    images = np.array([draw(label > 0, rng) for label in y]) + rng.normal(0, 15, (len(y), SIDE, SIDE, 3))
    return np.clip(images, 0, 255), y


def colour(first, rng):
    """Draw a disc somewhere, reddish or bluish, before any background."""
    pixels = np.full((SIDE, SIDE, 3), rng.uniform(60, 190, 3))
    pixels[_disc(rng)] = (rng.normal([170, 90, 110] if first else [110, 90, 170], 40)).clip(0, 255)
    return pixels


def scene(first, rng):
    """Draw a bright upper part and a dark lower part, or two parts side by side."""
    light, dark = rng.uniform(110, 230, 3), rng.uniform(20, 140, 3)
    edge = rng.integers(14, 34)
    pixels = np.full((SIDE, SIDE, 3), light)
    if first:
        pixels[edge:] = dark
    else:
        pixels[:, edge:] = dark
    return pixels


def shape(first, rng):
    """Draw a disc or a ring somewhere, of any colour."""
    pixels = np.full((SIDE, SIDE, 3), rng.uniform(0, 110, 3))
    pixels[_disc(rng, inner=0 if first else 0.6)] = rng.uniform(140, 255, 3)
    return pixels


def stripes(first, rng):
    """Draw stripes in one of two directions, of any place, width and colour."""
    wave = np.sin(np.arange(SIDE) / rng.uniform(1.5, 3) + rng.uniform(0, 6))
    pattern = np.repeat(wave[:, None], SIDE, axis=1)
    return 128 + (pattern if first else pattern.T)[:, :, None] * rng.uniform(20, 60, 3)


def _disc(rng, inner=0.0):
    radius = rng.uniform(9, 15)
    places = np.arange(SIDE)
    centre = rng.uniform(16, 32, 2)
    distance = np.hypot(places[:, None] - centre[0], places - centre[1])
    return (distance <= radius) & (distance >= inner * radius)


ODD = (1, 3, 5, 7, 9)
EVEN = (0, 2, 4, 6, 8)
SETS = {
    "digits, odd or even": functools.partial(digits, ODD, EVEN),
    "mnist, odd or even": functools.partial(mnist, ODD, EVEN),
    "mnist, 4 or 9": functools.partial(mnist, (4,), (9,)),
    "mnist, 3 or 5": functools.partial(mnist, (3,), (5,)),
    "colour of a disc": functools.partial(made, colour),
    "scene": functools.partial(made, scene),
    "disc or ring": functools.partial(made, shape),
    "direction of stripes": functools.partial(made, stripes),
}


@quietly
def run(cell):
    """Return the accuracy on new images for a set, a number of pairs and a seed."""
    name, n_pairs, seed = cell
    rng = np.random.default_rng([seed, n_pairs, *name.encode()])
    images, y = SETS[name](rng)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{k}.png") for k in range(len(y))]
        for file, pixels in zip(files, images, strict=True):
            Image.fromarray(np.rint(pixels).astype(np.uint8)).save(file)
        table = pd.DataFrame({"id": [f"r{k}" for k in range(len(y))], "photo": files})
        n_rows = min(N_ROWS, len(y) - N_TEST)
        ends = rng.integers(0, n_rows, (3 * n_pairs, 2))
        ends = ends[ends[:, 0] != ends[:, 1]][:n_pairs]
        ids = table["id"].to_numpy()[ends]
        answers = pd.DataFrame({"id_a": ids[:, 0], "id_b": ids[:, 1], "label": y[ends].prod(axis=1)})
        model = fit_table(table[:n_rows], answers, images=["photo"], image_root=folder, model="linear")
        right = np.mean(model.predict(table[n_rows:]) == y[n_rows:])
    return float(max(right, 1 - right))


def compare(before, now):
    """Print mean accuracies in percent, and the mean difference with its standard error."""
    lines = [Path(path).read_text().splitlines() for path in (before, now)]
    read = [{tuple(cell): found for cell, found in map(json.loads, measured)} for measured in lines]
    print("| images | pairs | before | now | difference |\n|---|---|---|---|---|")
    for name, n_pairs in dict.fromkeys(cell[:2] for cell in read[0]):
        cells = [cell for cell in read[0] if cell[:2] == (name, n_pairs) and cell in read[1]]
        old, new = (100 * np.array([found[cell] for cell in cells]) for found in read)
        error = np.std(new - old, ddof=1) / np.sqrt(len(cells))
        print(
            f"| {name} | {n_pairs} | {old.mean():.1f} | {new.mean():.1f} | {np.mean(new - old):+.1f} +- {error:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", type=Path, default=Path("images.jsonl"), help="what is measured goes there")
    parser.add_argument("--compare", nargs=2, metavar=("BEFORE", "NOW"))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.compare:
        compare(*given.compare)
        return
    cells = [(name, n_pairs, seed) for name in SETS for n_pairs in (50, 200) for seed in range(given.draws)]
    run_all(run, cells, given.jobs, given.o)


if __name__ == "__main__":
    main()
