"""Small data sets that every test may use."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from reproduction.datasets import BENCHMARKS, load_benchmark
from sdulearn import FitReport, PriorEstimate, stack_pairs
from sdulearn.answers import Rate
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.findings import FitWarning, OtherPopulation
from sdulearn.metrics import AccuracyEstimate
from sdulearn.report.records import AnnotatorReport, DoubtfulAnswer, ModelChoice
from sdulearn.tables.columns import Column, Columns
from sdulearn.tables.spelling import Spelling

# The same examples in every run: a test that fails by chance helps nobody. Look for new ones with
# HYPOTHESIS_PROFILE=search, which draws other examples each time.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True)
def same_questions(monkeypatch):
    """A session without a seed draws one: the same for every test."""
    monkeypatch.setattr("secrets.randbits", lambda bits: 20261118 % 2**bits)


@pytest.fixture(scope="session")
def matcher():
    """Makes somebody who knows the classes and answers match questions; errs now and then if asked to."""

    def make(y, wrong=0.0, seed=0):
        rng = np.random.default_rng(seed)

        def match(left, choices):
            like = [k for k, point in enumerate(choices) if y[point] == y[left]]
            right = like[0] if like else "none"
            if rng.random() >= wrong:
                return right
            return rng.choice(np.array([k for k in (*range(len(choices)), "none") if k != right], dtype=object))

        return match

    return make


@pytest.fixture
def no_importances(monkeypatch):
    """Shuffled columns take most of the time of a small fit; tests/workflow/test_explaining.py is about them."""
    monkeypatch.setattr("sdulearn.workflow.judge.column_importances", lambda *_: ())


@pytest.fixture(scope="session")
def waveform():
    """Standardised rows and pair codes: 60 pairs, 80 unlabeled rows, prior 0.7."""
    X, y = make_waveform(2000, random_state=1)
    rows, codes = sample_sdu(X, y, n_pairs=60, n_unlabeled=80, prior=0.7, random_state=1)
    return StandardScaler().fit_transform(rows), codes


@pytest.fixture(scope="session")
def mixed_columns():
    """21 features, of columns of every kind."""
    return Columns(
        (
            *(Column(f"x{k}", "number", fill=float(k)) for k in range(17)),
            Column("price", "number", fill=2.5, text=Spelling(",", ("-",))),
            Column("member", "boolean"),
            Column("colour", "category", ("blue", "réd"), "blue"),
        ),
        "key",
        np.linspace(-1, 1, 21),
        np.linspace(1, 2, 21),
    )


# Real and made sets that need no download: some classes of each against the others.
EMBEDDED = {
    "breast cancer": lambda: _against_the_rest(load_breast_cancer(return_X_y=True), [1]),
    "digits": lambda: _against_the_rest(load_digits(return_X_y=True), [0, 2, 4, 6, 8]),
    "wine": lambda: _against_the_rest(load_wine(return_X_y=True), [1]),
    "waveform": lambda: make_waveform(2000, random_state=0),
}


def _against_the_rest(data, positive):
    X, y = data
    return X, np.where(np.isin(y, positive), 1, -1)


@pytest.fixture(scope="session")
def shared():
    """120 answers about 59 points, and 200 further rows."""
    rng = np.random.default_rng(0)
    truth = rng.random(260) < 0.7
    X = rng.normal(size=(260, 3)) + 1.5 * truth[:, None]
    ends = np.array([rng.choice(60, 2, replace=False) for _ in range(120)])
    return stack_pairs(X, ends, truth[ends[:, 0]] == truth[ends[:, 1]])


@pytest.fixture(scope="session", params=[*EMBEDDED, *(BENCHMARKS if os.environ.get("SDULEARN_DATA") else ())])
def benchmark_rows(request):
    """As drawn, not standardised, of an embedded set or, where SDULEARN_DATA names them, of one of the ten."""
    X, y = EMBEDDED[request.param]() if request.param in EMBEDDED else load_benchmark(request.param)
    n_pairs, n_unlabeled = (200, 500) if len(y) > 1500 else (60, 80)
    if len(y) < 300:
        n_pairs, n_unlabeled = 30, 30
    rows, codes = sample_sdu(X, y, n_pairs=n_pairs, n_unlabeled=n_unlabeled, prior=0.7, random_state=0)
    return np.asarray(rows), codes


@pytest.fixture(scope="session")
def fit_report():
    """What a fit may have found, each kind of value in it."""
    return FitReport(
        sdulearn="0.1.0", method="joint", settings={"alpha": 0.25}, table="t.csv", answers="p.csv",
        n_rows=1000, n_unlabeled=900, n_similar=40, n_dissimilar=20, n_unsure=3, n_points=110, n_independent=58,
        answer_columns={"id_a": "left", "id_b": "right", "label": "same"},
        answer_words={"1": (1, 40), "0": (-1, 20)},
        accuracy=AccuracyEstimate(0.9, 0.8, 0.95, 0.82, 60, 0.95),
        prior=PriorEstimate(0.7, 0.6, 0.8, True, 40, 20, 0.95),
        annotators=(AnnotatorReport("Ann", 0.1, 0.05, 0.2, True, 60),),
        n_labels=0,
        n_labels_right=0,
        findings=(
            FitWarning(category="UserWarning", message="look \x1b[2J out"),
            OtherPopulation(features=("a",), standard_scores=(5.5,), n_features=3, level=0.01),
        ),
        seconds={"reading": 0.5, "fitting": 1.5},
        class_shares=(0.3, 0.7),
        model_choice=ModelChoice("linear", {"linear": -0.4, "boosted": -0.5}, 0.02),
        doubtful=(DoubtfulAnswer("r1", "r2", True, "Ann", 0.6),),
        error_rate=Rate(0.1, 0.05, 0.2, 60),
    )  # fmt: skip


class AskServer:
    """``sdulearn ask`` as a process; ``kill`` stops it at once."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "sdulearn.cli.main", "ask", *map(str, arguments), "--no-browser", "--seed=1"]
        # A parent that ignores Ctrl-C, such as nohup or a CI in the background, hands that down.
        heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=heed)
        lines = iter(self.process.stdout.readline, "")
        self.address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def start_server():
    """Start servers of ``sdulearn ask``; those that are left are killed in the end."""
    started = []

    def start(*arguments):
        started.append(AskServer(*arguments))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.kill()
