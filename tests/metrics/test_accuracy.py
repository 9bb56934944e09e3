import itertools
from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator

from sdulearn import PairLogisticRegression, risks
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import InputError, SignlessWarning
from sdulearn.metrics import (
    audit_predictions,
    class_agreement,
    cross_val_accuracy,
    cross_val_agreement,
    held_out_accuracy,
    pair_accuracy,
    pair_importance,
    pair_log_likelihood,
    pair_risk,
)
from sdulearn.prior import clopper_pearson, estimate_prior, prior_from_share


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
    found = pair_accuracy(np.ones(80), codes, prior=0.9)
    assert (found.agreement, found.majority) == pytest.approx((0.82, 0.9))
    # Ten pairs weigh 0.082 each and thirty 0.006.
    n = 1 / (10 * 0.082**2 + 30 * 0.006**2)
    low, _ = clopper_pearson(0.82 * n, 0.18 * n, 0.95)
    assert found.low == pytest.approx(prior_from_share(low))
    assert pair_accuracy(np.ones(80), codes).agreement == pytest.approx(0.25)


def test_what_cannot_be_judged():
    for rate in (0.5, -0.1, {0: 0.5}, {0: 0.1, 1: 0.7}):
        with pytest.raises(InputError, match=r"`error_rate` must lie "):
            pair_accuracy([1.0, 2.0], [1, 1], error_rate=rate)
    with pytest.raises(InputError, match=r"`decision` has shape \(3,\), but `y` has 2 rows"):
        pair_accuracy([1.0, 2.0, 3.0], [1, 1])
    with pytest.raises(InputError, match=r"labels -1 and \+1"):
        pair_accuracy([1.0, 2.0], [[1, 0, 0, 2], [1, 1, 0, 0]])
    with pytest.raises(InputError, match="at least two pairs of a kind"):
        cross_val_accuracy(PairLogisticRegression(), np.arange(4.0)[:, None], [1, 1, -2, -2])
    with pytest.raises(InputError, match="`decision` is NaN for 1 row"):
        pair_accuracy([1.0, np.nan, 1.0, -1.0], [1, 1, -2, -2])
    with pytest.raises(InputError, match="`prior` must lie strictly"):
        pair_accuracy(np.ones(4), [1, 1, -2, -2], prior=1.5)
    with pytest.raises(InputError, match="`random_points` must contain True or False for each of the 4 rows"):
        pair_accuracy(np.ones(4), [1, 1, -2, -2], random_points=[True, False])


