"""Small data sets that every test may use."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from sdulearn.datasets import BENCHMARKS, load_benchmark, make_waveform, sample_sdu


@pytest.fixture(scope="session")
def waveform():
    """Standardised rows and pair codes: 60 pairs, 80 unlabeled rows, prior 0.7."""
    X, y = make_waveform(2000, random_state=1)
    rows, codes = sample_sdu(X, y, n_pairs=60, n_unlabeled=80, prior=0.7, random_state=1)
    return StandardScaler().fit_transform(rows), codes


@pytest.fixture(params=BENCHMARKS)
def benchmark_rows(request):
    """As drawn, not standardised: 200 pairs and 500 unlabeled rows of one of the ten sets."""
    if not os.environ.get("SDULEARN_DATA"):
        pytest.skip("SDULEARN_DATA does not point at the benchmark sets")
    X, y = load_benchmark(request.param)
    rows, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=0)
    return np.asarray(rows), codes
