"""Where the work is done: what is opened to the outside, and what is refused."""

import pytest
from distributed import get_client

from sdulearn.errors import InputError
from sdulearn.workflow.options import open_engine


def test_a_local_cluster_is_for_this_machine_alone():
    """Neither scheduler nor dashboard has a password."""
    with open_engine("dask") as engine:
        client = get_client()
        assert engine.address.startswith("tcp://127.0.0.1:")
        assert client.cluster.dashboard_link.startswith("http://127.0.0.1:")
        for server in client.cluster.scheduler.http_server._sockets.values():
            assert server.getsockname()[0] == "127.0.0.1"
        assert engine.n_workers == len(client.nthreads())


@pytest.mark.parametrize(
    ("name", "scheduler", "message"),
    [("cloud", None, "`engine` must be one of"), ("stream", "tcp://x:1", r"`scheduler`.*needs `engine='dask'`")],
)
def test_engines_that_there_are_not(name, scheduler, message):
    with pytest.raises(InputError, match=message), open_engine(name, scheduler=scheduler):
        pass
