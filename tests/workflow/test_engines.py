"""Where the work is done: what is opened to the outside, and what is refused."""

import pytest
from distributed import get_client

from sdulearn.errors import InputError
from sdulearn.workflow import open_engine


def test_a_local_cluster_serves_no_dashboard():
    """It has no password; the scheduler listens on this machine alone."""
    with open_engine("dask") as engine:
        client = get_client()
        assert engine.address.startswith("tcp://127.0.0.1:")
        assert client.cluster.dashboard_link == ""
        assert client.cluster.scheduler.http_server is None or not client.cluster.scheduler.http_server._sockets
        assert engine.n_workers == len(client.nthreads())


@pytest.mark.parametrize(
    ("name", "scheduler", "message"),
    [("cloud", None, "`engine` must be one of"), ("stream", "tcp://x:1", r"`scheduler`.*needs `engine='dask'`")],
)
def test_engines_that_there_are_not(name, scheduler, message):
    with pytest.raises(InputError, match=message), open_engine(name, scheduler=scheduler):
        pass
