import itertools
from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator

from sdulearn import PairLogisticRegression
from sdulearn.errors import InputError
from sdulearn.metrics import (
    class_agreement,
    cross_val_accuracy,
    pair_accuracy,
    pair_importance,
    pair_log_likelihood,
    pair_risk,
)
from sdulearn.pairs import read_pairs
from sdulearn.prior import clopper_pearson, estimate_prior


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


def test_an_unnatural_ratio_is_weighed_by_the_prior():
    """The model gets every similar pair right and every dissimilar one wrong: it agrees on ps of random pairs."""
    codes = np.repeat(np.r_[np.arange(1, 11), -np.arange(11, 41)], 2)
    assert pair_accuracy(np.ones(80), codes, prior=0.9).agreement == pytest.approx(0.82)
    assert pair_accuracy(np.ones(80), codes).agreement == pytest.approx(0.25)


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


def test_what_cannot_be_judged():
    for rate in (0.5, -0.1, {0: 0.5}, {0: 0.1, 1: 0.7}):
        with pytest.raises(InputError, match=r"`error_rate` must lie "):
            pair_accuracy([1.0, 2.0], [1, 1], error_rate=rate)
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


def seen_rows(values, ends, same):
    """Values of points and answers about them, as rows: decision values, and what is known of each."""
    ends = np.asarray(ends)
    codes = np.where(same, 1, -1) * np.arange(1, len(ends) + 1)
    return np.asarray(values, dtype=float)[ends.ravel()], np.column_stack([np.repeat(codes, 2), ends.ravel()])


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
    decision, known = seen_rows(h, ends, same)
    if not read_pairs(known).shares_points or len(set(same)) == 1:
        return
    grid = np.linspace(0.5, 1, 1001)
    expected = enumerated_likelihood(h, ends, same, np.clip(grid, 1e-4, 1 - 1e-4))
    found = pair_accuracy(decision, known)
    assert found.value == pytest.approx(grid[np.argmax(expected)])
    # Beyond the 95% region of chi-square, which would cover too rarely, and within that of 99.5%.
    for end, outside in ((found.low, grid <= found.low), (found.high, grid >= found.high)):
        assert end in (0.5, 1.0) or 3.84 < 2 * (expected.max() - expected[outside].max()) < 7.88
    # The baseline is the likelihood of one prediction for all points.
    always = enumerated_likelihood(np.ones(9, dtype=int), ends, same, np.clip(grid, 1e-4, 1 - 1e-4))
    assert found.majority == pytest.approx(grid[np.argmax(always)])


def test_points_of_loose_pairs_change_nothing():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.7, 1, -1)
    h = np.where(rng.random(600) < 0.15, -y, y)
    ends = rng.permutation(600).reshape(-1, 2)
    same = y[ends[:, 0]] == y[ends[:, 1]]
    decision, known = seen_rows(h, ends, same)
    by_pairs = pair_accuracy(decision, known[:, 0])
    assert pair_accuracy(decision, known) == by_pairs
    assert by_pairs.majority == estimate_prior(int(same.sum()), int((~same).sum())).value
    # One more answer, and the likelihood of components takes over: nearly the same.
    more = np.vstack([ends, ends[:2, 0]])
    decision, known = seen_rows(h, more, y[more[:, 0]] == y[more[:, 1]])
    shared = pair_accuracy(decision, known)
    assert shared.value == pytest.approx(by_pairs.value, abs=0.005)
    assert shared.low == pytest.approx(by_pairs.low, abs=0.01)
    assert shared.high == pytest.approx(by_pairs.high, abs=0.01)


def test_a_point_that_rows_show_with_several_values_is_decided_by_their_mean():
    """Of the hub's three rows one says +9 and two -1: its mean is +7/3, whatever the order of the rows."""
    ends = [(0, 1), (0, 2), (0, 3)]
    decision, known = seen_rows([0, 1, 1, -1], ends, [True, True, False])
    for places in itertools.permutations([0, 2, 4]):
        decision[list(places)] = [9.0, -1.0, -1.0]
        assert pair_accuracy(decision, known).value == 1
        assert pair_accuracy(decision, known, sample_weight=np.ones(6)).value == 1
    decision[0::2] = [0.5, -1.0, -1.0]
    # Three of four points are right: p^3 q + p q^3 is largest at 1/2.
    assert pair_accuracy(decision, known).value == 0.5


