"""The experiments of the paper, and new ones, from data to report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sdulearn.errors import FileError, InputError
from sdulearn.experiments.data import SETS
from sdulearn.experiments.methods import METHODS
from sdulearn.experiments.pages import write_report
from sdulearn.experiments.protocol import PROTOCOLS, QUICK, Protocol
from sdulearn.experiments.report import Report, build_report
from sdulearn.experiments.runner import check_known, run
from sdulearn.extras import require


def reproduce(
    only: Sequence[str] | None = None,
    *,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "sdulearn-reproduce",
    measure: bool = True,
    progress: bool = True,
) -> Report:
    """Run the experiments of the paper, and new ones, and write a report.

    What is in ``out`` already is not measured again, so a stopped run goes on where it was.

    Parameters
    ----------
    only : sequence of str, optional
        Which experiments, by their names in :data:`PROTOCOLS`; default: all.
    quick : bool, default=False
        Whether to run :data:`QUICK` instead: no download, under two minutes.
    datasets : sequence of str, optional
        Which data sets; default: the ten of the paper (two with ``quick``).
    methods : sequence of str, optional
        Which methods, by their names in :class:`Protocol`; default: those of each experiment.
    trials : int, optional
        Random draws per cell; default: the paper's 50 and 100, 20 for the new experiments.
    jobs : int, optional
        Worker processes; default: one per processor. The numbers do not depend on it.
    out : path, default="sdulearn-reproduce"
        Folder of the report; the raw results are in its subfolder ``results``.
    measure : bool, default=True
        Whether to measure; False writes the report from what has been measured so far.
    progress : bool, default=True
        Whether to show progress bars.

    Returns
    -------
    Report
        What the report shows, as data; its ``page`` is the HTML page, with ``report.md``, a CSV file
        per experiment and ``figures`` beside it. Data sets that could not be had are in ``notes``.

    Raises
    ------
    InputError
        Where a name is unknown, or ``out`` holds results of another protocol or other data.
    FileError
        Where nothing could be measured, or ``out`` cannot be written.

    See Also
    --------
    demonstrate : A smaller experiment with every risk and loss.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sdulearn.experiments import reproduce
    >>> options = {"datasets": ["breast_cancer"], "trials": 1, "jobs": 1, "progress": False}
    >>> with TemporaryDirectory() as folder:
    ...     report = reproduce(["figure2"], quick=True, out=folder, **options)
    >>> report.page.name
    'report.html'
    >>> [line.cells for line in report.provenance]
    [9]
    """
    protocols = choose_protocols(only, quick=quick, datasets=datasets, methods=methods, trials=trials)
    require("matplotlib", "demo")
    folder = Path(out)
    notes = [f"All methods but {', '.join(methods)}, as asked."] if methods else []
    if measure:
        for protocol in protocols:
            notes += run(protocol, folder / "results", jobs=jobs, progress=progress).notes
    report = build_report(folder / "results", protocols, notes)
    if not report.measured:
        raise FileError(" ".join([f"Nothing was measured in {folder}.", *report.notes]))
    return replace(report, page=write_report(report, folder))


def choose_protocols(
    only: Sequence[str] | None = None,
    *,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    trials: int | None = None,
) -> list[Protocol]:
    """The protocols that parameters of :func:`reproduce` ask for."""
    known = QUICK if quick else PROTOCOLS
    check_known("only", only or (), known)
    check_known("datasets", datasets or (), SETS)
    check_known("methods", methods or (), METHODS)
    if trials is not None and trials < 1:
        raise InputError(f"`trials` must be 1 or more, got {trials}.")
    changes: dict[str, object] = {}
    if datasets:
        changes["datasets"] = tuple(dict.fromkeys(datasets))
    if methods:
        changes["methods"] = tuple(dict.fromkeys(methods))
    if trials:
        changes["trials"] = trials
    return [known[name].with_changes(**changes) for name in known if not only or name in only]
