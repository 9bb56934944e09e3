"""What held-out answers say of models."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairLogisticRegressionCV, fit_table, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.metrics import class_agreement
from sdulearn.metrics.accuracy import fold_spread
from sdulearn.prior import clopper_pearson
from sdulearn.report.records import ModelChoice
from sdulearn.workflow.judge import judge
from sdulearn.workflow.options import FitOptions


@pytest.fixture(scope="module")
def noise():
    """60 loose answers about noise in 80 columns, learned by heart: rows, what is known of them, and the model."""
    rng = np.random.default_rng(0)
    rows, y = stack_pairs(
        rng.normal(size=(120, 80)), np.arange(120).reshape(-1, 2), rng.random(60) < 0.4, unlabeled=None
    )
    return rows, y, PairLogisticRegressionCV([1e-4], covariance_power=0, n_classes=3, cv=2).fit(rows, y)


def judged(model, rows, y):
    options = FitOptions()
    data = SimpleNamespace(stacked=(rows, AnswerGraph.from_y(y)), random_points=None)
    _, accuracy, agreement, findings = judge((model, ModelChoice(), []), options, data)
    assert accuracy is None
    return agreement, findings


def test_answers_that_were_learned_by_heart_say_nothing(noise):
    """The interval is that of fewer answers, by what five folds of loose pairs have in common."""
    rows, y, model = noise
    assert class_agreement(model.predict(rows), y).agreement.value > 0.95
    found, (finding,) = judged(model, rows, y)
    assert found.agreement.value < 0.75
    assert finding.code == "no_better_than_guessing"
    n = 60 / fold_spread(5)
    share = found.agreement
    assert share.n == pytest.approx(n)
    assert (share.low, share.high) == pytest.approx(clopper_pearson(share.value * n, (1 - share.value) * n, 0.95))


def test_answers_between_the_examples_of_classes_are_not_held_out_and_do_not_count(answers_about, no_importances):
    """Four hubs with 15 answers each; the six answers that call them different are in every training part."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(4), np.repeat(np.arange(4), 15)]
    X = 4 * np.eye(4)[y] + rng.normal(size=(64, 4))
    linked = np.column_stack([rng.integers(0, 4, 60), np.arange(4, 64)])
    ends = np.r_[linked, [(a, b) for a in range(4) for b in range(a)]]
    table = pd.DataFrame(X, columns=list("abcd")).assign(id=[f"r{k}" for k in range(64)])
    counts = fit_table(table, answers_about(y, ends), classes=4).report.agreement.counts
    assert np.triu(np.array(counts.same) + np.array(counts.different)).sum() == 60
