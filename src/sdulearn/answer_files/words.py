"""What the words of a file of answers mean: same or different, steps of a scale, and how sure somebody was."""

from __future__ import annotations

import operator
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, listed, quoted
from sdulearn.types import Array

MEANINGS = {"similar": SIMILAR, "dissimilar": DISSIMILAR, "unsure": UNSURE}
# In `words`, instead of a meaning: everybody has a threshold of their own on the scale.
PER_PERSON = "per person"

_WORDS = {
    SIMILAR: "similar same true must-link mustlink ml match accept yes y gleich ahnlich dasselbe dieselbe ja wahr meme "
    "pareil identique semblable oui vrai mismo misma igual iguales parecido verdadero stesso stessa uguale simile vero "
    "si zelfde hetzelfde dezelfde gelijk waar",
    DISSIMILAR: "dissimilar different false cannot-link cannotlink cl distinct reject not-similar not-same non-match "
    "no n verschieden unterschiedlich ungleich anders nein falsch differente non faux diferente distinto distinta "
    "falso diverso diversa differente verschillend ongelijk nee onwaar",
    UNSURE: "unsure ignore not-sure uncertain dont-know do-not-know unknown weiss-nicht unsicher keine-angabe "
    "ne-sait-pas je-ne-sais-pas incertain no-se no-sabe inseguro non-so incerto weet-niet weet-ik-niet onzeker",
}
_NUMBERS = {"1": SIMILAR, "0": DISSIMILAR, "-1": DISSIMILAR}
SPELLINGS = {word: answer for answer, words in _WORDS.items() for word in words.split()}
# Words that answer other questions, too.
PLAIN_WORDS = {"yes", "y", "ja", "oui", "si", "no", "n", "nein", "non", "nee", "1", "0", "-1", "true", "false"}
# Several steps of a scale, such as >=4 or 1-4.
_THRESHOLD = re.compile(r"([<>]=?)(-?\d+(?:\.\d+)?)")
_RANGE = re.compile(r"(\d+)-(\d+)")
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# In a column with such a name, yes and 1 mean that two are different.
_ASKS_DIFFERENT = re.compile("differ|distinct|dissimilar|versch|unterschied|ungleich|divers|distint|ongelijk")
# Probability of being right that a person states with such a word.
_STATED = {
    **dict.fromkeys(("definitely", "surely", "sure", "certain", "sicher"), 0.95),
    **dict.fromkeys(("probably", "rather", "wahrscheinlich", "eher"), 0.75),
    **dict.fromkeys(("guess", "guessed", "guessing", "geraten"), 0.6),
    "unsure": 0.5,
}  # fmt: skip
# Probabilities of being right at the ends of a scale of certainty. Of 45,000 answers of people 60, 74 and 87% were
# right at certainty 1, 2 and 3.
_SCALE_ENDS = (0.6, 0.9)
# Nobody takes so many seconds for every answer.
_LONG_SECONDS = 100
# A number with a decimal comma; 1,234 may be more than a thousand.
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d{1,2}|0?,\d+)")


