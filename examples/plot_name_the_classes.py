"""
Name the classes
================

With two classes of equal size the SDU risks of the paper are undefined. The joint method works, but which of the two
classes is called +1 is arbitrary. A few labelled rows decide it.
"""

# %%
# The SDU risks refuse
# --------------------

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, SDUClassifier
from sdulearn.datasets import sample_sdu
from sdulearn.plotting import PairBoundaryDisplay

X, truth = make_classification(4000, n_features=2, n_redundant=0, n_clusters_per_class=1, class_sep=1.1, random_state=4)
rows, y, X_test, y_test = sample_sdu(
    X, 2 * truth - 1, n_pairs=150, n_unlabeled=300, prior=0.5, n_test=1000, random_state=0
)
try:
    SDUClassifier(prior=0.5).fit(rows, y)
except ValueError as error:
    print(error)

# %%
# The joint method works
# ----------------------
# It finds the boundary, and warns that the names are arbitrary.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = make_pipeline(StandardScaler(), PairLogisticRegressionCV(prior=0.5)).fit(rows, y)
print(*(warning.message for warning in caught), sep="\n")

# %%
# Five labels
# -----------
# ``orient`` exchanges the classes if most of the labelled rows disagree with the model. In a pipeline, transform the
# rows first. We exchange the classes on purpose, to show that five labels correct it.

few = np.random.default_rng(0).permutation(len(X_test))[:5]
features = model[:-1].transform(X_test[few])
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
for ax, labels, title in zip(axes, (-y_test[few], y_test[few]), ("names exchanged", "five true labels"), strict=True):
    model[-1].orient(features, labels)
    PairBoundaryDisplay.from_estimator(model, rows, y, max_pairs=60, ax=ax)
    ax.scatter(*X_test[few].T, c=np.where(labels > 0, "#053061", "#67001f"), s=90, edgecolors="white", zorder=5)
    ax.set_title(f"{title}: {(model.predict(X_test) == y_test).mean():.1%} correct")

# %%
# The boundary is the same in both plots; only the names are exchanged. This is why sdulearn does not silently turn an
# accuracy below one half into the better of the two namings.
