"""The paper's claims, each with a verdict from our own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from reproduction.methods import METHODS
from reproduction.protocol import CLUSTERINGS
from reproduction.tables import Measurements, Setting, Values, is_above, mean_of, paired_outcome

Outcome: TypeAlias = Callable[[Values, Values], int]

RULE = (
    "Each comparison is a one-sided t-test at 5% on one data set and size; draws are shared, so trials "
    "are paired. A claim holds where at least half of the comparisons are won and at most one in twenty "
    "is lost; mostly holds where it wins at least twice as often as it loses; shows no clear difference "
    "where fewer than one in four is decided either way; does not hold where it loses at least twice as "
    "often as it wins; else it is mixed. A claim about several comparisons holds only where each of them "
    "at least mostly holds, and is mixed where one does not hold."
)


@dataclass(frozen=True)
class Comparison:
    """One method against another over many settings: wins, ties, losses and the mean gap."""

    label: str
    wins: int
    ties: int
    losses: int
    gap: float

    @property
    def total(self) -> int:
        """Number of settings compared."""
        return self.wins + self.ties + self.losses

    @property
    def verdict(self) -> str:
        """A word by ``RULE``."""
        return verdict(self.wins, self.ties, self.losses)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and the comparisons that decide it."""

    name: str
    text: str
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, ties and losses of all comparisons together."""
        return (
            sum(c.wins for c in self.comparisons),
            sum(c.ties for c in self.comparisons),
            sum(c.losses for c in self.comparisons),
        )

    @property
    def verdict(self) -> str:
        """That of all comparisons together, capped by its parts."""
        parts = {c.verdict for c in self.comparisons}
        pooled = verdict(*self.counts)
        if "does not hold" in parts and pooled in ("holds", "mostly holds"):
            return "mixed"
        if pooled == "holds" and parts - {"holds", "mostly holds"}:
            return "mostly holds"
        return pooled


def verdict(wins: int, ties: int, losses: int) -> str:
    """A word for so many wins, ties and losses; the rule is ``RULE``."""
    total = wins + ties + losses
    if total == 0:
        return "not measured"
    if wins >= total / 2 and losses <= total / 20:
        return "holds"
    if wins + losses < total / 4:
        return "no clear difference"
    if wins >= 2 * losses:
        return "mostly holds"
    return "does not hold" if losses >= 2 * wins else "mixed"


def check_claims(measured: dict[str, Measurements]) -> list[Claim]:
    """All claims, from the measurements of each protocol by name."""
    table = measured.get("table", Measurements([]))
    figure2 = measured.get("figure2", Measurements([]))
    figure3 = measured.get("figure3", Measurements([]))
    return [
        Claim(
            "DU and SD beat SU",
            "“DU and SD classification consistently outperform SU classification.” (Figure 2)",
            _present(compare(figure2, first, "su-squared") for first in ("du-squared", "sd-squared")),
        ),
        Claim(
            "SDDU is the best mixture",
            "“SDDU classification constantly performs the best among all SDU classification.” "
            "(Figure 3, appendix table)",
            _present(_mixtures(table, figure3)),
        ),
        Claim(
            "Unlabeled data helps",
            "“When the number of unlabeled data is sufficiently large, SDDU classification "
            "outperforms SD classification.” (Figure 3)",
            _present([against_sd(figure3), many_against_few(figure3)]),
        ),
        Claim(
            "SDU beats clustering",
            "“Our SDU classification outperforms baseline methods.” (Table 1)",
            _present(
                compare(table, f"sddu-{loss}", other)
                for loss in ("squared", "double_hinge", "printed")
                for other in CLUSTERINGS
            ),
        ),
    ]


def _mixtures(table: Measurements, figure3: Measurements) -> Iterator[Comparison]:
    for source, place, loss in (
        (table, "table", "squared"),
        (table, "table", "double_hinge"),
        (table, "table", "printed"),
        (figure3, "Figure 3", "squared"),
    ):
        for other in ("sdsu", "sudu"):
            yield compare(source, f"sddu-{loss}", f"{other}-{loss}", place)


def compare(measured: Measurements, first: str, second: str, place: str = "") -> Comparison:
    """One method against another in every setting that has both."""
    label = f"{METHODS[first].label} against {METHODS[second].label}"
    if place:
        label += f" ({place})"
    pairs = [(measured.values(s, first), measured.values(s, second)) for s in measured.settings()]
    return _tally(label, pairs, paired_outcome)


def against_sd(measured: Measurements) -> Comparison:
    """SDDU against SD, at the largest number of unlabeled rows of each set."""
    last = _by_size(measured, -1)
    pairs = [(measured.values(s, "sddu-squared"), measured.values(s, "sd-squared")) for s in last]
    return _tally("SDDU against SD, most unlabeled rows", pairs, paired_outcome)


def many_against_few(measured: Measurements) -> Comparison:
    """SDDU with the most against SDDU with the fewest unlabeled rows: other draws, so not paired."""
    both = zip(_by_size(measured, -1), _by_size(measured, 0), strict=True)
    pairs = [
        (measured.values(many, "sddu-squared"), measured.values(few, "sddu-squared"))
        for many, few in both
        if many != few
    ]
    return _tally("SDDU, most against fewest unlabeled rows", pairs, unpaired_outcome)


def unpaired_outcome(first: Values, second: Values) -> int:
    """As ``paired_outcome``, for trials that share nothing."""
    return int(is_above(first, second)) - int(is_above(second, first))


def _by_size(measured: Measurements, position: int) -> list[Setting]:
    """For each set, the setting with the fewest (0) or most (-1) unlabeled rows."""
    by_set = (measured.settings(name) for name in measured.datasets())
    return [sorted(settings, key=lambda s: s.n_unlabeled)[position] for settings in by_set]


def _tally(label: str, pairs: Iterable[tuple[Values, Values]], outcome: Outcome) -> Comparison:
    both = [(a, b) for a, b in pairs if a and b]
    outcomes = [outcome(a, b) for a, b in both]
    gaps = [mean_of(a).value - mean_of(b).value for a, b in both]
    gap = sum(gaps) / len(gaps) if gaps else 0.0
    return Comparison(label, outcomes.count(1), outcomes.count(0), outcomes.count(-1), gap)


def _present(comparisons: Iterable[Comparison]) -> list[Comparison]:
    return [c for c in comparisons if c.total]
