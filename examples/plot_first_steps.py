"""
First steps: from a table and answers to classes
================================================

A fit needs a table with one row per item, a list of pairs, and an answer for each pair: "same class" or "different".
"""

# %%
# A table, and answers about some of its rows
# -------------------------------------------
# We use scikit-learn's breast cancer data as a data frame. In practice nobody knows ``truth``; here it replaces the
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
# X and y
# -------
# :func:`~sdulearn.stack_pairs` puts both items of each pair into one table and returns which answers each row took
# part in: the code of its pair and the number of its item. Rows in no pair become unlabeled rows, from which the model
# also learns.

rows, y = stack_pairs(table, pairs, same)
rows.assign(code=y[:, 0], item=y[:, 1]).iloc[[0, 1, 2, 3, -1]]

# %%
# Fit
# ---
# This estimator, the one to try first, chooses its settings from the answers alone. Standardise the features first.

model = make_pipeline(StandardScaler(), PairLogisticRegressionCV()).fit(rows, y)
prior = model[-1].prior_
print(f"share of the larger class: {prior.value:.2f}")
print(f"95% interval: {prior.low:.2f} to {prior.high:.2f}")

# %%
# Plot the boundary
# -----------------
# The plot shows two of the four features, with the others at their median, and half of the pairs: solid lines for
# "same", dashed lines for "different".

features = ("mean radius", "mean concavity")
display = PairBoundaryDisplay.from_estimator(model, rows, y, features=features, max_pairs=50)
display.ax_.set_title("50 pairs and the decision boundary")

# %%
# Predict
# -------
# ``+1`` is the larger class; answers do not name it. We compare with the true classes, which the model has not seen.

predicted = model.predict(table)
unseen = np.setdiff1d(np.arange(len(table)), pairs)
right = np.mean(predicted[unseen] == truth[unseen])
print(f"correct on rows in no question: {right:.1%}")
