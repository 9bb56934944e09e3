import pytest

from reproduction.claims import Claim, Comparison, check_claims, verdict
from reproduction.tables import (
    Measurements,
    is_above,
    mean_of,
    not_worse_than_best,
    paired_outcome,
)


def record(method, accuracy, trial, dataset="adult", n_pairs=50, n_unlabeled=500, assumed="known"):
    return {
        "dataset": dataset, "n_pairs": n_pairs, "n_unlabeled": n_unlabeled, "prior": 0.7, "flip": 0.0,
        "assumed": assumed, "trial": trial, "method": method, "accuracy": accuracy, "matched": accuracy,
        "seconds": 0.1, "error": None,
    }  # fmt: skip


def made_up(levels, trials=10, **where):
    """Records with the given mean accuracy of each method and a little spread."""
    spread = [0.01 * (i % 3 - 1) for i in range(trials)]
    return [record(m, level + s, i, **where) for m, level in levels.items() for i, s in enumerate(spread)]


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ((0, 0, 0), "not measured"),
        ((20, 0, 0), "holds"),
        ((10, 9, 1), "holds"),
        ((10, 8, 2), "mostly holds"),
        ((6, 12, 2), "mostly holds"),
        ((1, 18, 1), "no clear difference"),
        ((4, 12, 4), "mixed"),
        ((2, 12, 6), "does not hold"),
        ((0, 0, 20), "does not hold"),
    ],
)
def test_verdict(counts, word):
    assert verdict(*counts) == word


def test_a_claim_is_no_better_than_its_parts():
    good, even, bad = (Comparison("", 10, 0, 0, 1.0), Comparison("", 0, 10, 0, 0.0), Comparison("", 0, 0, 2, -1.0))
    assert Claim("", "", [good, good]).verdict == "holds"
    assert Claim("", "", [good, even]).verdict == "mostly holds"
    assert Claim("", "", [good, good, bad]).verdict == "mixed"
    assert Claim("", "").verdict == "not measured"


def test_claims_from_made_up_numbers():
    few = {"sddu-squared": 0.70, "sdsu-squared": 0.65, "sudu-squared": 0.65, "sd-squared": 0.70}
    many = {"sddu-squared": 0.75, "sdsu-squared": 0.70, "sudu-squared": 0.70, "sd-squared": 0.70}
    measured = {
        "figure2": Measurements(made_up({"su-squared": 0.6, "du-squared": 0.7, "sd-squared": 0.8})),
        "figure3": Measurements(made_up(few, n_unlabeled=100) + made_up(many, n_unlabeled=900)),
        "table": Measurements(made_up({"sddu-squared": 0.6, "sdsu-squared": 0.7, "km": 0.8, "ckm": 0.5})),
    }
    claims = {claim.name: claim for claim in check_claims(measured)}
    assert claims["DU and SD beat SU"].verdict == "holds"
    assert claims["SDDU is the best mixture"].verdict == "mixed"
    assert claims["Unlabeled data helps"].verdict == "holds"
    assert claims["SDU beats clustering"].verdict == "mixed"
    gaps = [round(c.gap) for c in claims["SDU beats clustering"].comparisons]
    assert gaps == [-20, 10]


def test_nothing_measured():
    assert [claim.verdict for claim in check_claims({})] == ["not measured"] * 4


def test_the_opposite_is_found_too():
    measured = {"figure2": Measurements(made_up({"su-squared": 0.8, "du-squared": 0.7, "sd-squared": 0.6}))}
    assert check_claims(measured)[0].verdict == "does not hold"


def test_paired_outcome():
    base = {i: 60.0 + i for i in range(10)}
    assert paired_outcome({i: v + 1 + 0.1 * (i % 2) for i, v in base.items()}, base) == 1
    assert paired_outcome(base, {i: v + 1 for i, v in base.items()}) == -1
    assert paired_outcome(base, {i: v + 1 + 0.1 * (i % 2) for i, v in base.items()}) == -1
    assert paired_outcome({i: v + (-1) ** i for i, v in base.items()}, base) == 0
    assert paired_outcome(base, base) == 0
    assert paired_outcome({0: 1.0}, {0: 2.0}) == 0


def test_bold_is_scipys_t_test():
    from scipy.stats import ttest_ind

    values = {
        "a": dict(enumerate([80.0, 82, 84, 81, 83])),
        "b": dict(enumerate([79.0, 83, 80, 81, 82])),
        "c": dict(enumerate([70.0, 71, 72, 73, 69])),
    }
    best = list(values["a"].values())
    expected = {
        name
        for name, v in values.items()
        if ttest_ind(best, list(v.values()), equal_var=False, alternative="greater").pvalue >= 0.05
    }
    assert not_worse_than_best(values) == expected == {"a", "b"}
    assert not_worse_than_best({}) == set()


def test_few_trials_decide_nothing():
    assert not is_above({0: 90.0}, {0: 50.0})
    assert is_above({0: 90.0, 1: 90.0}, {0: 50.0, 1: 50.0})
    assert mean_of({0: 90.0}).trials == 1
