import warnings

import pytest

from sdulearn import PairLogisticRegression, PriorEstimate
from sdulearn.errors import OrientationWarning
from sdulearn.joint.fitting import class_sign


@pytest.mark.parametrize("n_rows", [100, 400, 2500])
@pytest.mark.parametrize("errors", [-3, -2.1, -1.9, 0.1, 1.9, 2.1, 3])
def test_names_are_uncertain_within_two_standard_errors(n_rows, errors):
    """A share of n rows has the standard error ``sqrt(1/4 / n)`` at one half."""
    model = PairLogisticRegression()
    prior = PriorEstimate(0.8, 0.7, 0.9, True, 60, 30, 0.95)
    share = 0.5 + errors * (0.25 / n_rows) ** 0.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sign = class_sign(model, prior, share, 1 / n_rows)
    assert [one.category for one in caught] == [OrientationWarning] * (abs(errors) < 2)
    assert sign == (1 if errors > 0 else -1)
