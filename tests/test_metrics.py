import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegression, SDUClassifier
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.errors import InputError
from sdulearn.metrics import cross_val_accuracy, held_out_decisions, pair_accuracy, point_accuracy
from sdulearn.model_selection import splitter_of
from sdulearn.prior import clopper_pearson, prior_from_share


def test_agreement_is_accuracy_squared_exactly():
    """E[s h h'] = (2 accuracy - 1)^2 for every prior and every pair of error rates, by enumeration."""
    for p, e_pos, e_neg in itertools.product((0.2, 0.5, 0.9), (0.0, 0.1, 0.6), (0.05, 0.3)):
        points = [(y, h, q * r) for y, q, e in ((1, p, e_pos), (-1, 1 - p, e_neg)) for h, r in ((y, 1 - e), (-y, e))]
        mean = sum(a[2] * b[2] * a[0] * b[0] * a[1] * b[1] for a in points for b in points)
        right = p * (1 - e_pos) + (1 - p) * (1 - e_neg)
        assert mean == pytest.approx((2 * right - 1) ** 2, abs=1e-12)
        # All pairs of that population, each by its probability: which class is which, they do not say.
        drawn = list(itertools.product(points, points))
        codes = [a[0] * b[0] * k for k, (a, b) in enumerate(drawn, 1)]
        decision = [end[1] for ends in drawn for end in ends]
        weight = np.repeat([a[2] * b[2] for a, b in drawn], 2)
        found = pair_accuracy(decision, np.repeat(codes, 2), sample_weight=weight)
        assert found.agreement == pytest.approx((1 + mean) / 2)
        assert found.value == pytest.approx(max(right, 1 - right))


@pytest.mark.parametrize("prior", [0.5, 0.7])
@pytest.mark.parametrize("natural", [True, False])
def test_the_interval_of_the_accuracy_covers_the_truth(prior, natural):
    """200 draws of 300 answers by a predictor that errs on 12% of the larger class and 20% of the other."""
    rng = np.random.default_rng(3)
    truth = prior * 0.88 + (1 - prior) * 0.8
    covered, values = 0, []
    for _ in range(200):
        y = np.where(rng.random((900, 2)) < prior, 1, -1)
        h = np.where(rng.random(y.shape) < np.where(y > 0, 0.12, 0.2), -y, y)
        same = y[:, 0] == y[:, 1]
        # An unnatural ratio: half similar, half dissimilar.
        keep = np.arange(300) if natural else np.r_[np.flatnonzero(same)[:150], np.flatnonzero(~same)[:150]]
        codes = np.repeat(np.where(same[keep], 1, -1) * np.arange(1, 301), 2)
        found = pair_accuracy(h[keep].ravel().astype(float), codes, prior=None if natural else prior)
        covered += found.low <= truth <= found.high
        values.append(found.value)
    assert abs(np.mean(values) - truth) < 0.01
    assert covered >= 184


def test_an_unnatural_ratio_is_weighed_by_the_prior():
    """The model gets every similar pair right and every dissimilar one wrong: it agrees on ps of random pairs."""
    codes = np.repeat(np.r_[np.arange(1, 11), -np.arange(11, 41)], 2)
    assert pair_accuracy(np.ones(80), codes, prior=0.9).agreement == pytest.approx(0.82)
    assert pair_accuracy(np.ones(80), codes).agreement == pytest.approx(0.25)


def test_weights_count_as_answers_and_their_unit_does_not_matter():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.where(rng.random(40) < 0.6, 1, -1) * np.arange(1, 41), 2)
    z = rng.normal(size=80)
    times = rng.integers(1, 4, 40)
    again = np.repeat(np.arange(40), times)
    repeated = np.repeat(np.sign(codes[::2])[again] * np.arange(1, len(again) + 1), 2)
    weighted = pair_accuracy(z, codes, sample_weight=np.repeat(times, 2))
    plain = pair_accuracy(z.reshape(-1, 2)[again].ravel(), repeated)
    assert weighted.value == pytest.approx(plain.value)
    scaled = pair_accuracy(z, codes, sample_weight=np.repeat(100.0 * times, 2))
    assert (scaled.low, scaled.high) == pytest.approx((weighted.low, weighted.high))
    assert pair_accuracy(z, codes, sample_weight=np.full(80, 7.0)).low == pytest.approx(pair_accuracy(z, codes).low)


def test_answers_of_unequal_weight_pin_the_accuracy_down_less():
    """By hand: 60 answers, 50 agreed with, half of them of weight 3; Clopper and Pearson at the effective number."""
    # The first pair is dissimilar and predicted so; of the others the last ten are predicted dissimilar.
    codes = np.repeat(np.r_[-1, np.arange(2, 61)], 2)
    z = np.ones(120)
    z[0] = -1
    z[100::2] = -1
    times = np.tile([1.0, 3.0], 30)
    agreement = times[:50].sum() / times.sum()
    n = times.sum() ** 2 / (times**2).sum()
    assert n == pytest.approx(48)
    share = beta.ppf(0.025, n * agreement, n * (1 - agreement) + 1)
    found = pair_accuracy(z, codes, sample_weight=np.repeat(times, 2))
    assert found.agreement == pytest.approx(agreement)
    assert found.low == pytest.approx((1 + np.sqrt(2 * share - 1)) / 2)


