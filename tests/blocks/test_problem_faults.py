import numpy as np
import pytest

from sdulearn.blocks.folds import fold_of_rows
from sdulearn.blocks.problem import RowRule, _draw
from sdulearn.losses import Logistic
from sdulearn.pairs import sources


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("count", [5, 100, 10_000])
def test_a_sample_weighs_what_its_block_weighs(many, count, weighted):
    rows, codes = many
    weight = np.random.default_rng(0).random(len(codes)) if weighted else None
    drawn, its_codes, stands_for = _draw(rows, codes, weight, count)
    assert len(drawn) == len(its_codes) == len(stands_for) <= 3 * count
    whole = np.bincount(sources(codes), weights=weight, minlength=3)
    np.testing.assert_allclose(np.bincount(sources(its_codes), weights=stands_for, minlength=3), whole)


def test_the_rows_of_a_fold_that_is_left_out_have_no_weight(many):
    rows, codes = many[0][:500], many[1][:500]
    fold = fold_of_rows(rows, codes, 5)
    units = np.array([1.0, 2.0, 3.0])
    for k in range(5):
        rule = RowRule(np.zeros(rows.shape[1]), False, units, Logistic(), (5, k))
        pieces = [(A.copy(), a) for A, a in rule.pieces(rows, codes, None)]
        np.testing.assert_array_equal(np.concatenate([A for A, _ in pieces]), rows[fold != k])
        np.testing.assert_array_equal(np.concatenate([a for _, a in pieces]), units[sources(codes[fold != k])])