@pytest.mark.parametrize("change", [lambda z: (z + 3) // 2, lambda z: (z + 1) // 2, lambda z: 0.5 + 0.2 * z])
def test_classes_without_signs_and_probabilities_are_not_decisions(change):
    decision, y = np.array([1.0, 1, 1, -1, -1, -1]), [1, 1, -2, -2, 3, 3]
    assert pair_accuracy(decision, y).value == 1
    with pytest.warns(SignlessWarning, match=r"`decision_function`, or classes -1 and \+1"):
        pair_accuracy(change(decision), y)
    # A model may predict one class for all rows.
    for one_class in (np.ones(6), np.arange(0.5, 6.5)):
        pair_accuracy(one_class, y)


@pytest.mark.parametrize("confidence", [95, 1.0, 0.0, -0.5])
@pytest.mark.parametrize(
    "judge",
    [
        lambda level: pair_accuracy(np.ones(4), [1, 1, -2, -2], confidence=level),
        lambda level: class_agreement(np.ones(4), [1, 1, -2, -2], confidence=level),
        lambda level: cross_val_accuracy(None, np.ones((4, 1)), [1, 1, -2, -2], confidence=level),
        lambda level: cross_val_agreement(None, np.ones((4, 1)), [1, 1, -2, -2], confidence=level),
        lambda level: audit_predictions({"a": 1}, {"a": 1}, confidence=level),
        lambda level: estimate_prior(58, 42, confidence=level),
    ],
)
def test_a_level_is_between_0_and_1(judge, confidence):
    """And refused before anything is fitted."""
    with pytest.raises(InputError, match="`confidence`"):
        judge(confidence)


@pytest.mark.parametrize("kind", [1, -1])
@pytest.mark.parametrize("shared", [False, True])
def test_one_kind_of_answer_tells_the_accuracy_by_the_risk_of_the_paper(kind, shared):
    """The risk with U at the prior 0.7; the error by pairs and unlabeled rows, wider where points are shared."""
    rng = np.random.default_rng(8)
    z = rng.normal(size=120) + 0.5
    points = np.r_[np.arange(40) // 2 if shared else np.arange(40), 40 + np.arange(80)]
    z[:40] = z[points[:40]]
    y = np.column_stack([np.r_[np.repeat(kind * np.arange(1, 21), 2)[rng.permutation(40)], np.zeros(80, int)], points])
    if shared:
        y[:40, 0] = np.tile(kind * np.arange(1, 21), 2)
    found = pair_accuracy(z, y, prior=0.7, confidence=0.9)
    assert found.value == pytest.approx(1 - pair_risk(z, y[:, 0], prior=0.7, risk="su" if kind > 0 else "du"))
    g = risks.mixture("su" if kind > 0 else "du")
    positive, negative = risks.row_weights(g, 0.7, AnswerGraph.from_y(y).source, np.ones(120))
    terms = np.where(z > 0, negative, positive)
    by_pair = terms[AnswerGraph.from_y(y).end_rows].sum(axis=1)
    error = np.sqrt((1 + shared) * (20 * by_pair.var() + 80 * terms[40:].var()))
    expected = np.clip([found.value - 1.6449 * error, found.value + 1.6449 * error], 0, 1)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-4)
    assert found.majority == 0.7
    for unknown in (pair_accuracy(z, y), pair_accuracy(z, y, prior=0.5), pair_accuracy(z[:40], y[:40], prior=0.7)):
        assert (unknown.value, unknown.low, unknown.high) == (0.5, 0.5, 1.0)


def seen_rows(values, ends, same):
    """Values of points and answers about them, as rows: decision values, and what is known of each."""
    graph = AnswerGraph.from_answers(ends, same, n_points=len(values))
    return np.asarray(values, dtype=float)[graph.row_point], np.asarray(graph)[:, :2]


def enumerated_likelihood(h, ends, same, grid):
    """Log-probability of the answers at each accuracy, summed over which predictions are right."""
    found = np.zeros(len(grid))
    for right in itertools.product((False, True), repeat=len(h)):
        y = np.where(right, h, -h)
        if all((y[a] == y[b]) == s for (a, b), s in zip(ends, same, strict=True)):
            found += grid ** sum(right) * (1 - grid) ** (len(h) - sum(right))
    return np.log(found)


@pytest.mark.parametrize("seed", range(3))
def test_the_accuracy_by_points_has_the_likelihood_of_all_that_may_be_right(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(9) < 0.6, 1, -1)
    h = np.where(rng.random(9) < 0.2, -y, y)
    ends = [pair for pair in itertools.combinations(range(9), 2) if rng.random() < 0.25] or [(0, 1)]
    same = [y[a] == y[b] for a, b in ends]
    decision, known = seen_rows(h, ends, same)
    if not AnswerGraph.from_y(known).shares_points or len(set(same)) == 1:
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
    """E[s h h'] = (1 - 2 e) (2 accuracy - 1)^2; one who guesses changes nothing."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random((2000, 2)) < 0.6, 1, -1)
    h = np.where(rng.random(y.shape) < 0.1, -y, y)
    said = np.where(rng.random(2000) < 0.15, -1, 1) * y[:, 0] * y[:, 1]
    known = np.repeat(said * np.arange(1, 2001), 2)
    found = pair_accuracy(h.ravel(), known, error_rate=0.15)
    as_right = pair_accuracy(h.ravel(), known).value
    assert (2 * found.value - 1) ** 2 == pytest.approx((2 * as_right - 1) ** 2 / 0.7, abs=2e-3)
    assert found.low < 0.9 < found.high
    ends = np.arange(4000).reshape(-1, 2)
    points = np.r_[ends.ravel(), ends[:500].ravel()]
    guessed = np.r_[known, np.repeat(rng.choice([-1, 1], 500) * np.arange(2001, 2501), 2)]
    table = np.column_stack([guessed, points, np.repeat([1, 2], [4000, 1000])])
    both = pair_accuracy(h.ravel()[points], table, error_rate={1: 0.15, 2: 0.5})
    assert (both.value, both.low, both.high) == pytest.approx((found.value, found.low, found.high), abs=2e-3)


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


JUDGES = {
    "pair_accuracy": lambda X, y: pair_accuracy(np.ones(len(y)), y),
    "cross_val_accuracy": lambda X, y: cross_val_accuracy(Constant(), X, y),
    "class_agreement": lambda X, y: class_agreement(np.ones(len(y), dtype=int), y),
    "pair_risk": lambda X, y: pair_risk(np.ones(len(y)), y, prior=0.7),
    "pair_log_likelihood": lambda X, y: pair_log_likelihood(Constant(), X, y),
    "pair_importance": lambda X, y: pair_importance(Constant(), X, y, scoring="agreement"),
}


@pytest.mark.parametrize("name", JUDGES)
def test_rows_without_an_answer_are_refused_by_name(name):
    """A silent 1/2 hid that a splitter tears answers apart."""
    with pytest.raises(ValueError, match=r"`y` has no answers .* give `cv=PairKFold\(\)`"):
        JUDGES[name](np.zeros((4, 1)), np.zeros(4, dtype=int))


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
    assert (found.n_answers, found.basis) == (40, "random questions")
    assert found.value == pytest.approx(0.9)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(36, 4, 0.95))
    # Of five folds, in which 40 of 101 points count.
    held_out = held_out_accuracy(decision, known, n_splits=5, random_points=random)
    spread = 1 + 40 / 101 * 5 / 4 / 2
    assert held_out == pair_accuracy(decision, known, random_points=random, spread=spread)
    assert (held_out.low, held_out.high) == pytest.approx(clopper_pearson(36 / spread, 4 / spread, 0.95))
    # As classes of which the centre is labelled.
    labels = np.where(known[:, 1] == 0, truth[0], 0)
    named = np.column_stack([known, np.zeros_like(labels), labels])
    by_classes = class_agreement(decision.astype(int), named, random_points=random).accuracy
    assert astuple(by_classes)[:3] == pytest.approx((found.value, found.low, found.high))
    assert pair_accuracy(decision, known).value < 0.7
    nobody = pair_accuracy(decision, known, random_points=np.zeros(len(known), dtype=bool))
    assert (nobody.value, nobody.low, nobody.high, nobody.n_answers) == (0.5, 0.5, 1.0, 0)
    # Where all points are random it is as if nothing had been said.
    everybody = pair_accuracy(decision, known, random_points=np.ones(len(known), dtype=bool))
    assert everybody == pair_accuracy(decision, known)


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


def by_prior(decision, y, **options):
    return estimate_prior(y=y, **options)


def by_classes(decision, y, **options):
    return class_agreement(np.sign(decision), y, **options)


def numbers(found):
    """All numbers of a result."""
    if isinstance(found, tuple):
        return [number for one in found for number in numbers(one)]
    return [] if isinstance(found, str) or found is None else [found]


@pytest.mark.parametrize(
    ("n_columns", "judge", "options"),
    [
        (1, pair_accuracy, {}),
        (2, pair_accuracy, {}),
        (1, pair_accuracy, {"error_rate": 0.1}),
        (4, pair_accuracy, {"error_rate": 0.1}),
        (1, pair_accuracy, {"prior": 0.7}),
        (4, by_classes, {}),
        (1, by_prior, {}),
        (2, by_prior, {}),
    ],
)
def test_weights_have_no_unit_and_weight_0_is_a_row_left_out(n_columns, judge, options):
    decision, y, weight = weighted_answers()
    if "prior" in options:
        y[y[:, 0] < 0, 0] = 0
    y = y[:, 0] if n_columns == 1 else y[:, :n_columns]
    weight[20:32] = 0
    weight[-1] = 0
    kept = weight > 0
    found = judge(decision, y, sample_weight=weight, **options)
    assert found == judge(decision[kept], y[kept], sample_weight=weight[kept], **options)
    other = judge(decision, y, sample_weight=100 * weight, **options)
    assert numbers(astuple(other)) == pytest.approx(numbers(astuple(found)), rel=1e-10)
    plain = judge(decision, y, **options)
    assert judge(decision, y, sample_weight=np.full(len(y), 0.1), **options) == plain != found


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


def test_an_error_rate_that_nobody_knows_widens_the_interval():
    """60 loose answers, 48 of them as predicted; three questions are asked again, one is answered both ways."""
    ends = np.vstack([np.arange(120).reshape(-1, 2), [[0, 1], [2, 3], [4, 5]]])
    predicted = np.tile([1, 1, 1, -1], 30)
    same = predicted[ends[:, 0]] == predicted[ends[:, 1]]
    same[10:22] ^= True
    same[-1] ^= True
    decision, known = seen_rows(predicted, ends, same)
    found = pair_accuracy(decision, known)
    given = pair_accuracy(decision, known, error_rate=0.1)
    assert found.high - found.low > given.high - given.low


@pytest.mark.parametrize("design", ["loose", "star"])
def test_a_rate_that_no_answer_tells_widens_the_interval(design):
    """60 answers of one person, 48 as predicted: the accuracy at all plausible rates is in the interval."""
    ends = np.arange(120).reshape(-1, 2)
    if design == "star":
        ends[:, 0] = 0
    predicted = np.where(np.arange(120) % 4 < 3, 1, -1)
    same = (predicted[ends[:, 0]] == predicted[ends[:, 1]]) ^ (np.arange(60) % 5 == 0)
    known = AnswerGraph.from_answers(ends, same)
    decision = predicted[known.row_point]
    model = AnswerModel.estimate(known)
    assert not model.error_rate.identified
    found = pair_accuracy(decision, known, error_rate=model)
    given = [pair_accuracy(decision, known, error_rate=rate) for rate in (0.005, 0.02, 0.1, 0.3)]
    assert found.value == given[1].value
    assert found.low <= min(one.value for one in given) < max(one.value for one in given) <= found.high
    assert all(found.high - found.low > one.high - one.low for one in given[:3])


def test_a_weight_is_a_repetition_beside_rates_of_two_people():
    rng = np.random.default_rng(0)
    decision = rng.normal(0.5, 1, 160)
    same = rng.random(80) < 0.8
    table = np.column_stack(
        [np.repeat(np.where(same, 1, -1) * np.arange(1, 81), 2), range(160), np.repeat([1, 2], 80), np.zeros(160, int)]
    )
    weight = np.repeat([1.0, 3.0], 80)
    codes, point, who, label = table[80:].T
    again = [np.column_stack([codes + np.sign(codes) * 100 * k, point + 200 * k, who, label]) for k in (1, 2)]
    for options in ({}, {"prior": 0.8}):
        by_weight = pair_accuracy(decision, table, sample_weight=weight, error_rate={1: 0.0, 2: 0.2}, **options)
        repeated = np.concatenate([decision, decision[80:], decision[80:]])
        by_copies = pair_accuracy(repeated, np.vstack([table, *again]), error_rate={1: 0.0, 2: 0.2}, **options)
        assert by_weight.value == pytest.approx(by_copies.value)
        assert by_weight.majority == pytest.approx(by_copies.majority)
        # And the interval of fewer answers, not of more.
        assert by_weight.low <= by_copies.low + 1e-9


def test_questions_asked_three_times_are_as_precise_as_once_with_a_prior():
    """Pairs in equal numbers, against the prior: each kind is weighed, and 60 pairs of points stay 60."""
    same = np.arange(60) % 2 == 0
    codes = np.repeat(np.where(same, 1, -1) * np.arange(1, 61), 2)
    decision = np.where(np.arange(120) % 2 == 0, 1, np.repeat(np.where(same, 1, -1), 2)).astype(float)
    decision[:12] *= -1
    decision[1:12:4] *= -1
    thrice = np.concatenate([codes + np.sign(codes) * 60 * k for k in range(3)])
    table = np.column_stack([thrice, np.tile(range(120), 3)])
    once = pair_accuracy(decision, codes, prior=0.9)
    found = pair_accuracy(np.tile(decision, 3), table, prior=0.9)
    assert found.value == pytest.approx(once.value)
    share = found.agreement
    assert found.low == pytest.approx(prior_from_share(clopper_pearson(60 * share, 60 * (1 - share))[0]))


def test_a_prior_that_the_answers_bear_out_changes_nothing_where_they_share_points():
    rng = np.random.default_rng(1)
    truth = np.where(rng.random(60) < 0.7, 1, -1)
    ends = np.array([rng.choice(60, 2, replace=False) for _ in range(120)])
    codes = np.repeat(np.arange(1, 121) * truth[ends].prod(axis=1), 2)
    table = np.column_stack([codes, ends.ravel()])
    decision = np.where(rng.random(60) < 0.85, truth, -truth)[ends.ravel()]
    assert pair_accuracy(decision, table, prior=0.7) == pair_accuracy(decision, table)
    assert pair_accuracy(decision, table, prior=0.99) != pair_accuracy(decision, table)


@pytest.mark.parametrize("label", [1, -1])
def test_the_larger_class_has_one_share_whatever_it_is_called(label):
    """An example and 60 random points, 45 of its class."""
    ends = np.column_stack([np.zeros(60, int), np.arange(1, 61)])
    codes = np.repeat(np.arange(1, 61) * np.where(np.arange(60) < 45, 1, -1), 2)
    labels = np.where(ends.ravel() == 0, label, 0)
    table = np.column_stack([codes, ends.ravel(), np.zeros(120, int), labels])
    found = pair_accuracy(np.full(120, float(label)), table, random_points=ends.ravel() > 0)
    assert found.value == pytest.approx(0.75, abs=1e-3)
    assert found.majority == pytest.approx(0.75, abs=1e-3)
    other = pair_accuracy(np.full(120, -float(label)), table, random_points=ends.ravel() > 0)
    assert (other.value, other.majority) == pytest.approx((0.25, 0.75), abs=1e-3)
