"""Linear models as scikit-learn's LogisticRegression, alone, in pipelines and on to ONNX."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, SDUClassifier, SDUClassifierCV, stack_pairs

NAMES = [f"t{k}" for k in range(21)]
pytestmark = pytest.mark.filterwarnings("ignore::sdulearn.errors.UselessModelWarning")
ESTIMATORS = {
    "squared": SDUClassifier(),
    "double hinge": SDUClassifier(loss="double_hinge"),
    "logistic": SDUClassifier(loss="logistic"),
    "SDU cv": SDUClassifierCV(cv=3),
    "joint": PairLogisticRegression(),
    "joint cv": PairLogisticRegressionCV(cv=3),
    "3 classes": PairLogisticRegression(n_classes=3),
    "3 classes cv": PairLogisticRegressionCV(3, n_classes=3, cv=3),
}


@pytest.fixture(scope="module")
def data(waveform):
    """Rows and what is known of them, by the number of classes, as frames."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 150)
    X = 2.5 * np.eye(3, 21)[truth] + rng.normal(size=(150, 21))
    pairs = rng.integers(0, 150, (250, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    blobs = stack_pairs(X, pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]])
    return {k: (pd.DataFrame(X, columns=NAMES), y) for k, (X, y) in {2: waveform, 3: blobs}.items()}


@pytest.fixture(params=ESTIMATORS)
def fitted(request, data):
    """A pipeline with a fitted scaler and estimator, and rows."""
    rows, y = data[3 if request.param.startswith("3") else 2]
    return make_pipeline(StandardScaler(), clone(ESTIMATORS[request.param])).fit(rows, y), rows


def as_sklearn(pipe):
    return Pipeline([*pipe.steps[:-1], ("model", pipe[-1].to_sklearn())])


def test_predictions_are_the_same_alone_and_in_a_pipeline(fitted):
    ours, rows = fitted
    theirs = as_sklearn(ours)
    assert type(theirs[-1]) is LogisticRegression
    features = ours[:-1].transform(rows)
    for mine, other, X in ((ours, theirs, rows), (ours[-1], theirs[-1], sparse.csr_matrix(features))):
        np.testing.assert_array_equal(other.classes_, mine.classes_)
        np.testing.assert_array_equal(other.predict(X), mine.predict(X))
        np.testing.assert_allclose(other.decision_function(X), mine.decision_function(X), rtol=0, atol=1e-12)
        if hasattr(mine, "predict_proba"):
            np.testing.assert_allclose(other.predict_proba(X), mine.predict_proba(X), rtol=0, atol=1e-12)
    # Where there are no probabilities, the score is monotone.
    order = np.argsort(ours.decision_function(rows), axis=0)
    score = theirs.predict_proba(rows)[:, 1] if order.ndim == 1 else None
    assert score is None or (np.diff(score[order]) >= 0).all()


def test_names_of_features_and_classes_are_kept_and_copied(data):
    rows, y = data[3]
    model = PairLogisticRegression(n_classes=3).fit(rows, y)
    model.orient(rows[:60], np.roll([1, 2, 3], 1)[model.predict(rows[:60]) - 1])
    plain = model.to_sklearn()
    assert plain.feature_names_in_.tolist() == NAMES
    assert plain.n_features_in_ == 21
    np.testing.assert_array_equal(plain.predict(rows), model.predict(rows))
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(rows[NAMES[::-1]])
    plain.coef_ *= 0
    assert model.coef_.any()
    unnamed = PairLogisticRegression(n_classes=3).fit(rows.to_numpy(), y)
    assert not hasattr(unnamed.to_sklearn(), "feature_names_in_")


@pytest.mark.parametrize("estimator", [SDUClassifier(), PairLogisticRegressionCV()])
def test_a_model_must_be_fitted(estimator):
    with pytest.raises(NotFittedError, match=type(estimator).__name__):
        estimator.to_sklearn()


def test_onnx_gives_the_same_by_the_recipe_of_the_page(fitted):
    pytest.importorskip("skl2onnx", minversion="1.20")
    pytest.importorskip("onnxruntime")
    page = Path(__file__).parents[1] / "docs" / "howto" / "save.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (recipe,) = (block for block in blocks if "to_onnx" in block)
    ours, rows = fitted
    for dtype, tol in ((np.float64, 1e-12), (np.float32, 1e-6)):
        found = {"np": np, "plain": as_sklearn(ours), "table": rows.astype(dtype)}
        exec(recipe, found)  # the page's own lines
        np.testing.assert_array_equal(found["label"], ours.predict(rows))
        np.testing.assert_allclose(found["probability"], found["plain"].predict_proba(rows), rtol=0, atol=tol)
