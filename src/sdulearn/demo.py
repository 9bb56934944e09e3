"""The demonstration: every risk and loss on data that needs no download, chosen by cross-validation on pairs alone."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.extras import require
from sdulearn.joint import PairLogisticRegressionCV
from sdulearn.linear import SDUClassifierCV
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS

PRIOR = 0.7
SIZES = (25, 50, 100, 200)
CURVES = ("su", "du", "sd", "sddu")
JOINT = "joint pair likelihood"
KMEANS, ORACLE = "k-means, no pairs", "logistic regression, true labels"
BESIDE = (JOINT, KMEANS, ORACLE)

Array = NDArray[Any]


class Draw:
    """One random draw of pairs, unlabeled rows and test points, standardised on the training rows."""

    def __init__(self, data: tuple[Array, Array], n_pairs: int, n_unlabeled: int, n_test: int, seed: int) -> None:
        X, y = data
        labelled = np.column_stack([X, y])
        rows, self.codes, test, self.y_test = sample_sdu(
            labelled,
            y,
            n_pairs=n_pairs,
            n_unlabeled=n_unlabeled,
            prior=PRIOR,
            n_test=n_test,
            random_state=seed,
        )
        scaler = StandardScaler().fit(rows[:, :-1])
        self.rows, self.X_test = scaler.transform(rows[:, :-1]), scaler.transform(test[:, :-1])
        self.labels = rows[:, -1]

    def accuracy(self, predict: Callable[[Array], Array]) -> float:
        """Share of test points that are predicted rightly."""
        return float(np.mean(predict(self.X_test) == self.y_test))

    def evaluate(self, method: str) -> float:
        """Accuracy of a method by its name in the table."""
        beside = {JOINT: self.joint, KMEANS: self.kmeans, ORACLE: self.oracle}
        return beside[method]() if method in beside else self.sdu(*method.split())

    def joint(self) -> float:
        """The joint likelihood of both ends of a pair."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*names -1 and .1 are arbitrary")
            return self.accuracy(PairLogisticRegressionCV().fit(self.rows, self.codes).predict)

    def kmeans(self) -> float:
        """Clustering accuracy: k-means may name its two clusters either way."""
        model = KMeans(2, n_init=10, random_state=0).fit(self.rows)
        right = self.accuracy(lambda X: np.where(model.predict(X) == 1, 1, -1))
        return max(right, 1 - right)

    def oracle(self) -> float:
        """Logistic regression on the true labels of the points that stand in pairs."""
        paired = self.codes != 0
        model = LogisticRegression(max_iter=1000).fit(self.rows[paired], self.labels[paired])
        return self.accuracy(model.predict)

    def sdu(self, risk: str, loss: str) -> float:
        """One risk with one loss, alpha and gamma by cross-validation on pairs."""
        return self.accuracy(SDUClassifierCV(risk, loss).fit(self.rows, self.codes).predict)


def data_sets() -> dict[str, tuple[Array, Array]]:
    """Breast cancer (scikit-learn's) and Breiman's waveforms."""
    cancer = load_breast_cancer()
    return {
        "breast cancer": (cancer.data, np.where(cancer.target == 1, 1, -1)),
        "waveform": make_waveform(4000, random_state=0),
    }


def _settings(name: str, n_pairs: int) -> dict[str, int]:
    # Breast cancer has 569 rows: the largest draw must leave enough for the test.
    small = name == "breast cancer"
    return {"n_pairs": n_pairs, "n_unlabeled": 60 if small else 500, "n_test": 60 if small else 500}


def _largest(name: str) -> int:
    return 100 if name == "breast cancer" else 200


def cells(seeds: int) -> Iterator[tuple[str, int, int, str]]:
    """Every (data set, number of pairs, seed, method) of the demonstration."""
    for name in data_sets():
        for seed in range(seeds):
            for n_pairs in (size for size in SIZES if size <= _largest(name)):
                whole = n_pairs == _largest(name)
                risks, losses = (RISKS, tuple(TRAINING_LOSSES)) if whole else (CURVES, ("squared",))
                for method in (*(f"{risk} {loss}" for risk in risks for loss in losses), *BESIDE):
                    yield name, n_pairs, seed, method


