"""A small experiment for a first look: every risk and loss on data that needs no download."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from sdulearn.errors import InputError, SdulearnWarning, warn
from sdulearn.experiments.figures import Figure, write_png
from sdulearn.experiments.measurements import Measurements
from sdulearn.experiments.protocol import Protocol
from sdulearn.experiments.results import Results, make_folder
from sdulearn.experiments.runner import run
from sdulearn.experiments.tables import Summary, summary, write_csv
from sdulearn.extras import require
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS

BESIDE = ("joint", "km", "supervised")

# Sizes that fit the 569 rows of breast_cancer.
TABLE = Protocol(
    name="demo",
    title="Every risk and loss",
    methods=(*(f"{risk}-{loss}" for risk in RISKS for loss in TRAINING_LOSSES), *BESIDE),
    datasets=("breast_cancer", "waveform"),
    n_pairs=(100,),
    n_unlabeled=(100,),
    trials=6,
    n_test=200,
)
# Of the same name, so what both ask for is measured once.
CURVES = TABLE.with_changes(
    title="Error against the number of pairs",
    methods=("su-squared", "du-squared", "sd-squared", "sddu-squared", *BESIDE),
    n_pairs=(25, 50, 100),
)
FIGURE = Figure("demo", x="n_pairs", x_label="pairs", error=True, caption="")


def demonstrate(
    out: str | os.PathLike[str] = "sdulearn-demo",
    *,
    trials: int = TABLE.trials,
    jobs: int | None = None,
    progress: bool = True,
) -> list[Summary]:
    """Train every risk and loss on bundled data and write a picture and a table.

    The methods are given answers to "same class?" and unlabeled rows, never a label, and choose
    their settings on the answers alone; logistic regression on the true labels stands beside them.

    Parameters
    ----------
    out : path, default="sdulearn-demo"
        Folder for ``demo.png`` (error against the number of pairs) and ``demo.csv``.
    trials : int, default=6
        Random draws.
    jobs : int, optional
        Worker processes; default: one per processor. The numbers do not depend on it.
    progress : bool, default=True
        Whether to show progress bars.

    Returns
    -------
    list of Summary
        Mean accuracy and standard error, in per cent, by data set, number of pairs and method.

    Raises
    ------
    InputError
        Where ``trials`` is below 1.
    FileError
        Where ``out`` cannot be made.

    Warns
    -----
    SdulearnWarning
        Where a data set is left out.

    See Also
    --------
    reproduce : The experiments of the paper.

    Examples
    --------
    >>> from sdulearn.experiments import demonstrate
    >>> results = demonstrate("sdulearn-demo")  # doctest: +SKIP
    """
    if trials < 1:
        raise InputError(f"`trials` must be 1 or more, got {trials}.")
    require("matplotlib", "demo")
    folder = make_folder(Path(out))
    with TemporaryDirectory(prefix="sdulearn-") as scratch:
        for protocol in (TABLE, CURVES):
            done = run(protocol.with_changes(trials=trials), scratch, jobs=jobs, progress=progress)
            for note in done.notes:
                warn(note, SdulearnWarning)
        measured = Measurements(Results(scratch, TABLE).read().values())
        curves = Measurements(Results(scratch, CURVES.with_changes(trials=trials)).read_cells())
    write_csv(folder / "demo.csv", measured)
    write_png(folder / "demo.png", FIGURE, curves, panel=(4.0, 3.2))
    return summary(measured)
