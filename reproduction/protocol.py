"""What is measured: one frozen protocol per table and figure, and the cells it consists of."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from reproduction.datasets import BENCHMARKS
from sdulearn.risks import MIXED_RISKS

# Raise it whenever the same cell would come out with another number: old results are then refused,
# never mixed in.
VERSION = 1

MIXTURES = tuple(f"{risk}-{loss}" for risk in MIXED_RISKS for loss in ("squared", "double_hinge"))
# Double hinge by the objective as the paper's appendix prints it: penalty 1, the bias penalised.
PRINTED = tuple(f"{risk}-printed" for risk in MIXED_RISKS)
BASIC_PRINTED = ("su-printed", "du-printed", "sd-printed")
CLUSTERINGS = ("km", "ckm", "ssp", "itml")
EXTRAS = ("sddu-logistic", "joint", "supervised")

Assumed: TypeAlias = float | str
"""The prior a method is given: a number, "known" (the true one) or "counts" (from the pairs)."""
Key: TypeAlias = dict[str, Any]
"""A cell as flat JSON."""


@dataclass(frozen=True)
class Draw:
    """One random draw of pairs, unlabeled rows and test points from one data set."""

    dataset: str
    n_pairs: int
    n_unlabeled: int
    prior: float
    flip: float
    trial: int

    @property
    def seed(self) -> int:
        """Seed of the draw, from its own fields and nothing else."""
        return _seed(asdict(self))


@dataclass(frozen=True)
class Cell:
    """One number to measure: a method on a draw, given a prior."""

    draw: Draw
    method: str
    assumed: Assumed

    @property
    def seed(self) -> int:
        """Seed of the method, from the cell's own fields and nothing else."""
        return _seed(self.key())

    def key(self) -> Key:
        """The cell as flat JSON; what a line of results is found by."""
        return {**asdict(self.draw), "method": self.method, "assumed": self.assumed}

    @classmethod
    def from_key(cls, key: Key) -> Cell:
        """The cell of a line of results."""
        draw = Draw(**{name: key[name] for name in Draw.__dataclass_fields__})
        return cls(draw, key["method"], key["assumed"])


@dataclass(frozen=True)
class Protocol:
    """A table or figure: the grid of cells behind it. ``name`` is also that of the files of its results."""

    name: str
    title: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...] = BENCHMARKS
    n_pairs: tuple[int, ...] = (50, 200)
    n_unlabeled: tuple[int, ...] = (500,)
    priors: tuple[float, ...] = (0.7,)
    assumed: tuple[Assumed, ...] = ("counts",)
    flips: tuple[float, ...] = (0.0,)
    trials: int = 50
    n_test: int = 500

    def draws(self) -> Iterator[Draw]:
        """All draws, one data set after the other."""
        sizes = (self.n_pairs, self.n_unlabeled, self.priors, self.flips)
        return itertools.starmap(Draw, itertools.product(self.datasets, *sizes, range(self.trials)))

    def cells(self) -> Iterator[Cell]:
        """All cells; those of one draw follow one another."""
        for draw in self.draws():
            for method, assumed in itertools.product(self.methods, self.assumed):
                yield Cell(draw, method, assumed)

    def hash(self) -> str:
        """Fingerprint of all that changes the number of a given cell.

        The grid itself (sets, methods, sizes, trials) is in the key of each cell and not in here,
        so a run can grow: more trials, another set or a method that was not there before keep the
        numbers already measured.
        """
        return _digest({"version": VERSION, "name": self.name, "n_test": self.n_test})[:16]

    def with_changes(self, **changes: Any) -> Protocol:
        """A copy with some fields replaced."""
        return replace(self, **changes)


# Each double-hinge column with the one as printed beside it.
_MIXED_COLUMNS = tuple(f"{risk}-{kind}" for risk in MIXED_RISKS for kind in ("squared", "double_hinge", "printed"))

TABLE = Protocol(
    name="table",
    title="Table 1 and the appendix table: mean accuracy",
    methods=(*_MIXED_COLUMNS, *BASIC_PRINTED, *CLUSTERINGS, *EXTRAS),
)

FIGURE2 = Protocol(
    name="figure2",
    title="Figure 2: SU, DU and SD against the number of pairs",
    methods=("su-squared", "du-squared", "sd-squared"),
    n_pairs=(50, 100, 200, 400, 600),
    assumed=("known",),
)

# The paper prints no axis for this figure. At 1000 unlabeled rows every one of the ten sets still
# has enough points.
FIGURE3 = Protocol(
    name="figure3",
    title="Figure 3: the mixtures against the number of unlabeled rows",
    methods=("sdsu-squared", "sddu-squared", "sudu-squared", "sd-squared"),
    n_pairs=(50,),
    n_unlabeled=(100, 200, 400, 600, 800, 1000),
    trials=100,
)

WRONG_PRIOR = Protocol(
    name="wrong_prior",
    title="What a wrong prior costs",
    methods=("sd-squared", "sddu-squared", "sddu-double_hinge", "joint"),
    n_pairs=(200,),
    assumed=(0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9),
    trials=20,
)

PRIORS = Protocol(
    name="priors",
    title="From balanced to lopsided classes",
    methods=("sd-squared", "sddu-squared", "sddu-double_hinge", "joint", "supervised"),
    n_pairs=(200,),
    priors=(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    assumed=("known",),
    trials=20,
)

NOISE = Protocol(
    name="noise",
    title="Wrong answers: pairs flipped by noise",
    methods=("sd-squared", "sddu-squared", "joint", "ckm", "itml"),
    n_pairs=(200,),
    assumed=("known",),
    flips=(0.0, 0.05, 0.1, 0.2, 0.3, 0.4),
    trials=20,
)

PROTOCOLS = {p.name: p for p in (TABLE, FIGURE2, FIGURE3, WRONG_PRIOR, PRIORS, NOISE)}
"""The experiments by name: the paper's table and two figures at the paper's sizes, and three more."""

# Data that need no download; sizes that fit the 569 rows of breast_cancer.
_QUICK: dict[str, Any] = {
    "datasets": ("waveform", "breast_cancer"),
    "trials": 8,
    "n_pairs": (50,),
    "n_unlabeled": (200,),
    "n_test": 200,
}
_QUICK_GRIDS: dict[str, dict[str, Any]] = {
    "table": {},
    "figure2": {"n_pairs": (25, 50, 100), "n_unlabeled": (100,)},
    "figure3": {"n_unlabeled": (50, 100, 200)},
    "wrong_prior": {"assumed": (0.6, 0.7, 0.8, 0.9)},
    "priors": {"priors": (0.5, 0.6, 0.7, 0.8, 0.9)},
    "noise": {"flips": (0.0, 0.1, 0.2, 0.3)},
}
QUICK = {name: PROTOCOLS[name].with_changes(**{**_QUICK, **grid}) for name, grid in _QUICK_GRIDS.items()}
"""The same experiments in small: two sets that need no download, eight draws, under two minutes."""


def _digest(fields: Key) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _seed(fields: Key) -> int:
    return int(_digest(fields)[:8], 16)