def run(out: Path, seeds: int = 6) -> None:
    """Run everything, print the table, write the picture and the numbers."""
    tqdm = require("tqdm", "demo").tqdm
    plt = require("matplotlib.figure", "demo")
    out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    data = data_sets()
    results: dict[tuple[str, int, str], list[float]] = {}
    drawn: tuple[Any, Draw] | None = None
    for name, n_pairs, seed, method in tqdm(list(cells(seeds)), unit="fit", leave=False):
        key = (name, n_pairs, seed)
        if drawn is None or drawn[0] != key:
            drawn = (key, Draw(data[name], seed=seed, **_settings(name, n_pairs)))
        results.setdefault((name, n_pairs, method), []).append(drawn[1].evaluate(method))
    print(table(results, seeds))
    _write_csv(out / "demo.csv", results)
    _draw(plt.Figure, out / "demo.png", results)
    print(f"\nPicture: {out / 'demo.png'}\nNumbers: {out / 'demo.csv'}\n{time.perf_counter() - began:.0f} seconds.")


def _percent(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{100 * np.mean(values):5.1f} ± {100 * error:3.1f}"


def table(results: dict[tuple[str, int, str], list[float]], seeds: int) -> str:
    """The printed table: accuracy of each risk and loss at the largest number of pairs."""
    lines = [
        f"Accuracy in % on test points, mean ± standard error over {seeds} draws, {PRIOR:.0%} positive. The models saw",
        'answers to "same class?" and unlabeled rows, never a label; settings were chosen on the answers alone.',
    ]
    for name in data_sets():
        n_pairs = _largest(name)
        sizes = _settings(name, n_pairs)
        lines += ["", f"{name}: {n_pairs} pairs, {sizes['n_unlabeled']} unlabeled rows"]
        lines.append("  " + " " * 6 + "".join(f"{loss:>15}" for loss in TRAINING_LOSSES))
        for risk in RISKS:
            cells = (_percent(results[name, n_pairs, f"{risk} {loss}"]) for loss in TRAINING_LOSSES)
            lines.append(f"  {risk:<6}" + "".join(f"{cell:>15}" for cell in cells))
        for method in BESIDE:
            lines.append(f"  {method:<36}{_percent(results[name, n_pairs, method]):>15}")
    return "\n".join(lines)


def _write_csv(path: Path, results: dict[tuple[str, int, str], list[float]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "n_pairs", "method", "draw", "accuracy"])
        for (name, n_pairs, method), values in results.items():
            writer.writerows([name, n_pairs, method, draw, value] for draw, value in enumerate(values))


def _draw(figure_class: Any, path: Path, results: dict[tuple[str, int, str], list[float]]) -> None:
    """Error against the number of pairs, one panel a data set."""
    figure = figure_class(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots(1, 2)
    styles = {JOINT: ("black", "-"), KMEANS: ("0.6", ":"), ORACLE: ("black", "--")}
    for ax, name in zip(axes, data_sets(), strict=True):
        for method in (*(f"{risk} squared" for risk in CURVES), *BESIDE):
            sizes = [n for n in SIZES if (name, n, method) in results]
            errors = [100 - 100 * np.array(results[name, n, method]) for n in sizes]
            means = [e.mean() for e in errors]
            spread = [e.std(ddof=1) / np.sqrt(len(e)) if len(e) > 1 else 0.0 for e in errors]
            colour, line = styles.get(method, (None, "-"))
            label = method.replace(" squared", "").upper() if "squared" in method else method
            ax.errorbar(sizes, means, spread, color=colour, linestyle=line, marker="o", ms=4, capsize=3, label=label)
        ax.set(title=name, xlabel="number of pairs", xscale="log", ylim=(0, None))
        ax.set_xticks([n for n in SIZES if n <= _largest(name)], [str(n) for n in SIZES if n <= _largest(name)])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("error on test points, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.suptitle("Learning from 'same or different?' (SU, DU, SD, SDDU: squared loss)")
    figure.savefig(path, dpi=120)
