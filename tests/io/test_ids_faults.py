"""Which column holds the ids: what fits, what does not, and what is not clear."""

import pytest

from sdulearn.errors import InputError
from sdulearn.io.ids import Candidate, choose_by_answers

USUAL = ("id", "key")
# Ids that are row numbers of a table of 100 rows, and ids that are not.
NUMBERS = ["1", "2", "5", "7"]
NAMES = ["ann", "bob", "cy", "dee"]
REFUSED = "could be the column of ids"


def full(name, unique=True):
    return Candidate(name, 4, unique)


CASES = [
    # Nothing fits but row numbers, or nothing at all.
    (NUMBERS, [], None),
    (NUMBERS, [Candidate("age", 1, True)], None),
    (NAMES, [], None),
    # One column holds every id: by its name, or because row numbers are out of the question.
    (NUMBERS, [full("person_id")], "person_id"),
    (NAMES, [full("surname_at_birth")], "surname_at_birth"),
    (NUMBERS, [full("id"), full("rank")], "id"),
    # It may as well be a column of small whole numbers: not clear.
    (NUMBERS, [full("rank")], REFUSED),
    (NUMBERS, [Candidate("person_id", 3, True)], REFUSED),
    (NAMES, [full("first"), full("second")], REFUSED),
    # Each id on several rows: no column of ids.
    (NUMBERS, [full("rank", unique=False)], None),
    (NAMES, [full("town", unique=False)], None),
    # Nearly all ids are there, and no other column does better.
    (NAMES, [Candidate("name", 3, True), Candidate("nick", 2, True)], "name"),
    # Too few of them, under a usual name: taken, so that the message can name the ids that are missing.
    (NAMES, [Candidate("key", 1, True)], "key"),
]


@pytest.mark.parametrize(("ids", "candidates", "expected"), CASES)
def test_the_column_that_fits_the_answers(ids, candidates, expected):
    if expected == REFUSED:
        with pytest.raises(InputError, match=REFUSED):
            choose_by_answers("t.csv", candidates, ids, 100, USUAL)
    else:
        assert choose_by_answers("t.csv", candidates, ids, 100, USUAL) == expected
        assert choose_by_answers("t.csv", candidates[::-1], ids, 100, USUAL) == expected