def label_text(text: str) -> str:
    """Spell a label in one way: lower case, '-' for blanks and underscores, 1 for 1.0."""
    value = number(text)
    if value is not None and np.isfinite(value):
        return str(int(value)) if value.is_integer() else str(value)
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\s_]+", "-", re.sub("[\u0300-\u036f'’.!]", "", plain))


def number(text: str) -> float | None:
    """Return the number that a text spells, also as 0,9."""
    try:
        return float(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    except ValueError:
        return None


def is_answer(text: str) -> bool:
    """Whether a label is known without the user's words."""
    return text in SPELLINGS or text in _NUMBERS or _soft(text) is not None


def seconds(texts: Iterable[str], column: str) -> Array:
    """Return how long answers took; the name of the column may say milliseconds, as ``rt`` of jsPsych does."""
    numbers = np.array([number(text) for text in texts], dtype=np.float64)
    usable = np.where(np.isfinite(numbers) & (numbers >= 0), numbers, np.nan)
    name = column.lower().strip()
    are_milliseconds = re.search(r"ms\W*$", name) or (
        name == "rt" and not np.all(usable[usable == usable] < _LONG_SECONDS)
    )
    return usable / (1000 if are_milliseconds else 1)


def certainties(cells: Iterable[str]) -> dict[str, float]:
    """Return the probability of being right that each cell states, as a number, in words or on a scale from 1 on.

    Cells that state none are left out.
    """
    texts = {cell: label_text(cell) for cell in cells if cell}
    steps = sorted({int(text) for text in texts.values() if text.isdigit()})
    if len(steps) > 1 and steps[0] == 1:
        low, high = _SCALE_ENDS
        on_scale = {str(k): round(low + (high - low) * (k - 1) / (steps[-1] - 1), 4) for k in steps}
        stated = {cell: on_scale.get(text) for cell, text in texts.items()}
    else:
        # Of the steps 0, 1 and 2 the middle one is no certainty of 1.
        is_scale = bool(steps) and steps[-1] > 1
        stated = {
            cell: None if is_scale and text.isdigit() else _STATED.get(text, number(text))
            for cell, text in texts.items()
        }
    # A blank cell states nothing, and counts as certain.
    return {"": 1.0} | {cell: value for cell, value in stated.items() if value is not None and 0.5 <= value <= 1}


def meanings(path: str, column: str, counts: Counter[str], words: Mapping[str, str]) -> dict[str, float]:
    """Return what each label means, from -1 for dissimilar to 1; never guess."""
    given = _by_user(counts, words)
    if {"0", "-1"} <= counts.keys() - given.keys():
        raise InputError(
            f"{path} has the labels 0 ({counts['0']:,} times) and -1 ({counts['-1']:,} times): 0 may mean "
            "unsure or dissimilar. Say which: `words='0=unsure'`."
        )
    steps = _steps(counts)
    if set(steps) - given.keys() and set(steps) - _NUMBERS.keys():
        # On a scale, 1 does not mean "similar" either.
        raise InputError(_ask_about_scale(path, {text: counts[text] for text in steps}))
    known = {**{text: _soft(text) for text in counts}, **SPELLINGS, **_NUMBERS, **given}
    meaning = {text: value for text in counts if (value := known[text]) is not None}
    unclear = PLAIN_WORDS & (meaning.keys() - given.keys())
    if unclear and _ASKS_DIFFERENT.search(label_text(column)):
        raise InputError(
            f"{path}: column {quoted(column)} seems to ask whether two are different. Say what "
            f"{listed(sorted(map(quoted, unclear)))} mean there, for example: "
            "`words='yes=dissimilar,no=similar'`."
        )
    return meaning


def _steps(labels: Iterable[str]) -> list[str]:
    return sorted((text for text in labels if re.fullmatch(r"-?\d+", text)), key=int)


def _by_user(labels: Iterable[str], words: Mapping[str, str]) -> dict[str, float]:
    """Return what labels mean by the user's words, some of which are thresholds such as >=4."""
    plain: dict[str, float] = {}
    steps: dict[str, float] = {}
    numbers = {label: value for label in labels if (value := number(label)) is not None}
    for text, name in words.items():
        value = MEANINGS.get(name, _soft(name))
        if value is None:
            what = "A label means similar, dissimilar, unsure or a probability of similar"
            raise InputError(f"{what}; {text!r} was said to mean {name!r}.")
        if limit := _THRESHOLD.fullmatch(text):
            within = [label for label, step in numbers.items() if _COMPARE[limit[1]](step, float(limit[2]))]
            if both := [label for label in within if steps.get(label, value) != value]:
                raise InputError(f"By `words`, {both[0]} means two things. Give limits that do not overlap.")
            steps |= dict.fromkeys(within, value)
        else:
            plain[label_text(text)] = value
    return {**steps, **plain}


def split_per_person(words: Mapping[str, str]) -> tuple[dict[str, str], list[int] | None]:
    """Return words with one meaning for all, and the ends of a scale with thresholds per person, None without one."""
    ranges = {text for text, meaning in words.items() if meaning == PER_PERSON}
    rest = {text: meaning for text, meaning in words.items() if text not in ranges}
    if not ranges:
        return rest, None
    ends = _RANGE.fullmatch(only) if (only := next(iter(ranges))) != PER_PERSON else None
    if len(ranges) > 1 or (ends is None and only != PER_PERSON):
        raise InputError("`words` takes one scale per person, as in `words='0=unsure,1-4=per person'`.")
    return rest, [] if ends is None else [int(ends[1]), int(ends[2])]


def person_thresholds(
    path: str, labels: Sequence[str], people: Sequence[str], scale: Sequence[int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the least step of a scale that each person calls similar, and the steps of the scale by their text.

    Above the middle of the scale is a share of all answers. Everybody's threshold is the one above which the share of
    their own answers is closest to it: people who use high steps often have a high threshold.
    """
    steps = [int(text) for text in _steps(set(labels))]
    if not scale and steps and steps[0] == 0 and len(steps) > 2:
        raise InputError(
            f"{path}: 0 may be the lowest step of the scale or stand for no answer. Say which: "
            f"`words='0=unsure,1-{steps[-1]}=per person'` or `words='0-{steps[-1]}=per person'`."
        )
    low, high = scale or (min(steps, default=0), max(steps, default=0))
    on_scale = {str(step): step for step in steps if low <= step <= high}
    if len(on_scale) < 2 or not any(people):
        raise InputError(f"{path}: thresholds per person need a scale of whole numbers, and a column `annotator`.")
    own: dict[str, list[int]] = defaultdict(list)
    for text, person in zip(labels, people, strict=True):
        if text in on_scale:
            own[person].append(on_scale[text])
    above = np.mean([2 * step > low + high for given in own.values() for step in given])
    limits = range(low + 1, high + 1)
    # Of two that are equally close, the one nearer to the middle.
    return {
        person: min(
            limits, key=lambda k: (round(abs(np.mean(np.array(given) >= k) - above), 9), abs(2 * k - low - high - 1))
        )
        for person, given in own.items()
    }, on_scale


def _ask_about_scale(path: str, counts: Mapping[str, int]) -> str:
    """Ask what the steps of a scale mean, by a threshold or as probabilities."""
    shown = ", ".join(f"{text} ({n:,} times)" for text, n in counts.items())
    steps, half = list(counts), len(counts) // 2
    hard = dict.fromkeys(steps[half : len(steps) - half], "unsure")
    if half:
        hard = {f">={steps[-half]}": "similar", **hard, f"<={steps[half - 1]}": "dissimilar"}
    soft = {text: f"{0.05 + 0.9 * k / max(len(counts) - 1, 1):.2g}" for k, text in enumerate(counts)}
    return (
        f"{path} has the labels {shown}, which may be a scale. Say what each step means. If the highest means similar: "
        f"`words='{as_parameter(hard)}'` or, as probabilities of similar, `words='{as_parameter(soft)}'`. If not, "
        f"exchange the two. Where people use the scale differently: `words='{PER_PERSON}'`."
    )


def as_parameter(mapping: Mapping[str, str]) -> str:
    """Return a mapping as `columns` and `words` take it as text."""
    return ",".join(f"{name}={value}" for name, value in mapping.items())


def _soft(text: str) -> float | None:
    """Return a probability, or words such as "probably-same", on the scale from -1 to 1."""
    stated, _, word = text.partition("-")
    if stated in _STATED and word in SPELLINGS:
        return (2 * _STATED[stated] - 1) * SPELLINGS[word]
    value = number(text)
    return 2 * value - 1 if value is not None and 0 <= value <= 1 else None
