"""Error rates from repeats and triangles."""

import itertools

import numpy as np
import pytest

from sdulearn.asking.errors import (
    count_repeats,
    count_triangles,
    disagreement_rate,
    estimate_error,
    odd_triangle_rate,
)
from sdulearn.asking.records import Record


@pytest.mark.parametrize("e", [0.0, 0.03, 0.2, 0.5])
def test_rates_are_those_of_all_outcomes(e):
    """Sum over which of the two or three answers are wrong."""
    for rate, n in ((disagreement_rate, 2), (odd_triangle_rate, 3)):
        total = 0.0
        for wrong in itertools.product((0, 1), repeat=n):
            if sum(wrong) % 2:
                total += np.prod([e if w else 1 - e for w in wrong])
        assert rate(np.array(e)) == pytest.approx(total)


def checked(e, n, rng):
    """n repeats and n triangles about points of one class, with answers wrong at rate e."""

    def answer():
        return -1 if rng.random() < e else 1

    records = []
    for k in range(n):
        a, b, c = 3 * k, 3 * k + 1, 3 * k + 2
        records += [(a, b, answer(), "linked"), (a, b, answer(), "repeat")]
        records += [(c, b, answer(), "linked"), (a, c, answer(), "triangle")]
    return [Record(a, b, s, "", kind, k) for k, (a, b, s, kind) in enumerate(records, start=1)]


@pytest.mark.parametrize("e", [0.05, 0.15, 0.3])
def test_the_rate_is_found(e):
    records = checked(e, 1000, np.random.default_rng(0))
    # Near 1/2 the rates hardly change with e.
    assert estimate_error(records, two_classes=True) == pytest.approx(e, abs=0.02 if e < 0.2 else 0.05)
    assert estimate_error(records, two_classes=False) == pytest.approx(e, abs=0.03 if e < 0.2 else 0.05)


def test_no_failed_check_is_no_error():
    records = checked(0.0, 5, np.random.default_rng(0))
    assert estimate_error(records, two_classes=True) == 0
    assert count_repeats(records) == (5, 0)
    assert count_triangles(records) == (5, 0)


def test_doubtful_questions_do_not_count():
    records = [Record(0, 1, 1, "", "linked", 1), Record(0, 1, -1, "", "doubtful", 2)]
    assert count_repeats(records) == (0, 0)
    assert estimate_error(records, two_classes=True) == 0
