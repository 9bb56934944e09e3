import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduction import runner
from reproduction.protocol import PRIORS, QUICK, VERSION
from reproduction.runner import MixedResultsError, Results, run
from sdulearn.errors import FileError

ROOT = Path(__file__).parents[2]


def numbers(folder, protocol):
    """All records without their time, in a fixed order."""
    records = Results(folder, protocol).read().values()
    return sorted(json.dumps({k: v for k, v in r.items() if k != "seconds"}, sort_keys=True) for r in records)


def test_one_line_of_json_per_cell(tiny, tmp_path):
    report = run(tiny, tmp_path, progress=False)
    lines = (tmp_path / "figure2.jsonl").read_text().splitlines()
    assert len(lines) == report.measured == len(list(tiny.cells())) == 18
    record = json.loads(lines[0])
    assert record["dataset"] == "breast_cancer"
    assert 0 <= record["accuracy"] <= 1
    assert record["error"] is None
    meta = json.loads((tmp_path / "figure2.meta.json").read_text())
    assert meta["protocol_hash"] == tiny.hash()
    assert meta["protocol_version"] == VERSION
    assert {"sdulearn", "numpy", "scikit-learn"} <= set(meta["versions"])
    assert set(meta["data"]) == {"breast_cancer"}


def test_one_worker_equals_two(tiny, tmp_path):
    tiny = tiny.with_changes(methods=(*tiny.methods, "km", "sddu-double_hinge"))
    run(tiny, tmp_path / "one", jobs=1, progress=False)
    run(tiny, tmp_path / "two", jobs=2, progress=False)
    assert numbers(tmp_path / "one", tiny) == numbers(tmp_path / "two", tiny)


def test_running_again_measures_nothing(tiny, tmp_path):
    run(tiny, tmp_path, progress=False)
    before = (tmp_path / "figure2.jsonl").read_bytes()
    again = run(tiny, tmp_path, progress=False)
    assert (again.measured, again.kept) == (0, 18)
    assert (tmp_path / "figure2.jsonl").read_bytes() == before


def test_a_run_can_grow(tiny, tmp_path):
    run(tiny.with_changes(trials=1, methods=("su-squared",)), tmp_path, progress=False)
    grown = run(tiny, tmp_path, progress=False)
    assert (grown.measured, grown.kept) == (16, 2)


@pytest.mark.parametrize("tear", [1, 40, -1])
def test_torn_last_line(tiny, tmp_path, tear):
    run(tiny, tmp_path / "whole", progress=False)
    run(tiny, tmp_path / "torn", progress=False)
    path = tmp_path / "torn" / "figure2.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7]) + lines[7][:tear])
    assert len(Results(tmp_path / "torn", tiny).read().values()) in (7, 8)
    run(tiny, tmp_path / "torn", progress=False)
    assert numbers(tmp_path / "torn", tiny) == numbers(tmp_path / "whole", tiny)
    assert all(json.loads(line) for line in path.read_text().splitlines())


KILLED = """
import sys
from reproduction.protocol import QUICK
from reproduction.runner import run
protocol = QUICK["table"].with_changes(methods=("sddu-double_hinge",), datasets=("breast_cancer",), trials=40)
run(protocol, sys.argv[1], jobs=1, progress=False)
"""


def test_resume_after_kill(tmp_path):
    path = tmp_path / "table.jsonl"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}  # a kill leaves its scratch behind
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, cwd=ROOT)
    try:
        deadline = time.monotonic() + 1800
        while (not path.exists() or path.read_bytes().count(b"\n") < 4) and time.monotonic() < deadline:
            assert child.poll() is None, "the child ended before it could be killed"
            time.sleep(0.005)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    protocol = QUICK["table"].with_changes(methods=("sddu-double_hinge",), datasets=("breast_cancer",), trials=12)
    kept = len([r for r in Results(tmp_path, protocol).read().values() if r["trial"] < 12])
    assert kept >= 4
    resumed = run(protocol, tmp_path, progress=False)
    assert (resumed.kept, resumed.measured) == (kept, 12 - kept)
    run(protocol, tmp_path / "whole", progress=False)
    assert set(numbers(tmp_path / "whole", protocol)) <= set(numbers(tmp_path, protocol))


def test_interrupt_keeps_what_is_done(tiny, tmp_path, monkeypatch):
    calls = []

    def measure(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    original = runner.measure
    monkeypatch.setattr(runner, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        run(tiny, tmp_path, progress=False)
    monkeypatch.setattr(runner, "measure", original)
    resumed = run(tiny, tmp_path, progress=False)
    assert (resumed.kept, resumed.measured) == (6, 12)


def test_another_protocol_is_refused(tiny, tmp_path):
    run(tiny, tmp_path, progress=False)
    before = (tmp_path / "figure2.jsonl").read_bytes()
    with pytest.raises(MixedResultsError, match=r"another protocol.*Choose another folder with --out"):
        run(tiny.with_changes(n_test=60), tmp_path, progress=False)
    assert (tmp_path / "figure2.jsonl").read_bytes() == before


def test_other_data_are_refused(tiny, tmp_path, monkeypatch):
    run(tiny, tmp_path, progress=False)
    X, y = runner.SETS["breast_cancer"]()
    monkeypatch.setitem(runner.SETS, "breast_cancer", lambda: (X + 1, y))
    with pytest.raises(MixedResultsError, match="other data for breast_cancer"):
        run(tiny, tmp_path, progress=False)


def test_missing_data_go_into_the_notes(tiny, tmp_path):
    report = run(tiny.with_changes(datasets=("adult", "breast_cancer")), tmp_path, progress=False)
    assert report.measured == 18
    assert len(report.notes) == 1
    assert "adult is left out" in report.notes[0]
    assert "SDULEARN_DATA" in report.notes[0]


def test_too_small_sets_go_into_the_notes(tiny, tmp_path):
    report = run(tiny.with_changes(n_pairs=(20, 400)), tmp_path, progress=False)
    assert report.measured == 9
    assert report.notes == ["breast_cancer is too small for 400 pairs and 60 unlabeled rows at prior 0.7."]


def test_a_failed_cell_is_recorded_and_tried_again(tmp_path):
    protocol = PRIORS.with_changes(
        datasets=("breast_cancer",), methods=("sd-squared", "supervised"), priors=(0.5,), n_pairs=(40,),
        n_unlabeled=(60,), trials=1,
    )  # fmt: skip
    run(protocol, tmp_path, progress=False)
    records = {r["method"]: r for r in Results(tmp_path, protocol).read().values()}
    assert "undefined at `prior=0.5`" in records["sd-squared"]["error"]
    assert records["sd-squared"]["accuracy"] is None
    assert records["supervised"]["error"] is None
    again = run(protocol, tmp_path, progress=False)
    assert (again.measured, again.kept) == (1, 1)


def test_a_second_run_in_one_folder_is_refused(tiny, tmp_path):
    results = Results(tmp_path, tiny)
    results.open({})
    results.append([{"half": "a line"}])
    before = results.lines.read_bytes()
    with results.locked(), pytest.raises(FileError, match=r"Another run is writing .*another folder with --out"):
        run(tiny, tmp_path, progress=False)
    assert results.lines.read_bytes() == before
    # The lock goes with its holder.
    with results.locked():
        pass


def test_progress_bar_shows_time_left(tiny, tmp_path, capsys):
    run(tiny, tmp_path, progress=True)
    assert "18/18" in capsys.readouterr().err
    assert Path(tmp_path / "figure2.jsonl").exists()
