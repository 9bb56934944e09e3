"""What all clusterings must do: scikit-learn's checks, frames, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sdulearn.baselines import ConstrainedKMeans, ITMLKMeans, SpectralPairs, clustering_accuracy

ALL = [ConstrainedKMeans, ITMLKMeans, SpectralPairs]
WITH_PREDICT = [ConstrainedKMeans, ITMLKMeans]


class _FromClasses:
    """Adapter: scikit-learn's checks give class labels as ``y``; rows 0-1, 2-3, 4-5 become pairs.

    With one cluster, as some checks ask for, no pair can be dissimilar.
    """

    def fit(self, X, y=None):
        return super().fit(X, y if y is None else self._codes(y))

    def _codes(self, y):
        y = np.asarray(y)
        if y.dtype.kind not in "iuf" or y.ndim != 1 or not np.isfinite(y).all():
            return y
        codes = np.zeros(len(y), dtype=np.int64)
        for k in range(min(3, len(y) // 2)):
            a, b = 2 * k, 2 * k + 1
            codes[[a, b]] = k + 1 if y[a] == y[b] else -k - 1
        return codes if self.n_clusters > 1 else np.maximum(codes, 0)


class CheckedConstrainedKMeans(_FromClasses, ConstrainedKMeans):
    pass


class CheckedITMLKMeans(_FromClasses, ITMLKMeans):
    pass


class CheckedSpectralPairs(_FromClasses, SpectralPairs):
    pass


@parametrize_with_checks([CheckedConstrainedKMeans(), CheckedITMLKMeans(), CheckedSpectralPairs()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks cut max_iter and feed data of fewer distinct rows than clusters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("method", ALL)
def test_fit_predict_uses_the_pairs(method, blobs):
    X, y, codes = blobs
    model = method(random_state=0)
    np.testing.assert_array_equal(clone(model).fit_predict(X, codes), model.fit(X, codes).labels_)
    assert clustering_accuracy(y, model.labels_) > 0.9


@pytest.mark.parametrize("method", ALL)
def test_feature_names_and_frames(method, blobs):
    X, _, codes = blobs
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = method(random_state=0).fit(frame, pd.Series(codes))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    by_array = method(random_state=0).fit(X, codes)
    np.testing.assert_array_equal(model.labels_, by_array.labels_)
    if method in WITH_PREDICT:
        np.testing.assert_array_equal(model.predict(frame), by_array.predict(X))
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("method", WITH_PREDICT)
def test_predict(method, blobs):
    X, y, codes = blobs
    model = method(random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, codes)
    assert clustering_accuracy(y, model.predict(X)) > 0.9
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(X[:, :2])


@pytest.mark.parametrize("method", WITH_PREDICT)
def test_in_a_pipeline(method, blobs):
    X, y, codes = blobs
    pipe = make_pipeline(StandardScaler(), method(random_state=0)).fit(X, codes)
    assert clustering_accuracy(y, pipe.predict(X)) > 0.9


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([1, 0, 0, 0], "half a pair"),
        ([1, 1, 1, 0], "not class labels"),
        ([1, -1, 0, 0], "same sign"),
        ([0.5, 0.5, 0, 0], "fractions"),
        (["a", "a", "b", "b"], "pair codes are integers"),
        ([0, 0, 0], "inconsistent numbers of samples"),
    ],
)
def test_bad_codes(method, y, text):
    with pytest.raises(ValueError, match=text):
        method().fit(np.arange(4.0)[:, None], y)


@pytest.mark.parametrize("method", ALL)
def test_bad_rows(method):
    with pytest.raises(ValueError, match="contains NaN"):
        method().fit([[np.nan], [1.0], [2.0]], [1, 1, 0])
    with pytest.raises(ValueError, match="should be >= `n_clusters=5`"):
        method(5).fit(np.arange(4.0)[:, None], [1, 1, 0, 0])
    with pytest.raises(ValueError, match="n_init"):
        method(n_init=0).fit(np.arange(4.0)[:, None], [1, 1, 0, 0])
