"""The parameters ``columns`` and ``words`` of :func:`~sdulearn.answers.read_answers`, given as mappings or as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sdulearn.answer_files.words import PER_PERSON
from sdulearn.errors import InputError

_ROLES = ("id_a", "id_b", "label", "weight", "annotator")


def as_columns(columns: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return columns by role, from ``"from,to,verdict"`` or ``"label=verdict,sheet=answers"`` too."""
    if not isinstance(columns, str):
        return dict(columns or {})
    names = [name.strip() for name in columns.split(",")]
    if all("=" in name for name in names):
        return _single("columns", [text.partition("=")[::2] for text in names])
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
    parts = [part.rpartition("=")[::2] for part in words.split(",")]
    if not all(word and meaning for word, meaning in parts):
        raise InputError(f"`words` is {words!r}, which is not of the form yes=similar,no=dissimilar.")
    return _single("words", parts)


def _single(name: str, pairs: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return a mapping of a parameter that was given as text; refuse what is there twice."""
    mapping = {key.strip(): value.strip() for key, value in pairs}
    if len(mapping) < len(pairs):
        twice = next(key for key, count in Counter(key.strip() for key, _ in pairs).items() if count > 1)
        raise InputError(f"`{name}` has {twice!r} twice. Say once what it is.")
    return mapping
