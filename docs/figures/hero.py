"""The picture of README: answers to "same or different?", and the boundary learned from them.

    python docs/figures/hero.py

writes docs/_static/hero.svg. No label is used; colours on the right are predictions.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from sdulearn import PairLogisticRegressionCV, stack_pairs

plt.rcParams["svg.hashsalt"] = "hero"
rng = np.random.default_rng(5)
y = np.where(rng.random(150) < 0.6, 1, -1)
X = rng.normal(size=(150, 2)) * (0.75, 0.8) + np.outer(y, (1.1, 0.5))
pairs = np.arange(60).reshape(30, 2)
same = y[pairs[:, 0]] == y[pairs[:, 1]]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = PairLogisticRegressionCV().fit(*stack_pairs(X, pairs, same))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True, sharey=True, layout="constrained")
left.scatter(*X[60:].T, c="0.8", s=18)
for answer, colour, style, label in ((True, "0.25", "-", '"same"'), (False, "#d55e00", "--", '"different"')):
    ends = X[pairs[same == answer]]
    left.add_collection(LineCollection(ends, colors=colour, linestyles=style, linewidths=1.4, label=label))
    left.scatter(*ends.reshape(-1, 2).T, c=colour, s=18, zorder=3)
left.set_title("30 answers, no class is named")
left.legend(loc="upper left")
for value, colour, marker in ((1, "#2166ac", "o"), (-1, "#b2182b", "s")):
    right.scatter(*X[model.predict(X) == value].T, c=colour, marker=marker, s=18)
low, high = left.get_ylim()
w, b = model.coef_[0], model.intercept_[0]
right.plot([-(b + w[1] * low) / w[0], -(b + w[1] * high) / w[0]], [low, high], c="0.2", lw=1.5)
right.set_title(f"the classes learned from them: {np.mean(model.predict(X) == y):.0%} correct")
for ax in (left, right):
    ax.set(xticks=[], yticks=[], ylim=(low, high))
figure.savefig(Path(__file__).parents[1] / "_static" / "hero.svg", metadata={"Date": None})
