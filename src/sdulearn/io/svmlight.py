"""svmlight files: sparse rows of numbered features."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from sdulearn.errors import InputError, reason
from sdulearn.io.files import Location


def parse_svmlight(path: Location, file: Iterable[bytes], width: int | None) -> sparse.csr_matrix:
    """The rows of a file, features numbered from 0; ``width`` says how many there may be."""
    try:
        X, _ = load_svmlight_file(file, n_features=width, zero_based=True)
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read as svmlight, or has features the model does not know: {reason(error)}"
        ) from None
    if not np.isfinite(X.data).all():
        raise InputError(f"{path} holds values that are missing or infinite. Leave them out; absent means zero.")
    return X
