"""The types that signatures speak of, in one place."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""Numbers."""
Codes: TypeAlias = NDArray[np.int64]
"""Pair codes: +k similar, -k dissimilar, 0 unlabeled."""
Indices: TypeAlias = NDArray[np.intp]
"""Row numbers."""
Mask: TypeAlias = NDArray[np.bool_]
"""A yes or no for each row."""
Rows: TypeAlias = Any
"""Checked rows: a float array or a CSR matrix. scipy has no types, and a union would forbid sparse methods."""
MatrixLike: TypeAlias = Any
"""Rows as users give them: array-like, sparse, or a pandas or polars frame."""
Frame: TypeAlias = Any
"""A table with named columns: pandas, polars or pyarrow."""
ArrowTable: TypeAlias = Any
"""A pyarrow table or record batch; pyarrow has no types and is imported only where it is used."""
ArrowColumn: TypeAlias = Any
"""A pyarrow array or chunked array."""
ArrowType: TypeAlias = Any
"""A pyarrow data type."""
Estimator: TypeAlias = Any
"""Anything with scikit-learn's ``fit`` and ``predict``."""
Splitter: TypeAlias = Any
"""Number of folds, or an object with scikit-learn's ``split``."""
RandomState: TypeAlias = Any
"""Seed, generator or None, as scikit-learn takes it."""


class Between(NamedTuple):
    """Limits of a number that is read from a file, both allowed; ``nan`` where null stands for NaN."""

    low: float
    high: float
    nan: bool = False


Probability: TypeAlias = Annotated[float, Between(0, 1)]
"""A share or probability."""
Count: TypeAlias = Annotated[int, Between(0, 2**62)]
"""A number of things."""
