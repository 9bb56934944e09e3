"""
The joint method compared with the SDU risks
============================================

The SDU risks of the paper use each item of a pair by itself. The joint method uses both items together. Here both
learn from the same answers.
"""

# %%
# The data
# --------
# Breiman's waveforms, with 70% positive rows. The models see no labels; only the test rows have them. For
# comparison, a supervised model learns from as many labels as there are pairs.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegressionCV, SDUClassifier, SDUClassifierCV
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.plotting import PairLearningCurveDisplay

X, truth = make_waveform(6000, random_state=0)
rows, y, X_more, y_more = sample_sdu(X, truth, n_pairs=400, n_unlabeled=500, prior=0.7, n_test=1400, random_state=0)
X_labelled, X_test, y_labelled, y_test = train_test_split(
    X_more, y_more, train_size=400, stratify=y_more, random_state=0
)
supervised = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X_labelled, y_labelled)

# %%
# The curves
# ----------
# Every point is a mean over draws of that many pairs; bars are standard errors. All settings are chosen from the
# answers. The SDU risks are given the class balance, since the counts of a small draw may not imply one.

figure, ax = plt.subplots(layout="constrained")
ax.axhline(supervised.score(X_test, y_test), color="0.3", linestyle="--", label="400 true labels")
estimators = {
    "joint method": PairLogisticRegressionCV(),
    "SDDU": SDUClassifierCV("sddu", prior=0.7),
    "SU": SDUClassifierCV("su", prior=0.7),
    "DU": SDUClassifierCV("du", prior=0.7),
}
for name, estimator in estimators.items():
    PairLearningCurveDisplay.from_estimator(
        make_pipeline(StandardScaler(), estimator),
        rows,
        y,
        n_pairs=[25, 50, 100, 200, 400],
        test=(X_test, y_test),
        n_repeats=6,
        random_state=0,
        name=name,
        ax=ax,
    )

ax.set_title("Accuracy and number of answers, waveform, 70% positive")

# %%
# Choosing settings
# -----------------
# The CV estimators choose ``alpha`` and ``gamma`` on held-out answers, without labels. Any search of scikit-learn does
# so, too, if its folds keep pairs together. The best three settings, with the standard deviation over the folds:

search = GridSearchCV(
    make_pipeline(StandardScaler(), SDUClassifier(loss="logistic", prior=0.7)),
    {"sduclassifier__alpha": [1, 0.1, 0.01], "sduclassifier__gamma": [0, 0.5, 1]},
    cv=PairKFold(5, random_state=0),
).fit(rows, y)
for k in search.cv_results_["rank_test_score"].argsort()[:3]:
    score, deviation = (search.cv_results_[f"{kind}_test_score"][k] for kind in ("mean", "std"))
    print(f"{search.cv_results_['params'][k]}: {score:.3f} ± {deviation:.3f}")

# %%
# Conclusion
# ----------
# The SDU risks divide by the difference between the two class shares, and ignore which items were paired with each
# other. The joint method uses it, so it needs far fewer answers.
