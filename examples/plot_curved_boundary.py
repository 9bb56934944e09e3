"""
A curved boundary
=================

The estimators are linear. With a feature map in front, the same estimator fits a curved boundary.
"""

# %%
# Two moons
# ---------
# No straight line separates them.

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegressionCV
from sdulearn.datasets import sample_sdu
from sdulearn.metrics import pair_log_likelihood
from sdulearn.plotting import PairBoundaryDisplay

X, truth = make_moons(3000, noise=0.2, random_state=0)
rows, y, X_test, y_test = sample_sdu(
    X, 2 * truth - 1, n_pairs=200, n_unlabeled=300, prior=0.7, n_test=800, random_state=0
)

# %%
# With and without the map
# ------------------------
# ``Nystroem`` approximates a Gaussian kernel. It is an ordinary step of a ``Pipeline``.

models = {
    "linear model": make_pipeline(StandardScaler(), PairLogisticRegressionCV()),
    "RBF map": make_pipeline(
        StandardScaler(), Nystroem(gamma=0.5, n_components=60, random_state=0), PairLogisticRegressionCV()
    ),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(rows, y)
    PairBoundaryDisplay.from_estimator(model, rows, y, max_pairs=50, ax=ax)
    ax.set_title(f"{name}: {(model.predict(X_test) == y_test).mean():.1%} of test rows correct")

# %%
# Which map?
# ----------
# ``SplineTransformer`` and ``PolynomialFeatures`` work the same way. Compare maps by the log-likelihood of held-out
# answers: closer to zero is better.

for name, model in models.items():
    scores = cross_val_score(model, rows, y, cv=PairKFold(5, random_state=0), scoring=pair_log_likelihood)
    print(f"{name}: {scores.mean():.3f}")
