import numpy as np
import pytest

from sdulearn.pairs import read_pairs, scramble
from sdulearn.workflow.codes import code_sums, drawn_or_paired, drawn_pairs


@pytest.fixture
def codes():
    """900 pairs and 1200 unlabeled rows, shuffled."""
    rng = np.random.default_rng(0)
    names = rng.permutation(10**6)[:900] + 1
    return rng.permutation(np.r_[np.repeat(np.where(rng.random(900) < 0.6, names, -names), 2), np.zeros(1200, int)])


def in_pieces(codes, cuts, *limits):
    rows = np.split(np.arange(len(codes)), cuts)
    first, *others = (code_sums(codes[piece], piece, *limits) for piece in rows)
    return sum(others, start=first)


@pytest.mark.parametrize("cuts", [[1, 2, 3], [1500], [0, 0, 700, 701, 2999], range(100, 3000, 100)])
@pytest.mark.parametrize("limits", [(50, 70), (None, 70), (5000, 5000), (900, 1200), (1, 1)])
def test_a_draw_does_not_depend_on_the_portions(codes, cuts, limits):
    whole, summed = code_sums(codes, np.arange(3000), *limits), in_pieces(codes, cuts, *limits)
    for name in ("n_similar", "n_dissimilar", "n_unlabeled", "check"):
        assert getattr(whole, name) == getattr(summed, name)
    for name in ("ends", "unlabeled"):
        assert sorted(getattr(whole, name)[:, 0]) == sorted(getattr(summed, name)[:, 0])
    assert whole.check == 0
    max_pairs, max_unlabeled = limits
    assert len(summed.ends[:, 0]) == 2 * min(max_pairs or 900, 900)
    assert len(summed.unlabeled[:, 0]) == min(max_unlabeled, 1200)
    read_pairs(summed.ends[:, 1])
    np.testing.assert_array_equal(codes[summed.ends[:, 0]], summed.ends[:, 1])
    assert not codes[summed.unlabeled[:, 0]].any()


def test_pairs_come_in_the_order_of_their_codes(codes):
    found = drawn_pairs("t", "c", code_sums(codes, np.arange(3000), 300, 10))
    first, second = codes[found["ends"]].T
    np.testing.assert_array_equal(first, second)
    assert (np.diff(np.abs(first)) > 0).all()
    np.testing.assert_array_equal(found["answers"].answers > 0, first > 0)


def test_a_draw_is_fair():
    """Over many pairs the drawn share is even along the codes and along the rows."""
    codes = np.repeat(np.arange(1, 50_001), 2)
    codes = np.r_[codes, np.zeros(100_000, dtype=int)]
    sums = code_sums(codes, np.arange(200_000), 10_000, 20_000)
    for values, top in ((sums.ends[:, 1], 50_001), (sums.unlabeled[:, 0] - 100_000, 100_000)):
        counts = np.histogram(values, bins=20, range=(0, top))[0]
        # 1,000 expected in each; four standard deviations of twice a count of 500, or of a count of 1,000.
        assert np.abs(counts - 1000).max() < 4 * np.sqrt(2000)


def test_the_drawn_rows_are_known_by_their_marks(codes):
    sums = code_sums(codes, np.arange(3000), 50, 70)
    kept = drawn_or_paired(int(scramble(sums.unlabeled[:, 0]).max()), np.arange(3000), codes)
    np.testing.assert_array_equal(np.flatnonzero(kept & (codes == 0)), np.sort(sums.unlabeled[:, 0]))
    assert kept[codes != 0].all()