def test_wrong_answers_of_a_known_rate_take_their_factor():
    """E[s h h'] = (1 - 2 e) (2 accuracy - 1)^2, by 20,000 loose pairs."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random((20_000, 2)) < 0.6, 1, -1)
    h = np.where(rng.random(y.shape) < 0.1, -y, y)
    answers = np.where(rng.random(20_000) < 0.15, -1, 1) * y[:, 0] * y[:, 1]
    codes = np.repeat(answers * np.arange(1, 20_001), 2)
    assert pair_accuracy(h.ravel(), codes).value == pytest.approx((1 + 0.8 * np.sqrt(0.7)) / 2, abs=0.01)
    found = pair_accuracy(h.ravel()[:4000], codes[:4000], error_rate=0.15)
    assert found.value == pytest.approx(0.9, abs=0.015)
    assert found.low < 0.9 < found.high


def test_answers_of_one_who_guesses_change_nothing():
    """A star that one person answers, and another who is wrong every other time: only the first counts."""
    rng = np.random.default_rng(5)
    y = np.where(rng.random(40) < 0.7, 1, -1)
    h = np.where(rng.random(40) < 0.15, -y, y)
    ends = np.column_stack([np.zeros(39, dtype=int), np.arange(1, 40)])
    same = y[0] == y[1:]
    decision, known = seen_rows(h, ends, same)
    alone = pair_accuracy(decision, known, error_rate=0.1)
    decision, known = seen_rows(h, np.tile(ends, (2, 1)), np.r_[same, rng.random(39) < 0.5])
    known = np.column_stack([known, np.repeat([1, 2], 78)])
    both = pair_accuracy(decision, known, error_rate={1: 0.1, 2: 0.5})
    assert (both.value, both.low, both.high) == pytest.approx((alone.value, alone.low, alone.high), abs=2e-3)
    # Taken for as good as the first, the guesses spoil the estimate.
    assert pair_accuracy(decision, known, error_rate=0.1).value < alone.value - 0.02


def test_labels_tell_a_classifier_from_its_mirror_image():
    ends = [(0, 1), (1, 2), (2, 3), (3, 4)]
    y = np.array([1, 1, -1, 1, -1])
    decision, known = seen_rows(-y, ends, [y[a] == y[b] for a, b in ends])
    assert pair_accuracy(decision, known).value == 1
    labels = np.zeros(len(known), dtype=int)
    labels[0] = y[0]
    named = np.column_stack([known, np.zeros(len(known), dtype=int), labels])
    assert pair_accuracy(decision, named).value == 0
    assert pair_accuracy(-decision, named).value == 1


class Constant(BaseEstimator):
    """Says nothing."""

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return np.ones(len(X))

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize(
    "judge",
    [
        lambda X, y: pair_accuracy(np.ones(len(y)), y),
        lambda X, y: cross_val_accuracy(Constant(), X, y),
        lambda X, y: class_agreement(np.ones(len(y), dtype=int), y),
        lambda X, y: pair_risk(np.ones(len(y)), y, prior=0.7),
        lambda X, y: pair_log_likelihood(Constant(), X, y),
        lambda X, y: pair_importance(Constant(), X, y, scoring="agreement"),
    ],
    ids=["pair_accuracy", "cross_val_accuracy", "class_agreement", "pair_risk", "pair_log_likelihood", "importance"],
)
def test_rows_without_an_answer_are_refused_by_name(judge):
    """A silent 1/2 hid that a splitter tears answers apart."""
    with pytest.raises(ValueError, match=r"`y` holds no answers .* give `cv=PairKFold\(\)`"):
        judge(np.zeros((4, 1)), np.zeros(4, dtype=int))


def test_points_that_were_chosen_do_not_count():
    """A star: of 40 random points 36 are predicted rightly, of 60 chosen ones 30; its centre is chosen too."""
    truth = np.ones(101, dtype=int)
    truth[51:] = -1
    predicted = truth.copy()
    predicted[[1, 2, 98, 99]] *= -1
    chosen = np.arange(21, 81)
    predicted[chosen[::2]] *= -1
    ends = np.column_stack([np.arange(1, 101), np.zeros(100, dtype=int)])
    decision, known = seen_rows(predicted, ends, truth[ends[:, 0]] == truth[ends[:, 1]])
    random = np.zeros(len(known), dtype=bool)
    random[::2] = ~np.isin(ends[:, 0], chosen)
    found = pair_accuracy(decision, known, random_points=random)
    assert (found.value, found.n_answers, found.basis) == (0.9, 40, "random questions")
    assert (found.low, found.high) == pytest.approx(clopper_pearson(36, 4, 0.95))
    assert pair_accuracy(decision, known).value < 0.7
    nobody = pair_accuracy(decision, known, random_points=np.zeros(len(known), dtype=bool))
    assert (nobody.value, nobody.low, nobody.high, nobody.n_answers) == (0.5, 0.5, 1.0, 0)
    # Where all points are random it is as if nothing had been said.
    everybody = pair_accuracy(decision, known, random_points=np.ones(len(known), dtype=bool))
    assert everybody == pair_accuracy(decision, known)


def test_random_pairs_beside_chosen_ones_have_the_likelihood_of_pairs():
    """What connects no others cannot be told from its mirror image, and random pairs are as they are alone."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(400) < 0.6, 1, -1)
    predicted = np.where(rng.random(400) < 0.15, -truth, truth)
    ends = np.arange(400).reshape(-1, 2)
    decision, known = seen_rows(predicted, ends, truth[ends[:, 0]] == truth[ends[:, 1]])
    random = np.arange(len(known)) < 200
    part, alone = (pair_accuracy(decision[:200], known[:200]), pair_accuracy(decision, known, random_points=random))
    assert alone.value == pytest.approx(part.value, abs=1e-3)
    assert alone.n_answers == 100


