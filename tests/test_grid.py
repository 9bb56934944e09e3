"""Scores of a grid of settings, fold by fold, against fits and risks that know nothing of a grid."""

import numpy as np
import pytest

from sdulearn import PairKFold, SDUClassifier, SDUClassifierCV
from sdulearn.linear import Settings
from sdulearn.metrics import pair_risk


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_score_is_the_risk_of_a_separate_fit_on_held_out_answers(waveform, loss, weighted):
    rows, codes = waveform
    weight = None
    if weighted:
        weight = np.random.default_rng(0).choice([1.0, 10.0], 1000)[np.abs(codes)]
    alphas, gammas = [0.1, 1e-3], [0.2, 0.7, 1.0]
    cv = PairKFold(3, random_state=4)
    model = SDUClassifierCV(loss=loss, alphas=alphas, gammas=gammas, prior=0.7, cv=cv).fit(rows, codes, weight)
    results = model.cv_results_
    for k, (train, test) in enumerate(PairKFold(3, random_state=4).split(rows, codes)):
        its_weight = {} if weight is None else {"sample_weight": weight[train]}
        for setting, score in zip(results["params"], results[f"split{k}_test_score"], strict=True):
            one = SDUClassifier(loss=loss, prior=0.7, **setting).fit(rows[train], codes[train], **its_weight)
            held_out = None if weight is None else weight[test]
            risk = pair_risk(one.decision_function(rows[test]), codes[test], prior=0.7, sample_weight=held_out)
            assert score == pytest.approx(1 - risk, abs=1e-9)


@pytest.mark.parametrize("best", range(6))
def test_the_setting_of_the_best_score_is_chosen(best):
    settings = Settings.of("sddu", [0.2, 0.7], [1.0, 0.1, 0.01])
    scores = np.zeros((2, 6))
    scores[:, best] = [0.5, 0.6]
    alpha, g, chosen = settings.choose(scores)
    expected = settings.params[best]
    assert {"alpha": alpha, "gamma": chosen["gamma_"]} == expected
    assert g == (0.0, expected["gamma"], 1 - expected["gamma"])
