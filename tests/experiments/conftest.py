"""A protocol small enough to run in a second, on data that come with scikit-learn."""

import pytest

from sdulearn.experiments.protocol import Protocol


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
    monkeypatch.setattr("sdulearn.datasets.benchmark.fetch_openml", refuse)