def test_a_mask_of_points_has_one_entry_a_row():
    with pytest.raises(InputError, match="`random_points` must hold True or False for each of the 4 rows"):
        pair_accuracy(np.ones(4), [1, 1, -2, -2], random_points=[True, False])


def numbers(estimate):
    return [value for value in astuple(estimate) if not isinstance(value, str)]


def weighted_answers(n_answers=30):
    """Decisions and answers about 16 points, some of both wrong, a few labels, and a weight of each row."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(16) < 0.6, 1, -1)
    first = rng.integers(0, 16, n_answers)
    second = (first + rng.integers(1, 16, n_answers)) % 16
    same = (truth[first] == truth[second]) ^ (rng.random(n_answers) < 0.1)
    points = np.append(np.column_stack([first, second]).ravel(), [0, 1, 2])
    codes = np.append(np.repeat(np.where(same, 1, -1) * np.arange(1, n_answers + 1), 2), [0, 0, 0])
    labels = np.append(np.zeros(2 * n_answers, dtype=int), truth[:3])
    decision = (truth * np.where(rng.random(16) < 0.2, -1.0, 1.0))[points]
    weight = np.append(rng.uniform(0.3, 3, n_answers).repeat(2), [0.5, 1.0, 2.0])
    return decision, np.column_stack([codes, points, np.zeros_like(codes), labels]), weight


KINDS = {
    "loose": (1, {}),
    "contradictory": (2, {}),
    "wrong at a rate": (2, {"error_rate": 0.1}),
    "loose, wrong at a rate": (1, {"error_rate": 0.1}),
    "labelled": (4, {}),
    "one kind": (1, {"prior": 0.7}),
}


def answers_of_kind(kind):
    decision, y, weight = weighted_answers()
    if kind == "one kind":
        y[y[:, 0] < 0, 0] = 0
    n_columns, options = KINDS[kind]
    return decision, y[:, 0] if n_columns == 1 else y[:, :n_columns], weight, options


@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_weights_changes_no_accuracy(kind):
    decision, y, weight, options = answers_of_kind(kind)
    one = numbers(pair_accuracy(decision, y, sample_weight=weight, **options))
    for unit in (0.01,) if kind in ("contradictory", "labelled") else (0.01, 7.3, 100):
        other = numbers(pair_accuracy(decision, y, sample_weight=unit * weight, **options))
        assert other == pytest.approx(one, rel=1e-10)
    plain = pair_accuracy(decision, y, **options)
    assert pair_accuracy(decision, y, sample_weight=np.full(len(y), 0.1), **options) == plain


@pytest.mark.parametrize("kind", KINDS)
def test_weight_0_is_a_row_left_out(kind):
    decision, y, weight, options = answers_of_kind(kind)
    weight[20:32] = 0
    weight[-1] = 0
    kept = weight > 0
    found = pair_accuracy(decision, y, sample_weight=weight, **options)
    assert found == pair_accuracy(decision[kept], y[kept], sample_weight=weight[kept], **options)
    assert found != pair_accuracy(decision, y, sample_weight=np.where(kept, weight, 1), **options)


def test_the_interval_of_25_questions_asked_three_times_covers_at_every_accuracy():
    """By enumeration: j of the predictions "same" and "different" are wrong, and all repeats agree."""
    predicted = np.tile([1, 1, 1, -1], 25)[:50]
    ends = np.repeat(np.arange(50).reshape(-1, 2), 3, axis=0)
    said = np.repeat(predicted[::2] == predicted[1::2], 3)
    found = [pair_accuracy(*seen_rows(predicted, ends, said ^ (np.arange(75) < 3 * j))) for j in range(26)]
    low, high = np.array([(one.low, one.high) for one in found]).T
    for accuracy in np.linspace(0.5, 0.99, 50):
        chance = binom.pmf(np.arange(26), 25, 2 * accuracy * (1 - accuracy))
        assert chance @ ((low <= accuracy) & (accuracy <= high)) > 0.945


def one_slip():
    """60 loose answers, 48 of them as predicted; three questions are asked again, one is answered both ways."""
    ends = np.vstack([np.arange(120).reshape(-1, 2), [[0, 1], [2, 3], [4, 5]]])
    predicted = np.tile([1, 1, 1, -1], 30)
    same = predicted[ends[:, 0]] == predicted[ends[:, 1]]
    same[10:22] ^= True
    same[-1] ^= True
    return seen_rows(predicted, ends, same)


def test_an_error_rate_that_nobody_knows_widens_the_interval():
    decision, known = one_slip()
    found = pair_accuracy(decision, known)
    for rate in (0.01, 0.03, 0.1):
        given = pair_accuracy(decision, known, error_rate=rate)
        assert found.high - found.low > given.high - given.low
