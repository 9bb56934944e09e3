"""A curved boundary: banana-shaped classes, learnt from pairs with an RBF map in front of the linear model.

    SDULEARN_DATA=folder python examples/curved_boundary.py

A straight line is near chance on this set: at 70% positive points it hardly beats calling everything positive. An RBF
map (Nystroem) in an ordinary Pipeline makes the same estimator draw a curve. Writes curved_boundary.png.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV
from sdulearn.datasets import load_benchmark, sample_sdu

X, y = load_benchmark("banana")
models = {
    "straight line": make_pipeline(StandardScaler(), PairLogisticRegressionCV()),
    "RBF map": make_pipeline(
        StandardScaler(), Nystroem(gamma=1.0, n_components=60, random_state=0), PairLogisticRegressionCV()
    ),
}
accuracies = {name: [] for name in models}
for seed in range(10):
    rows, codes, X_test, y_test = sample_sdu(
        X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=seed
    )
    for name, model in models.items():
        accuracies[name].append((model.fit(rows, codes).predict(X_test) == y_test).mean())
for name, values in accuracies.items():
    print(f"{name}: {100 * np.mean(values):.1f}% +- {100 * np.std(values, ddof=1) / len(values) ** 0.5:.1f}")

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained", sharey=True)
grid = np.meshgrid(np.linspace(*np.quantile(X[:, 0], (0, 1)), 200), np.linspace(*np.quantile(X[:, 1], (0, 1)), 200))
for ax, (name, model) in zip(axes, models.items(), strict=True):
    p = model.predict_proba(np.column_stack([g.ravel() for g in grid]))[:, 1].reshape(grid[0].shape)
    ax.contourf(*grid, p, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.6)
    ax.contour(*grid, p, levels=[0.5], colors="black")
    for k in range(1, 201):
        ends = rows[np.abs(codes) == k]
        ax.plot(*ends.T, color="0.2" if k in codes else "orange", linewidth=0.4, alpha=0.5)
    ax.scatter(*X_test.T, c=y_test, cmap="RdBu", s=8, edgecolors="none")
    ax.set_title(f"{name}: {100 * np.mean(accuracies[name]):.1f}% right")
figure.suptitle("200 answers: grey lines join pairs of the same class, orange ones of different classes")
figure.savefig("curved_boundary.png", dpi=120)
