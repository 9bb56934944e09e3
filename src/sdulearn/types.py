"""The types that signatures speak of, in one place."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]  # pair codes: +k similar, -k dissimilar, 0 unlabeled
Indices: TypeAlias = NDArray[np.intp]  # row numbers
Mask: TypeAlias = NDArray[np.bool_]  # a yes or no for each row
# scipy and pyarrow have no types; a union of array and matrix would forbid sparse methods.
Rows: TypeAlias = Any  # checked rows: a float array or a CSR matrix
MatrixLike: TypeAlias = Any  # rows as users give them: array-like, sparse, pandas or polars frame
Frame: TypeAlias = Any  # a table with named columns: pandas, polars or pyarrow
ArrowTable: TypeAlias = Any  # a pyarrow table or record batch
ArrowColumn: TypeAlias = Any  # a pyarrow array or chunked array
ArrowType: TypeAlias = Any  # a pyarrow data type
Estimator: TypeAlias = Any  # anything with scikit-learn's ``fit`` and ``predict``
Splitter: TypeAlias = Any  # a number of folds, or an object with scikit-learn's ``split``
RandomState: TypeAlias = Any  # seed, generator or None, as scikit-learn takes it


class Between(NamedTuple):
    """Limits of a number that is read from a file, both allowed; ``nan`` where null stands for NaN."""

    low: float
    high: float
    nan: bool = False


Probability: TypeAlias = Annotated[float, Between(0, 1)]
Count: TypeAlias = Annotated[int, Between(0, 2**62)]
ClassName: TypeAlias = Annotated[int, Between(-(2**62), 2**62)]
