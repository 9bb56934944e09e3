"""What supervised learning needs, and what we have."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

rng = np.random.default_rng(5)
y = np.where(rng.random(90) < 0.65, 1, -1)
X = rng.normal(size=(90, 2)) * (0.75, 0.8) + np.outer(y, (1.25, 0.5))
pairs = np.arange(44).reshape(22, 2)
same = y[pairs[:, 0]] == y[pairs[:, 1]]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), sharex=True, sharey=True, layout="constrained")
for value, colour, marker in ((1, "#2166ac", "o"), (-1, "#b2182b", "s")):
    left.scatter(*X[y == value].T, c=colour, marker=marker, s=26)
left.set_title("labels: every item has its class")
right.scatter(*X[44:].T, c="0.65", s=22)
for answer, colour, style, label in ((True, "0.15", "-", "same class"), (False, "#d55e00", "--", "different")):
    ends = X[pairs[same == answer]]
    right.add_collection(LineCollection(ends, colors=colour, linestyles=style, linewidths=1.5, label=label))
    right.scatter(*ends.reshape(-1, 2).T, c=colour, s=22, zorder=3)
right.set_title("answers: no item has a class")
right.legend(loc="upper left")
for ax in (left, right):
    ax.set(xticks=[], yticks=[])
