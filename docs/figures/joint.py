"""The probability of the answer "same", over the two ends of a pair, at prior 1/2."""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
y = np.where(rng.random((130, 2)) < 0.5, 1, -1)
ends = rng.normal(size=(130, 2)) * 0.9 + 1.5 * y
same = y[:, 0] == y[:, 1]
side = np.linspace(-4.2, 4.2, 200)
s = 1 / (1 + np.exp(-2 * 1.5 * side / 0.81))
chance = np.outer(s, s) + np.outer(1 - s, 1 - s)

figure, ax = plt.subplots(figsize=(6.2, 4.9), layout="constrained")
surface = ax.contourf(side, side, chance, levels=np.linspace(0, 1, 21), cmap="PuOr", alpha=0.7)
for answer, colour, marker, label in ((True, "0.1", "o", "same"), (False, "white", "D", "different")):
    ax.scatter(*ends[same == answer].T, c=colour, marker=marker, s=26, edgecolors="black", lw=0.8, label=label)
ax.set(xlabel="feature of one item, x", ylabel="feature of the other item, x'", xlim=(-4.2, 4.2), ylim=(-4.2, 4.2))
ax.legend(loc="upper left", framealpha=1)
figure.colorbar(surface, label="probability of 'same'", ticks=[0, 0.25, 0.5, 0.75, 1])
