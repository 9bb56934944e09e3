"""What a fit is asked for, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from sdulearn.answers.graph import AnswerGraph
from sdulearn.findings import Contradictions
from sdulearn.workflow.fit import _independent_answers, _without_odd_cycles
from sdulearn.workflow.options import FitOptions


def test_a_wide_table_has_few_unlabeled_rows():
    assert [FitOptions().most_unlabeled(width) for width in (3000, 3001)] == [20_000, 1000]
    assert [FitOptions(max_unlabeled=n).most_unlabeled(3001) for n in (999, 1001)] == [999, 1000]
    assert FitOptions(max_unlabeled=30_000).most_unlabeled(3000) == 30_000


def worth(y, n_classes):
    return _independent_answers(SimpleNamespace(stacked=(None, AnswerGraph.from_y(y))), n_classes)


def test_answers_that_say_something_of_their_own():
    """Four answers "different" in a cycle: two classes make the last of them follow, three do not."""
    cycle = np.column_stack([np.repeat([-1, -2, -3, -4], 2), [0, 1, 1, 2, 2, 3, 3, 0]])
    assert [worth(cycle, n_classes) for n_classes in (2, 3)] == [(4, 3), (4, 4)]
    # Where 1 and 3 are of one class, each of the others is told from it twice.
    tied = np.vstack([cycle, [[5, 1], [5, 3]]])
    assert [worth(tied, n_classes) for n_classes in (2, 3)] == [(4, 3), (4, 3)]


@pytest.mark.parametrize(("both_ways", "closure", "left"), [(1, 0, 1), (0, 1, 1), (0, 0, 0)])
def test_contradictions_that_any_number_of_classes_leaves(both_ways, closure, left):
    given = Contradictions(count=both_ways + closure + 2, both_ways=both_ways, closure=closure, odd_cycles=2)
    kept = Contradictions(count=both_ways + closure, both_ways=both_ways, closure=closure, odd_cycles=0)
    assert _without_odd_cycles([given]) == [kept] * left
