import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdulearn import PairKFold, PairLogisticRegressionCV, SDUClassifierCV, stack_pairs
from sdulearn.answers import AnswerGraph
from sdulearn.errors import UselessModelWarning
from sdulearn.model_selection import grid_results
from tests.reference import random_answers, random_ends


@given(st.integers(2, 5), st.integers(5, 20), st.integers(5, 20), st.integers(0, 30), st.booleans())
def test_pairs_stay_whole_and_every_source_is_spread(n_splits, n_similar, n_dissimilar, n_unlabeled, shuffle):
    codes = np.r_[
        np.repeat(np.arange(1, n_similar + 1), 2),
        np.repeat(-np.arange(n_similar + 1, n_similar + n_dissimilar + 1), 2),
        np.zeros(n_unlabeled, dtype=int),
    ]
    codes = np.random.default_rng(0).permutation(codes)
    seen = []
    for train, test in PairKFold(n_splits, shuffle=shuffle, random_state=3).split(codes, codes):
        assert not set(train) & set(test)
        assert not set(codes[train]) & set(codes[test]) - {0}
        for sign, total in ((1, 2 * n_similar), (-1, 2 * n_dissimilar), (0, n_unlabeled)):
            size = np.sum(np.sign(codes[test]) == sign)
            assert abs(size - total / n_splits) <= (1 if sign == 0 else 2)
        seen.extend(test)
    assert sorted(seen) == list(range(len(codes)))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_folds_do_not_depend_on_the_order_of_rows_or_ends(seed, grouped):
    """Components too large for a fold are cut where a search by breadth passes, in whichever direction it is asked."""
    rng = np.random.default_rng(seed)
    older = [lambda i: i - 1, lambda i: rng.integers(0, i), lambda i: rng.integers(0, min(i, 3))][seed % 3]
    ends = np.array([(i, older(i)) for i in range(1, 90)])
    _, y = stack_pairs(np.zeros((90, 1)), ends, rng.random(89) < 0.5)
    order = rng.permutation(len(y))
    groups = rng.integers(0, 30, 90)[y[:, 1]] if grouped else None
    first, second = (
        PairKFold().fold_of_points(AnswerGraph.from_y(y[rows], groups=groups if groups is None else groups[rows]))
        for rows in (np.arange(len(y)), order)
    )
    np.testing.assert_array_equal(first, second)


def test_one_missing_source_is_fine_but_too_few_pairs_are_not():
    assert len(list(PairKFold(2).split(None, [1, 1, 2, 2, 0]))) == 2
    with pytest.raises(ValueError, match=r"5 folds need at least 5 dissimilar pairs, but there are 2\. Lower"):
        PairKFold(5).fold_of_points(np.r_[np.repeat(np.arange(1, 7), 2), -7, -7, -8, -8])
    with pytest.raises(ValueError, match=r"there are 1\. Choose an estimator without folds"):
        PairLogisticRegressionCV().fit(np.arange(14.0)[:, None], np.r_[np.repeat(np.arange(1, 7), 2), -7, -7])


@pytest.mark.parametrize("n_splits", [1, 2.5, "5"])
def test_bad_number_of_folds(n_splits):
    with pytest.raises(ValueError, match="integer of 2 or more"):
        PairKFold(n_splits)
    assert repr(PairKFold(3)) == "PairKFold(3, shuffle=True, random_state=0)"
    assert PairKFold(4).get_n_splits() == 4


def test_the_table_of_results():
    params = [{"alpha": 1.0}, {"alpha": 0.1}, {"alpha": 0.01}]
    scores = np.array([[0.5, 0.7, 0.7], [0.6, 0.8, 0.8 + 1e-14]])
    results = grid_results(params, scores)
    assert np.ma.isMaskedArray(results["param_alpha"])
    assert not results["param_alpha"].mask.any()
    np.testing.assert_allclose(results["mean_test_score"], [0.55, 0.75, 0.75])
    # The last bit does not rank.
    assert results["rank_test_score"].tolist() == [3, 1, 1]
    # All other bits do: one held-out answer among many thousands.
    close = np.array([[0.8, 0.8 + 2e-9, 0.8 + 1e-9]])
    assert grid_results(params, close)["rank_test_score"].tolist() == [3, 1, 2]
    assert grid_results(params, np.full((2, 3), np.nan))["rank_test_score"].tolist() == [1, 1, 1]

    # A split without scores is left out of the means.
    params = params[:2]
    scores = np.array([[0.5, 0.7], [np.nan, np.nan], [0.7, 0.7], [np.nan, 0.9]])
    results = grid_results(params, scores[:3])
    np.testing.assert_allclose(results["mean_test_score"], [0.6, 0.7])
    np.testing.assert_allclose(results["std_test_score"], [0.1, 0.0], atol=1e-15)
    # A setting that failed on one split only is not judged by the others.
    assert np.isnan(grid_results(params, scores)["mean_test_score"][0])
    assert grid_results(params, scores)["rank_test_score"].tolist() == [2, 1]


