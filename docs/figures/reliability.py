"""Reliability of a linear model and of boosted trees, from the answers that they learn from."""

import matplotlib.pyplot as plt
import numpy as np

from sdulearn import PairBoostingClassifier, PairLogisticRegressionCV, stack_pairs
from sdulearn.plotting import ReliabilityDisplay

# Two crescents with noise: no line parts them.
rng = np.random.default_rng(0)
side = np.where(rng.random(2400) < 0.7, 1, -1)
angle = rng.uniform(0, np.pi, 2400)
X = np.column_stack([side * np.cos(angle) + (side < 0), side * (np.sin(angle) - 0.25)])
X += rng.normal(scale=0.35, size=X.shape)
pairs = rng.permutation(2400)[:1600].reshape(-1, 2)
rows, y = stack_pairs(X, pairs, side[pairs[:, 0]] == side[pairs[:, 1]])

figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.4), layout="constrained")
for ax, model in zip(axes, (PairLogisticRegressionCV(), PairBoostingClassifier()), strict=True):
    ReliabilityDisplay.from_estimator(model, rows, y, ax=ax)
    ax.set_title(type(model).__name__)
