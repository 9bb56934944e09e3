"""How a table is read: what a log says goes on, unless something else is given."""

import inspect
from dataclasses import fields

import pytest

from sdulearn import Reading, fit_table
from sdulearn.errors import InputError
from sdulearn.io.typed import plain, read
from sdulearn.reading import FOUND


def test_every_field_is_a_parameter_of_fit_table_with_the_same_default():
    parameters = inspect.signature(fit_table).parameters
    for one in fields(Reading):
        assert (one.name in parameters) == (one.name not in FOUND)
        if one.name in parameters:
            assert parameters[one.name].default == one.default


def test_what_is_given_wins_over_what_was_stored():
    stored = Reading("nr", ("a", "b"), text=("c", "d"), embedding="v.npy", skip_rows=2, n_rows=5, digest="x")
    given = Reading(drop=("d",), categories=("a",), skip_rows=0, missing="mean", groups="who")
    expected = Reading(
        "nr", ("b", "d"), ("a",), ("c",), embedding="v.npy", skip_rows=0, missing="mean", groups="who", n_rows=5,
        digest="x",
    )  # fmt: skip
    assert stored.continued(given) == expected
    assert stored.continued(Reading()) == stored
    assert stored.continued(Reading(embedding="")).embedding == ""


@pytest.mark.parametrize(("stored", "given"), [("nr", ""), ("", "nr"), ("nr", "id")])
def test_ids_are_never_taken_from_another_column(stored, given):
    with pytest.raises(InputError):
        Reading(stored).continued(Reading(given))


@pytest.mark.parametrize("wrong", [{"drop": "a"}, {"missing": "no"}])
def test_what_is_no_reading(wrong):
    with pytest.raises(InputError):
        Reading(**wrong)


def test_only_what_differs_from_the_defaults_is_stored(tmp_path):
    reading = Reading("", images=["a"], image_root=tmp_path, max_categories=3, n_rows=9, cells={"1": "f"})
    stored = plain(reading.changed())
    assert set(stored) == {"id_column", "images", "image_root", "max_categories", "n_rows", "cells"}
    assert read(Reading, stored) == reading
