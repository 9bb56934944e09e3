"""``sdulearn demo``."""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV
from sdulearn.cli import options as cli
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.errors import FileError, require
from sdulearn.io.files import written_whole
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.progress import long_work, steps
from sdulearn.risks import RISKS

SETS = {"breast_cancer": load_breast_cancer(return_X_y=True), "waveform": make_waveform(random_state=0)}
SIZES = (25, 50, 100)
BESIDE = {"joint": "joint likelihood of pairs", "k-means": "k-means, no pairs", "labels": "logistic, true labels"}
DRAWN = ("su-squared", "du-squared", "sd-squared", "sddu-squared", *BESIDE)
# By Okabe and Ito: people with any colour vision can distinguish them.
COLOURS = ("#0072b2", "#cc79a7", "#009e73", "#d55e00", "#56b4e9", "#aaaaaa", "#666666")
HEAD = """Accuracy in % on test points, mean ± standard error over {} draws, 70% positive.
The models have seen answers to "same class?" and unlabeled rows, but no labels.
Settings were chosen on the answers alone."""
Means = dict[tuple[str, int, str], tuple[float, float]]
"""Mean accuracy and its standard error, in per cent, by data set, number of pairs and method."""


NEXT = """What to try next:
  {program} check {answers} --table {points}
  {program} fit {points} {answers} -o {model}
  {program} ask --demo    # answer questions about handwritten digits, on a page in the browser"""


@long_work
def run(arguments: argparse.Namespace) -> int:
    """Measure, print a table per data set, and write the picture, the numbers, and files to go on with."""
    folder = new_folder(Path(arguments.output))
    picture, numbers = folder / "demo.png", folder / "demo.csv"
    seeds = range(arguments.seed, arguments.seed + arguments.draws)
    means: Means = {}
    for name, n_pairs in steps(list(itertools.product(SETS, SIZES)), "settings"):
        draws = [accuracies(name, n_pairs, seed) for seed in seeds]
        means |= {(name, n_pairs, method): mean_of([draw[method] for draw in draws]) for method in draws[0]}
    draw(picture, means)
    fields = ("dataset", "n_pairs", "method", "accuracy", "standard_error")
    rows = [(*cell, *values) for cell, values in means.items()]
    cli.write_csv(numbers, [fields, *rows])
    points, answers = write_example(folder)
    if arguments.json:
        results = [dict(zip(fields, row, strict=True)) for row in rows]
        files = {"picture": picture, "numbers": numbers, "points": points, "answers": answers}
        cli.print_json({"results": results, **files})
        return 0
    cli.say("\n".join([HEAD.format(arguments.draws), *(table(name, means) for name in SETS)]))
    cli.say(f"\nImage: {picture}\nNumbers: {numbers}\n")
    cli.say(NEXT.format(program=cli.program(), points=points, answers=answers, model=folder / "model.sdu"))
    return 0


def new_folder(folder: Path) -> Path:
    """Make the folder of ``-o``, before the work, as it may fail."""
    require("matplotlib", "demo")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"The folder {folder} cannot be created: {error.strerror}. Choose another one with -o."
        ) from error
    return folder


def write_example(folder: Path) -> tuple[Path, Path]:
    """Write a table of tumours, and 150 answers about pairs of them."""
    data = load_breast_cancer()
    points, answers = folder / "points.csv", folder / "answers.csv"
    ids = [f"p{k:03}" for k in range(len(data.data))]
    names = (name.replace(" ", "_") for name in data.feature_names[:10])
    cells = zip(ids, data.data[:, :10].round(4).tolist(), strict=True)
    cli.write_csv(points, [("id", *names), *((name, *values) for name, values in cells)])
    pairs = np.random.default_rng(2).permutation(len(ids))[:300].reshape(-1, 2).tolist()
    words = {True: "similar", False: "dissimilar"}
    same = [words[bool(data.target[a] == data.target[b])] for a, b in pairs]
    rows = ((ids[a], ids[b], word) for (a, b), word in zip(pairs, same, strict=True))
    cli.write_csv(answers, [("id_a", "id_b", "label"), *rows])
    return points, answers


@threadpool_limits.wrap(limits=1)
def accuracies(name: str, n_pairs: int, seed: int) -> dict[str, float]:
    """Return the accuracy of each method on one draw; those not plotted at the largest size only."""
    X, y = SETS[name]
    y = np.where(y > 0, 1, -1)
    points = np.column_stack([scale(X), y])
    drawn, codes, test, truth = sample_sdu(
        points, y, n_pairs=n_pairs, n_unlabeled=100, prior=0.7, n_test=200, random_state=seed
    )
    rows, labels, test = drawn[:, :-1], drawn[:, -1], test[:, :-1]
    models = {f"{risk}-{loss}": SDUClassifierCV(risk, loss) for risk in RISKS for loss in TRAINING_LOSSES}
    models["joint"] = PairLogisticRegressionCV()
    wanted = [method for method in models if n_pairs == SIZES[-1] or method in DRAWN]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = {method: models[method].fit(rows, codes).predict(test) for method in wanted}
        predicted["k-means"] = 2 * KMeans(2, n_init=10, random_state=seed).fit(rows).predict(test) - 1
        supervised = LogisticRegressionCV(cv=5, max_iter=1000).fit(rows[codes != 0], labels[codes != 0])
        predicted["labels"] = supervised.predict(test)
    right = {method: 100 * float(np.mean(classes == truth)) for method, classes in predicted.items()}
    # Clusters have no names, so the better naming counts.
    return right | {"k-means": max(right["k-means"], 100 - right["k-means"])}


def mean_of(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error, which a single draw does not have."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return round(float(np.mean(values)), 2), round(error, 2)


def table(name: str, means: Means) -> str:
    """Format all methods at the largest number of pairs: one row per risk, one column per loss."""

    def cell(method: str) -> str:
        mean, error = means[name, SIZES[-1], method]
        # A single draw has no standard error.
        return (f"{mean:.1f}" if math.isnan(error) else f"{mean:.1f} ± {error:.1f}").rjust(15)

    rows = [f"  {risk:<6}" + "".join(cell(f"{risk}-{loss}") for loss in TRAINING_LOSSES) for risk in RISKS]
    rows += [f"  {text:<36}{cell(method)}" for method, text in BESIDE.items()]
    losses = "".join(f"{loss:>15}" for loss in TRAINING_LOSSES)
    return "\n".join(["", f"{name}: {SIZES[-1]} pairs, 100 unlabeled rows", f"{'':8}{losses}", *rows])


def draw(path: Path, means: Means) -> None:
    """Draw the error rate by the number of pairs, one panel per data set."""
    figure = require("matplotlib.figure", "demo").Figure(figsize=(8, 3.7), layout="constrained")
    for axis, name in zip(figure.subplots(1, len(SETS)), SETS, strict=True):
        for method, colour, marker in zip(DRAWN, COLOURS, "oD^s*+x", strict=True):
            points = np.array([means[name, n_pairs, method] for n_pairs in SIZES])
            label = BESIDE.get(method, f"{method.partition('-')[0].upper()}, squared loss")
            style = {"color": colour, "marker": marker, "capsize": 2}
            axis.errorbar(SIZES, 100 - points[:, 0], points[:, 1], label=label, **style)
        axis.set(title=name, xlabel="pairs", ylabel="error rate, %", xticks=SIZES)
        axis.grid(color="#e5e5e5")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    with written_whole(path) as draft:
        figure.savefig(draft, dpi=120, format="png")
