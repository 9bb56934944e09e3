"""Agreement between people and the error rates that follow from it."""

from itertools import combinations

import numpy as np
import pytest

from sdulearn.io.answer_log import LoggedAnswer
from sdulearn.web.agreement import Couple, agreement, error_rates


def answers(rows):
    return [LoggedAnswer("s", k, left, right, answer, who) for k, (left, right, answer, who) in enumerate(rows)]


def test_counts():
    found = agreement(
        answers(
            [
                ("a", "b", "same", "ann"),
                ("b", "a", "same", "bob"),
                ("a", "c", "different", "ann"),
                ("a", "c", "same", "bob"),
                ("a", "d", "unsure", "ann"),
                ("a", "d", "same", "bob"),
                ("x", "y", "same", "cid"),
            ]
        )
    )
    assert [(one.name, one.n_answers, one.n_unsure) for one in found.people] == [
        ("ann", 3, 1), ("bob", 3, 0), ("cid", 1, 0),
    ]  # fmt: skip
    assert found.couples == (Couple("ann", "bob", 2, 1),)
    assert found.people[2].error_rate is None
    assert agreement([]).people == ()


def test_two_people_share_their_errors_evenly():
    rates = error_rates([Couple("ann", "bob", 1000, 820)])
    e = rates["ann"]
    assert rates["bob"] == pytest.approx(e)
    assert 2 * e * (1 - e) == pytest.approx(0.18)


def test_three_people_are_told_apart():
    """With the disagreement that the equation gives, the rates come back exactly."""
    true = {"ann": 0.02, "bob": 0.1, "cid": 0.3}
    n = 10**9
    couples = [
        Couple(a, b, n, round(n * (1 - (1 - (1 - 2 * true[a]) * (1 - 2 * true[b])) / 2)))
        for a, b in combinations(true, 2)
    ]
    assert error_rates(couples) == pytest.approx(true, abs=1e-6)


def test_people_who_err_at_known_rates():
    """Answers drawn with errors, not the equation, say the same."""
    rng = np.random.default_rng(0)
    truth = rng.random(4000) < 0.5
    rows = []
    for name, rate in {"ann": 0.05, "bob": 0.15, "cid": 0.25}.items():
        said = truth ^ (rng.random(4000) < rate)
        rows += [(str(k), "x", "same" if same else "different", name) for k, same in enumerate(said)]
    found = agreement(answers(rows))
    assert [one.error_rate for one in found.people] == pytest.approx([0.05, 0.15, 0.25], abs=0.03)


def test_who_disagrees_always_is_a_guesser():
    assert error_rates([Couple("ann", "bob", 10, 0)])["ann"] < 0.5
