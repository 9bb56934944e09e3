"""Options of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.records import Answers, flip_rate
from sdulearn.errors import InputError, require
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.reading import Reading
from sdulearn.risks import RISKS

METHODS = ("auto", "joint", *RISKS)
MODELS = ("auto", "linear", "boosted")
_CHOICES = {"method": METHODS, "loss": tuple(TRAINING_LOSSES), "model": MODELS}
MAX_UNLABELED = 20_000
# With more columns than this the sample of rows is small: a fit needs the eigenvectors of the
# smaller side of the matrix.
_WIDE = 3000
_UNLABELED_WIDE = 1000


@dataclass(frozen=True)
class FitOptions:
    """Options of :func:`sdulearn.fit_table`, validated."""

    reading: Reading = field(default_factory=Reading)
    stored: Reading | None = None  # of the table that the questions of a log were asked about
    method: str = "auto"
    loss: str = "squared"
    prior: float | None = None
    error_rate: str | float | Mapping[int, float] | AnswerModel = "auto"
    classes: int | str | None = None
    model: str | None = None
    max_unlabeled: int | None = None
    skip_bad: bool = False
    exclude_annotators: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if (value := getattr(self, name)) not in allowed and (name, value) != ("model", None):
                raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}.")
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"`prior` must lie between 0 and 1, got {self.prior!r}.")
        n = self.classes
        if n not in (None, "auto") and not (isinstance(n, Integral) and n >= 2):
            raise InputError(f"`classes` must be a whole number from 2 on or 'auto', got {n!r}.")
        if n not in (None, 2):
            self.check_many_classes(f"`classes={n!r}`")
        if self.model == "boosted":
            self.need_joint("`model='boosted'`")
            require("lightgbm", "boosting")

    @property
    def is_joint(self) -> bool:
        """Whether the method is the joint likelihood of pairs, not a risk of the paper."""
        return self.method in ("auto", "joint")

    def for_answers(self, answers: Answers) -> FitOptions:
        """Return the options with what a log says, unless they are given: how to read the table, a flip rate."""
        found = self
        if (reading := answers.reading) is not None:
            found = replace(self, reading=reading.continued(self.reading), stored=reading)
        if answers.epsilon is None:
            return found
        self.need_joint(f"{answers.name}: answers that were flipped (epsilon {answers.epsilon:g})")
        known = flip_rate(answers.epsilon) if self.error_rate == "auto" else self.error_rate
        return replace(found, error_rate=known)

    @property
    def likelihood(self) -> dict[str, Any]:
        """Parameters of the estimators of the joint likelihood."""
        return {name: getattr(self, name) for name in ("prior", "error_rate")}

    @property
    def tries_trees(self) -> bool:
        """Whether boosted trees are fitted, alone or beside a linear model."""
        return self.is_joint and self.model != "linear"

    def check_many_classes(self, what: str) -> None:
        """Refuse options that do not go with more than two classes, or with a search for K."""
        self.need_joint(what)
        if self.prior is not None:
            raise InputError(f"`prior` is the share of class +1 of two; with {what} leave it out.")

    def need_joint(self, what: str) -> None:
        """Refuse a risk of the paper."""
        if not self.is_joint:
            raise InputError(f"{what} needs the joint likelihood: give `method='joint'`, not {self.method!r}.")

    def most_unlabeled(self, width: int) -> int:
        """Return how many unlabeled rows to draw; fewer from a table of many columns."""
        asked = self.max_unlabeled or MAX_UNLABELED
        return min(asked, _UNLABELED_WIDE) if width > _WIDE else asked
