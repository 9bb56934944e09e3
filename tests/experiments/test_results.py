"""Two runs in one folder."""

import pytest

from sdulearn.errors import FileError
from sdulearn.experiments import QUICK
from sdulearn.experiments.results import Results
from sdulearn.experiments.runner import run


def test_a_second_run_in_one_folder_is_refused(tmp_path):
    protocol = next(iter(QUICK.values()))
    results = Results(tmp_path, protocol)
    results.open({})
    results.append([{"half": "a line"}])
    before = results.lines.read_bytes()
    with results.locked(), pytest.raises(FileError, match=r"Another run is writing .*choose another folder as `out`"):
        run(protocol, tmp_path, progress=False)
    assert results.lines.read_bytes() == before
    # The lock goes with its holder.
    with results.locked():
        pass