def test_cross_validation_judges_by_models_that_have_not_seen_the_pair(waveform):
    rows, codes = waveform
    model = SDUClassifier()
    reference = model.fit(rows, codes).decision_function(rows)
    decision = held_out_decisions(model, rows, codes, reference, cv=PairKFold(4, random_state=3))
    for train, test in PairKFold(4, random_state=3).split(rows, codes):
        z = SDUClassifier().fit(rows[train], codes[train]).decision_function(rows[test])
        np.testing.assert_allclose(decision[test], z if z @ reference[test] >= 0 else -z)
    found = cross_val_accuracy(model, rows, codes, cv=PairKFold(4, random_state=3))
    assert found == pair_accuracy(decision, codes)


def test_cross_validated_accuracy_is_about_the_true_one():
    """Ten draws of 300 pairs: the mean estimate is within two points of the truth, and most intervals cover it."""
    X, y = make_waveform(8000, random_state=5)
    misses = []
    covered = 0
    for seed in range(10):
        rows, codes, X_test, y_test = sample_sdu(
            X, y, n_pairs=300, n_unlabeled=100, prior=0.7, n_test=2000, random_state=seed
        )
        model = make_pipeline(StandardScaler(), PairLogisticRegression(0.02))
        found = cross_val_accuracy(model, rows, codes)
        truth = float(np.mean(model.fit(rows, codes).predict(X_test) == y_test))
        misses.append(found.value - truth)
        covered += found.low <= truth <= found.high
    assert abs(np.mean(misses)) < 0.02
    assert covered >= 8


def test_frames_and_weights_reach_the_estimator(waveform):
    rows, codes = waveform
    weight = np.random.default_rng(0).uniform(0.5, 2, 1000)[np.abs(codes)]
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
    by_frame = cross_val_accuracy(SDUClassifier(), frame, codes, sample_weight=weight)
    assert by_frame == cross_val_accuracy(SDUClassifier(), rows, codes, sample_weight=weight)
    assert by_frame != cross_val_accuracy(SDUClassifier(), rows, codes)


def test_what_cannot_be_judged():
    with pytest.raises(InputError, match="`y` marks none of positive weight"):
        pair_accuracy([1.0, 2.0], [0, 0])
    with pytest.raises(InputError, match=r"`decision` has shape \(3,\), but `y` has 2 rows"):
        pair_accuracy([1.0, 2.0, 3.0], [1, 1])
    with pytest.raises(InputError, match="at least two pairs of a kind"):
        cross_val_accuracy(PairLogisticRegression(), np.arange(4.0)[:, None], [1, 1, -2, -2])


@pytest.mark.parametrize("kind", ["similar", "dissimilar"])
def test_one_kind_of_answer_tells_the_accuracy_only_with_prior_and_unlabeled_rows(kind):
    """200 draws of 400 answers and 800 unlabeled rows; the predictor errs on 15% and 25% of the classes."""
    rng = np.random.default_rng(8)
    truth = 0.7 * 0.85 + 0.3 * 0.75
    covered = 0
    values = []
    for _ in range(200):
        y = np.where(rng.random((1500, 2)) < 0.7, 1, -1)
        keep = np.flatnonzero((y[:, 0] == y[:, 1]) == (kind == "similar"))[:400]
        free = np.where(rng.random(800) < 0.7, 1, -1)
        classes = np.r_[y[keep].ravel(), free]
        h = np.where(rng.random(len(classes)) < np.where(classes > 0, 0.15, 0.25), -classes, classes)
        sign = 1 if kind == "similar" else -1
        codes = np.r_[np.repeat(sign * np.arange(1, len(keep) + 1), 2), np.zeros(800, dtype=int)]
        found = pair_accuracy(h.astype(float), codes, prior=0.7)
        covered += found.low <= truth <= found.high
        values.append(found.value)
    assert abs(np.mean(values) - truth) < 3 * np.std(values) / np.sqrt(200)
    assert covered >= 181
    unknown = pair_accuracy(h.astype(float), codes)
    assert (unknown.low, unknown.high) == (0.5, 1.0)


