"""The parameters ``columns`` and ``words`` of :func:`~sdulearn.answers.read_answers`, given as mappings or as text."""

from __future__ import annotations

from collections.abc import Mapping

from sdulearn.answer_files.words import PER_PERSON
from sdulearn.errors import InputError

_ROLES = ("id_a", "id_b", "label", "weight", "annotator")


def as_columns(columns: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return columns by role, from ``"from,to,verdict"`` or ``"label=verdict,sheet=answers"`` too."""
    if not isinstance(columns, str):
        return dict(columns or {})
    names = [name.strip() for name in columns.split(",")]
    if all("=" in name for name in names):
        return {role.strip(): name.strip() for role, _, name in (text.partition("=") for text in names)}
    if not 3 <= len(names) <= len(_ROLES) or not all(names):
        raise InputError(
            f"`columns` is {columns!r}. Name three to five columns, with commas between them, for ids, labels, weights "
            "and annotators, or columns by role: label=verdict,sheet=answers."
        )
    return dict(zip(_ROLES, names, strict=False))


def as_words(words: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return meanings by word, from ``"yes=similar,no=dissimilar"`` too; "per person" alone is for a whole scale."""
    if not isinstance(words, str):
        return dict(words or {})
    if words.strip() == PER_PERSON:
        return {PER_PERSON: PER_PERSON}
    parts = [part.rpartition("=") for part in words.split(",")]
    if not all(word and meaning for word, _, meaning in parts):
        raise InputError(f"`words` is {words!r}, which is not of the form yes=similar,no=dissimilar.")
    return {word.strip(): meaning.strip() for word, _, meaning in parts}
