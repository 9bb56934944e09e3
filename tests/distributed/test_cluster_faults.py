"""What an error of a cluster is called: every kind of error with a client that runs and with one that does not."""

from types import SimpleNamespace

import pytest
from distributed import CancelledError, KilledWorker
from distributed.comm import CommClosedError

from sdulearn.distributed.cluster import (
    Call,
    SchedulerLostError,
    WorkerFileError,
    WorkersLostError,
    clear_errors,
    sum_of_blocks,
)

KILLED = KilledWorker("task", SimpleNamespace(address="tcp://one:1"), 3)
# The error; what it is called while the client runs, and after the connection was lost.
CASES = [
    (KILLED, WorkersLostError, WorkersLostError),
    (FileNotFoundError(2, "No such file", "rows.parquet"), WorkerFileError, WorkerFileError),
    (CommClosedError("in the middle"), SchedulerLostError, SchedulerLostError),
    (CancelledError("sum"), WorkersLostError, SchedulerLostError),
    (OSError("disk full"), OSError, SchedulerLostError),
    (ConnectionRefusedError("nobody there"), ConnectionRefusedError, SchedulerLostError),
    (ValueError("these rows are wrong"), ValueError, ValueError),
]


def client_of(status):
    return SimpleNamespace(status=status, scheduler=SimpleNamespace(address="tcp://here:8786"))


def fail(client, status, error):
    """An error on the way, after which the client is in another state."""
    with clear_errors(client):
        client.status = status
        raise error


@pytest.mark.parametrize("status", ["running", "connecting", "closed"])
@pytest.mark.parametrize(("error", "while_running", "after"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_errors_say_what_was_lost(error, while_running, after, status):
    expected = while_running if status == "running" else after
    with pytest.raises(expected) as caught:
        fail(client_of("running"), status, error)
    assert type(caught.value) is expected
    if isinstance(caught.value, SchedulerLostError):
        assert "tcp://here:8786" in str(caught.value)
        assert status in str(caught.value)
    if error is KILLED:
        assert "4 workers" in str(caught.value)


def test_nothing_is_begun_without_a_scheduler():
    begun = []
    with pytest.raises(SchedulerLostError), clear_errors(client_of("closed")):
        begun.append(1)
    assert not begun
    with clear_errors(client_of("running")):
        begun.append(1)
    assert begun


def test_a_part_reports_all_rows_of_its_blocks():
    blocks = [(None, range(n), None) for n in (3, 0, 5)]
    call = Call(lambda X, y, weight: sum(y), ())
    assert sum_of_blocks(blocks, call) == (8, 3 + 0 + 10)
