"""The linear estimators on a Dask cluster: names, parameters and answers are the local ones'.

``fit`` takes dask arrays and dask frames; ``decision_function``, ``predict`` and ``predict_proba``
give lazy dask arrays for arrays, lazy dask Series and frames for frames. All of it also takes plain
arrays, and then runs here. The work goes to the active ``distributed.Client``; without one, to
Dask's local scheduler. A model that was saved is read with :func:`sdulearn.load_model` where there
is no Dask.
"""

from __future__ import annotations

from sdulearn.extras import require

for _module in ("dask.array", "distributed"):
    require(_module, "dask")

from sdulearn.distributed.chunks import gather_pairs  # noqa: E402
from sdulearn.distributed.cluster import (  # noqa: E402
    DaskBlocks,
    SchedulerLostError,
    WorkerFileError,
    WorkersLostError,
)
from sdulearn.distributed.estimators import (  # noqa: E402
    PairLogisticRegression,
    SDUClassifier,
    SDUClassifierCV,
)

__all__ = [
    "DaskBlocks",
    "PairLogisticRegression",
    "SDUClassifier",
    "SDUClassifierCV",
    "SchedulerLostError",
    "WorkerFileError",
    "WorkersLostError",
    "gather_pairs",
]
