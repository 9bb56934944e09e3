import warnings

import numpy as np
import pytest

from sdulearn import PairKFold, PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.errors import OrientationWarning


def test_held_out_answers_count_by_their_weight(waveform):
    """A fold's score is the weighted mean log-probability of its answers by a fit on the other folds."""
    rows, codes = waveform
    rng = np.random.default_rng(0)
    weight = np.ones(len(codes))
    ends = np.flatnonzero(codes)
    weight[ends] = rng.choice([1.0, 20.0], np.abs(codes).max() + 1)[np.abs(codes[ends])]
    options = {"prior": 0.7, "prior_strength": 0}
    cv = PairKFold(3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrientationWarning)
        model = PairLogisticRegressionCV([0.5], covariance_powers=[0], cv=cv, **options).fit(rows, codes, weight)
        for k, (train, test) in enumerate(PairKFold(3, random_state=0).split(rows, codes)):
            share = weight[train][codes[train] != 0].sum() / weight[ends].sum()
            one = PairLogisticRegression(0.5 / share, covariance_power=0, **options)
            p = one.fit(rows[train], codes[train], weight[train]).predict_proba(rows[test])[:, 1]
            total = 0.0
            weights = 0.0
            for code in np.unique(codes[test][codes[test] != 0]):
                first, second = np.flatnonzero(codes[test] == code)
                same = p[first] * p[second] + (1 - p[first]) * (1 - p[second])
                total += weight[test][first] * np.log(same if code > 0 else 1 - same)
                weights += weight[test][first]
            assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(total / weights, abs=2e-3)