@pytest.mark.parametrize("splitter", [PairKFold(5, random_state=0), PairKFold(3, shuffle=False)])
@pytest.mark.parametrize(("n_points", "n_answers"), [(40, 200), (400, 200)])
def test_no_point_is_in_training_and_test(splitter, n_points, n_answers):
    ends, same = random_answers(np.random.default_rng(0).random(n_points) < 0.7, n_answers)
    rows, known = stack_pairs(np.zeros((n_points, 1)), ends, same, unlabeled="all")
    tested = 0
    for train, test in splitter.split(rows, known):
        assert not set(known[train, 1]) & set(known[test, 1])
        # Answers are whole on either side: both of their rows, or none.
        for part in (train, test):
            counts = np.unique(np.abs(known[part, 0]), return_counts=True)
            assert (counts[1][counts[0] > 0] == 2).all()
        tested += np.sum(known[test, 0] != 0) // 2
    assert tested + splitter.n_cut(rows, known) == n_answers


def test_small_components_stay_whole_and_kinds_are_spread():
    rng = np.random.default_rng(1)
    # 120 chains of four points, with three answers each.
    start = 4 * np.arange(120)
    ends = np.concatenate([np.column_stack([start + k, start + k + 1]) for k in range(3)])
    rows, known = stack_pairs(np.zeros((480, 1)), ends, rng.random(360) < 0.6)
    splitter = PairKFold(5, random_state=0)
    assert splitter.n_cut(rows, known) == 0
    n_similar = [np.sum(known[test, 0] > 0) // 2 for _, test in splitter.split(rows, known)]
    n_dissimilar = [np.sum(known[test, 0] < 0) // 2 for _, test in splitter.split(rows, known)]
    assert max(n_similar) - min(n_similar) <= 6
    assert max(n_dissimilar) - min(n_dissimilar) <= 6
    # One long chain is cut where it costs least.
    ends = np.column_stack([np.arange(99), np.arange(1, 100)])
    assert splitter.n_cut(*stack_pairs(np.zeros((100, 1)), ends, np.arange(99) % 3 > 0)) <= 12


@pytest.mark.parametrize("n_hubs", [1, 10])
def test_hubs_are_in_every_part_and_nothing_else_is(n_hubs):
    ends = np.column_stack([np.arange(300) % n_hubs, n_hubs + np.arange(300)])
    rows, known = stack_pairs(np.zeros((300 + n_hubs, 1)), ends, np.arange(300) % 3 > 0)
    splitter = PairKFold(5, random_state=0)
    assert splitter.n_cut(rows, known) == 0
    for train, test in splitter.split(rows, known):
        shared = set(known[train, 1]) & set(known[test, 1])
        assert 0 < len(shared) <= n_hubs
        assert shared <= set(range(n_hubs))


def test_points_of_loose_pairs_change_no_fold():
    splitter = PairKFold(4, random_state=3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    rows, known = stack_pairs(X, np.arange(60).reshape(-1, 2), rng.random(30) < 0.6)
    with_points = [test.tolist() for _, test in splitter.split(rows, known)]
    assert with_points == [test.tolist() for _, test in splitter.split(rows, known[:, 0])]


@pytest.mark.parametrize("n_splits", [5, 10])
def test_every_test_part_has_an_answer_where_points_allow_it(n_splits):
    """Few points in many answers: cut along their breadth, some folds of six points would hold none."""
    for seed in range(5):
        ends = random_ends(np.random.default_rng(seed), 60, 200)
        y = stack_pairs(np.zeros((np.max(ends) + 1, 0)), ends, np.arange(200) % 2 == 0, unlabeled=None)[1]
        splitter = PairKFold(n_splits, random_state=seed)
        for train, test in splitter.split(None, y):
            assert len(test) >= 2
            assert not set(y[train, 1]) & set(y[test, 1])
        assert len(np.unique(splitter.fold_of_points(y))) == n_splits


@pytest.mark.parametrize(
    ("model", "linked"),
    [
        (SDUClassifierCV(prior=0.7), False),
        (PairLogisticRegressionCV(), False),
        (PairLogisticRegressionCV(), True),
        (PairLogisticRegressionCV(n_classes=4), True),
    ],
    ids=str,
)
def test_a_model_of_noise_gives_a_warning_and_a_good_one_none(model, linked):
    """Warnings are errors here; with linked answers, folds must agree on the names of the classes."""
    rng = np.random.default_rng(2)
    n_classes = getattr(model, "n_classes", 2)
    classes = rng.choice(n_classes, 400, p=[0.7, 0.3] if n_classes == 2 else None)
    X = rng.normal(size=(400, 5)) + 3 * np.eye(5)[classes]
    ends = rng.integers(0, 100, (200, 2)) if linked else rng.permutation(400)[:300].reshape(-1, 2)
    ends = ends[ends[:, 0] != ends[:, 1]]
    same = classes[ends[:, 0]] == classes[ends[:, 1]]
    model.fit(*stack_pairs(X, ends, same))
    # Which of four classes nothing tells apart may be said, too.
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model.fit(*stack_pairs(rng.permutation(X), ends, same))
    assert sum(warning.category is UselessModelWarning for warning in given) == 1
