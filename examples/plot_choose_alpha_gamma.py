"""
Choosing alpha and gamma from pairs alone
=========================================

Settings are chosen on held-out pairs, without labels. The plots show how certain that choice is.
"""

# %%
# The marginal risks: alpha and gamma
# -----------------------------------
# ``alpha`` is the strength of the penalty. ``gamma`` weighs the two risks of a mixture: for SDDU, 0 is SD alone and 1
# is DU alone. Both ends of a pair are always held out together.

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegressionCV, SDUClassifier, SDUClassifierCV
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.plotting import RiskGridDisplay

X, y = make_waveform(5000, random_state=0)
rows, codes, X_test, y_test = sample_sdu(X, y, n_pairs=300, n_unlabeled=500, prior=0.7, n_test=1000, random_state=0)
model = make_pipeline(StandardScaler(), SDUClassifierCV("sddu", alphas=(10, 1, 0.1, 1e-3))).fit(rows, codes)
display = RiskGridDisplay.from_estimator(model)
display.ax_.set_title("SDDU: risk of held-out pairs by alpha and gamma")

# %%
# The bars are standard errors over the folds. They are long: the risk is unbiased but noisy. It may be negative, and is
# not clipped, since clipping would make bad settings look alike.
#
# The joint estimator: alpha
# --------------------------
# Its score is the likelihood of held-out answers, which is far less noisy. There is no gamma.

joint = make_pipeline(StandardScaler(), PairLogisticRegressionCV()).fit(rows, codes)
display = RiskGridDisplay.from_estimator(joint)
display.ax_.set_title("Joint estimator: likelihood of held-out answers by alpha")

# %%
# Accuracy on labelled test points:

for name, fitted in (("SDDU", model), ("joint", joint)):
    print(f"{name}: {(fitted.predict(X_test) == y_test).mean():.1%} right")

# %%
# The same with GridSearchCV
# --------------------------
# Any search of scikit-learn works if its folds keep pairs together.

search = GridSearchCV(
    make_pipeline(StandardScaler(), SDUClassifier(loss="logistic")),
    {"sduclassifier__alpha": [1, 0.1, 0.01], "sduclassifier__gamma": [0, 0.5, 1]},
    cv=PairKFold(5, random_state=0),
).fit(rows, codes)
display = RiskGridDisplay.from_estimator(search)
display.ax_.set_title("GridSearchCV with logistic loss: score by alpha and gamma")
