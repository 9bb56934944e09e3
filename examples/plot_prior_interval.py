"""
The prior and its interval
==========================

The share of the larger class follows from the share of "same" answers among random pairs. How accurate is it?
"""

# %%
# Before the first question
# -------------------------
# Guess a prior, and plot the interval to expect by the number of pairs. Where a band includes 1/2, the counts cannot
# show which class is larger.

import matplotlib.pyplot as plt
import numpy as np

from sdulearn import estimate_prior, stack_pairs
from sdulearn.plotting import PriorIntervalDisplay

figure, ax = plt.subplots(layout="constrained")
for prior in (0.9, 0.7, 0.6):
    PriorIntervalDisplay.from_prior(prior, name=f"prior {prior}", ax=ax)
ax.set_title("Expected interval of the prior")

# %%
# While answers come in
# ---------------------
# The same estimate after each answer. Codes number the questions in the order in which they were asked.

rng = np.random.default_rng(3)
truth = np.where(rng.random(1600) < 0.7, 1, -1)
pairs = np.arange(1600).reshape(800, 2)
_, codes = stack_pairs(np.zeros((1600, 1)), pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]])

display = PriorIntervalDisplay.from_codes(codes)
display.ax_.axhline(0.7, color="black", linewidth=1, linestyle="--", label="truth")
display.ax_.legend()
display.ax_.set_title("Estimate and interval while 800 answers come in")

# %%
# When the counts imply no prior
# ------------------------------
# No prior explains more "different" than "same" answers. In small random draws this is common, and not a mistake.

n_pairs, similar_share = 50, 0.7**2 + 0.3**2
draws = rng.binomial(n_pairs, similar_share, size=10_000)
silent = np.mean(2 * draws <= n_pairs)
print(f"draws of {n_pairs} pairs at prior 0.7 that imply no prior: {silent:.0%}")
print(estimate_prior(24, 26))

# %%
# Then give ``prior=`` from another source, ask more questions, or use
# :class:`~sdulearn.PairLogisticRegression`, which needs no prior.
