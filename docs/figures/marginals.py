"""Items in "same" answers, in "different" answers and unlabeled items: three mixtures of two classes."""

import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(-4, 4, 300)


def density(centre):
    """A class."""
    return np.exp(-((x - centre) ** 2) / 1.6) / np.sqrt(1.6 * np.pi)


figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True, layout="constrained")
for ax, p in zip(axes, (0.8, 0.5), strict=True):
    shares = {
        "items in 'same' answers": (p**2 / (p**2 + (1 - p) ** 2), "0.15", "-"),
        "unlabeled": (p, "#0072b2", "-."),
        "items in 'different' answers": (0.5, "#d55e00", "--"),
    }
    for label, (share, colour, style) in shares.items():
        ax.plot(x, share * density(1.5) + (1 - share) * density(-1.5), color=colour, ls=style, lw=2, label=label)
    ax.set(title=f"{p:.0%} in the larger class", xlabel="a feature", yticks=[])
axes[0].set_ylabel("density")
axes[0].legend(loc="upper left", fontsize=9)
axes[1].annotate("all three are one curve", (0, 0.26), ha="center")
