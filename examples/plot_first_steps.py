"""
First steps: from a table and answers to classes
================================================

A table with one row per point, a list of pairs, an answer for each: "same class" or "different". That is all a fit
needs.
"""

# %%
# A table, and answers about some of its rows
# -------------------------------------------
# We take scikit-learn's breast cancer set as a frame. In real life nobody knows ``truth``; here it stands in for the
# person who answers our questions.

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, stack_pairs
from sdulearn.plotting import PairBoundaryDisplay

data = load_breast_cancer(as_frame=True)
table = data.data[["mean radius", "mean texture", "mean smoothness", "mean concavity"]]
truth = np.where(data.target == 1, 1, -1)

rng = np.random.default_rng(0)
pairs = rng.permutation(len(table))[:200].reshape(100, 2)  # 100 random questions
same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
print(f"{same.sum()} times 'same', {(~same).sum()} times 'different'")

# %%
# Rows and codes
# --------------
# :func:`~sdulearn.stack_pairs` puts both ends of each pair into one table and says what is known of each row: the code
# of its pair, and the point that it shows. Rows in no pair become unlabeled ones, and help too.

rows, codes = stack_pairs(table, pairs, same)
rows.assign(code=codes[:, 0], point=codes[:, 1]).iloc[[0, 1, 2, 3, -1]]

# %%
# Fit
# ---
# The estimator to try first chooses its own settings, from the answers alone. Standardise in front of it.

model = make_pipeline(StandardScaler(), PairLogisticRegressionCV()).fit(rows, codes)
prior = model[-1].prior_
print(f"share of the larger class: {prior.value:.2f}")
print(f"95% interval: {prior.low:.2f} to {prior.high:.2f}")

# %%
# Look at it
# ----------
# Two of the four features; the others stand at their median. Half of the pairs are drawn: solid lines join rows that
# were called the same, dashed ones rows that were called different.

features = ("mean radius", "mean concavity")
display = PairBoundaryDisplay.from_estimator(model, rows, codes, features=features, max_pairs=50)
display.ax_.set_title("50 pairs, and where the model draws the line")

# %%
# Use it
# ------
# ``+1`` is the larger class; answers do not give it a name. With the truth, which the model never saw, we can check.

predicted = model.predict(table)
unseen = np.setdiff1d(np.arange(len(table)), pairs)
right = np.mean(predicted[unseen] == truth[unseen])
print(f"right on rows nobody was asked about: {right:.1%}")