class Contrary(SDUClassifier):
    """Names the classes the other way round on every other data set that it is fitted on."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if int(np.sum(np.abs(y))) // 2 % 2:
            self._flip()
        return self


def test_folds_that_name_the_classes_the_other_way_round_are_turned(waveform):
    rows, codes = waveform
    reference = SDUClassifier().fit(rows, codes).decision_function(rows)
    plain = held_out_decisions(SDUClassifier(), rows, codes, reference, cv=PairKFold(6, random_state=2))
    turned = held_out_decisions(Contrary(), rows, codes, reference, cv=PairKFold(6, random_state=2))
    odd = [int(np.sum(np.abs(codes[train]))) // 2 % 2 for train, _ in PairKFold(6, random_state=2).split(rows, codes)]
    assert 0 < sum(odd) < 6
    np.testing.assert_allclose(turned, plain)


def test_a_model_is_not_judged_on_the_folds_that_chose_its_penalty(waveform):
    """A number of folds means other folds here than within SDUClassifierCV and PairLogisticRegressionCV."""
    rows, codes = waveform
    reference = np.ones(len(codes))
    by_number = held_out_decisions(SDUClassifier(), rows, codes, reference, cv=5)
    by_chosen = held_out_decisions(SDUClassifier(), rows, codes, reference, cv=splitter_of(5))
    assert not np.allclose(np.abs(by_number), np.abs(by_chosen))


def test_the_interval_of_the_accuracy_follows_the_effective_number_of_answers():
    """Equal weights of any unit are counts; uneven ones are worth (sum w)^2 / sum w^2 answers."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(1, 41) * np.where(np.arange(40) < 25, 1, -1), 2)
    decision = rng.normal(size=80)
    plain = pair_accuracy(decision, codes)
    unit = pair_accuracy(decision, codes, sample_weight=np.full(80, 100.0))
    assert (unit.low, unit.high) == pytest.approx((plain.low, plain.high))
    weight = np.repeat(np.where(np.arange(40) < 10, 9.0, 1.0), 2)
    by_pair = weight[::2]
    found = pair_accuracy(decision, codes, sample_weight=weight)
    effective = by_pair.sum() ** 2 / (by_pair @ by_pair)
    low, high = clopper_pearson(found.agreement * effective, (1 - found.agreement) * effective, 0.95)
    assert effective < 20
    assert (found.low, found.high) == pytest.approx((prior_from_share(low), prior_from_share(high)))


def enumerated_likelihood(h, ends, same, grid):
    """Log-probability of the answers at each accuracy, summed over which predictions are right."""
    found = np.zeros(len(grid))
    for right in itertools.product((False, True), repeat=len(h)):
        y = np.where(right, h, -h)
        if all((y[a] == y[b]) == s for (a, b), s in zip(ends, same, strict=True)):
            found += grid ** sum(right) * (1 - grid) ** (len(h) - sum(right))
    return np.log(found)


@pytest.mark.parametrize("seed", range(8))
def test_the_accuracy_by_points_has_the_likelihood_of_all_that_may_be_right(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(9) < 0.6, 1, -1)
    h = np.where(rng.random(9) < 0.2, -y, y)
    ends = [pair for pair in itertools.combinations(range(9), 2) if rng.random() < 0.25] or [(0, 1)]
    same = [y[a] == y[b] for a, b in ends]
    grid = np.linspace(0.5, 1, 501)[:-1]
    expected = enumerated_likelihood(h, ends, same, grid)
    found = point_accuracy(h, ends, same)
    inside = grid[2 * (expected.max() - expected) <= 3.841458820694124]
    best = np.argmax(expected)
    assert found.value == pytest.approx(1.0 if best == 499 else grid[best])
    assert (found.low, found.high) == pytest.approx((inside[0], 1.0 if inside[-1] == grid[-1] else inside[-1]))


def test_loose_pairs_by_points_are_pairs():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.7, 1, -1)
    h = np.where(rng.random(600) < 0.15, -y, y)
    ends = np.arange(600).reshape(-1, 2)
    same = y[ends[:, 0]] == y[ends[:, 1]]
    codes = np.repeat(np.where(same, 1, -1) * np.arange(1, 301), 2)
    by_pairs = pair_accuracy(h, codes)
    by_points = point_accuracy(h, ends, same)
    assert by_points.value == pytest.approx(by_pairs.value, abs=1e-3)
    assert by_points.agreement == by_pairs.agreement
    # The profile interval is a little narrower than Clopper and Pearson's, which never covers too seldom.
    assert by_points.low == pytest.approx(by_pairs.low, abs=0.006)
    assert by_points.high == pytest.approx(by_pairs.high, abs=0.006)


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_the_interval_covers_where_answers_share_points(wrong):
    """100 draws of 200 answers about 60 points, of which the predictor gets 80% right; some answers may be wrong."""
    rng = np.random.default_rng(2)
    covered = 0
    values = []
    for _ in range(100 if wrong == 0 else 20):
        y = np.where(rng.random(60) < 0.7, 1, -1)
        h = np.where(rng.random(60) < 0.2, -y, y)
        ends = rng.integers(0, 60, (230, 2))
        ends = ends[ends[:, 0] != ends[:, 1]][:200]
        same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(len(ends)) < wrong)
        found = point_accuracy(h, ends, same)
        covered += found.low <= 0.8 <= found.high
        values.append(found.value)
    assert np.mean(values) == pytest.approx(0.8, abs=0.03)
    assert covered >= (88 if wrong == 0 else 16)
