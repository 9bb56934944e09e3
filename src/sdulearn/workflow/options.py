"""What a fit of a table is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from sdulearn.errors import InputError, require
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS

METHODS = ("auto", "joint", *RISKS)
MODELS = ("auto", "linear", "boosted")
MAX_UNLABELED = 20_000
# Beyond so many columns rows must stay few: the eigenvectors of the smaller side are needed.
_WIDE = 3000
_UNLABELED_WIDE = 1000


@dataclass(frozen=True)
class FitOptions:
    """The choices of :func:`sdulearn.fit_table`, checked."""

    codes: str | None
    points: str | None
    method: str
    loss: str
    prior: float | None
    error_rate: str | float
    classes: int | str | None
    model: str | None
    max_unlabeled: int | None
    id_column: str | None
    drop: Sequence[str]
    categories: Sequence[str]
    missing: str
    max_categories: int
    skip_bad: bool
    prior_strength: float = 3.0

    def __post_init__(self) -> None:
        if self.points is not None and self.codes is None:
            raise InputError("`points` goes with `codes`: by `answers`, equal ids are the same point. Leave it out.")
        choices = {
            "method": (self.method, METHODS),
            "loss": (self.loss, tuple(TRAINING_LOSSES)),
            "missing": (self.missing, ("error", "mean")),
            "model": (self.model or "auto", MODELS),
        }
        for name, (value, allowed) in choices.items():
            if value not in allowed:
                raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}.")
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"`prior` must lie between 0 and 1, got {self.prior!r}.")
        number = self.classes
        if number not in (None, "auto") and not (isinstance(number, Integral) and number >= 2):
            raise InputError(f"`classes` must be a whole number from 2 on or 'auto', got {number!r}.")
        if number not in (None, 2):
            self.check_many_classes(f"`classes={number!r}`")
        if self.model == "boosted":
            self.need_joint("`model='boosted'`")
            require("lightgbm", "boosting")

    @property
    def is_joint(self) -> bool:
        """Whether the method looks at both ends of a pair together."""
        return self.method in ("auto", "joint")

    def check_many_classes(self, what: str) -> None:
        """More than two classes, or a search for their number."""
        self.need_joint(what)
        if self.prior is not None:
            raise InputError(f"`prior` is the share of class +1 of two; with {what} leave it out.")

    def need_joint(self, what: str) -> None:
        """Refuse the paper's risks."""
        if not self.is_joint:
            raise InputError(f"{what} needs the joint likelihood: give `method='joint'`, not {self.method!r}.")

    def most_unlabeled(self, width: int) -> int:
        """Rows to draw as unlabeled: as many as asked for, and no more than a wide table bears."""
        asked = self.max_unlabeled or MAX_UNLABELED
        return min(asked, _UNLABELED_WIDE) if width > _WIDE else asked
