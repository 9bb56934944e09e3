"""The linear estimators on a Dask cluster: names, parameters and answers are the local ones'.

``fit`` takes dask arrays and dask frames; ``decision_function``, ``predict`` and ``predict_proba``
give lazy dask arrays for arrays, lazy dask Series and frames for frames. All of it also takes plain
arrays, and then runs here. The work goes to the active ``distributed.Client``; without one, to
Dask's local scheduler. A model that was saved is read with :func:`sdulearn.load_model` where there
is no Dask.
"""

from __future__ import annotations

from sdulearn.blocks import Blocks, Sums, refuse_shared
from sdulearn.blocks.estimators import RowsElsewhere, SDUClassifier, SDUClassifierCV
from sdulearn.blocks.problem import count_columns
from sdulearn.errors import InputError, require
from sdulearn.joint import estimators as joint
from sdulearn.joint.blockwise import fit_pair_logistic
from sdulearn.solvers.problem import Fit

for _module in ("dask.array", "distributed"):
    require(_module, "dask")

from sdulearn.distributed.chunks import gather_pairs  # noqa: E402
from sdulearn.distributed.cluster import (  # noqa: E402
    DaskBlocks,
    SchedulerLostError,
    WorkerFileError,
    WorkersLostError,
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

# What to do about answers that share points.
_FIT_IN_MEMORY = (
    "Fit sdulearn.PairLogisticRegression in memory, on the rows in answers and a draw of the others; "
    "sdulearn.fit_table does so with any `engine`."
)


class PairLogisticRegression(RowsElsewhere, joint.PairLogisticRegression):
    """:class:`sdulearn.PairLogisticRegression` on dask arrays and dask frames.

    Parameters and attributes are the same, for loose pairs: no point is in two answers, no row has
    a label, and ``error_rate`` is one rate, above 0 beside a given ``prior`` only, or, with answers
    of one annotator, "auto". Both ends of a pair must be in one chunk:
    :func:`~sdulearn.distributed.gather_pairs` brings them there. The rows are kept in the workers'
    memory while it fits.

    Examples
    --------
    >>> import dask.array as da
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.distributed import PairLogisticRegression, gather_pairs
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> gathered = gather_pairs(da.from_array(rows, chunks=(301, -1)), codes)
    >>> model = PairLogisticRegression().fit(*gathered)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.88)
    True
    """

    def _is_iterative(self) -> bool:
        return True

    def _fit_blocks(self, blocks: Blocks) -> Fit:
        self._refuse_columns(blocks.sum(count_columns))
        return fit_pair_logistic(self, blocks)

    def _refuse_columns(self, sums: Sums | None) -> None:
        """Refuse columns of ``y`` that the likelihood of loose pairs would leave out."""
        if sums is None:
            return
        refuse_shared(sums["points"], "the joint likelihood", _FIT_IN_MEMORY)
        if sums["n_labels"]:
            raise InputError(
                f"`y` has labels on {sums['n_labels']:,} rows, from which the joint likelihood does not learn over "
                f"blocks. {_FIT_IN_MEMORY} Or leave the column out and name the classes afterwards, with orient."
            )
        if self.error_rate == "auto" and (n_annotators := len(set(sums["annotators"]))) > 1:
            raise InputError(
                f"`y` names {n_annotators} annotators, whose error rates are estimated in memory only. "
                f"{_FIT_IN_MEMORY} Or give one rate for all: `error_rate=0` takes all answers for right."
            )
