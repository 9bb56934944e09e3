"""A protocol small enough to run in a second, on data that come with scikit-learn; rows with pairs to cluster."""

import numpy as np
import pytest

from reproduction.protocol import Protocol


@pytest.fixture
def tiny():
    return Protocol(
        name="figure2",
        title="tiny",
        methods=("su-squared", "du-squared", "sd-squared"),
        datasets=("breast_cancer",),
        n_pairs=(20, 40),
        n_unlabeled=(60,),
        assumed=("known",),
        trials=3,
        n_test=80,
    )


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    """No folder of files, so waveform is generated; the other benchmark sets cannot be had."""

    def refuse(**options):
        raise OSError("no network in tests")

    monkeypatch.delenv("SDULEARN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit-learn"))
    monkeypatch.setattr("reproduction.datasets.fetch_openml", refuse)


@pytest.fixture
def blobs():
    """Two clouds of 30 rows, their classes, and codes of four similar and two dissimilar pairs."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 30)
    X = rng.normal(size=(60, 3)) + 2.5 * y[:, None]
    codes = np.zeros(60, dtype=np.int64)
    for k, (a, b) in enumerate([(0, 1), (2, 3), (30, 31), (32, 33), (4, 34), (5, 35)], start=1):
        codes[[a, b]] = k if y[a] == y[b] else -k
    return X, y, codes
