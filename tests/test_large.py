"""Rows that do not fit in memory: the same model from memory, Parquet and Dask, also when a worker dies on the way."""

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import astuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import (
    PairLogisticRegression,
    PairLogisticRegressionCV,
    SDUClassifier,
    SDUClassifierCV,
    fit_table,
    stack_pairs,
)
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.errors import InputError
from sdulearn.large import dask_rows, fit_rows, map_rows, parquet_rows, survey
from sdulearn.workflow import predict_table, write_predictions
from tests.reference import assert_same_coefficients, random_answers

SECONDS = 1800  # as good as for ever: how long a busy machine takes is not what is tested
NAMES = [f"x{j}" for j in range(21)]


@pytest.fixture(autouse=True)
def synchronous():
    """No threads, unless a test asks for a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows():
    """200 pairs and 5,000 unlabeled rows, in no order, and one weight per pair and per row, some of them 0."""
    X, y = make_waveform(20_000, random_state=0)
    X, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=5000, prior=0.7, random_state=0)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(codes))
    X, codes = X[order], codes[order]
    of_pair = rng.integers(1, 4, 201)
    of_pair[::9] = 0
    weight = np.where(codes == 0, rng.integers(0, 3, len(codes)), of_pair[np.abs(codes)]).astype(float)
    return X, codes, weight


def sources(rows, folder, y=None, weight=None):
    """The same rows in memory, in Parquet, in a Dask frame and in a Dask array."""
    X, codes, _ = rows
    y = codes if y is None else y
    columns = dict(zip(["code", "point"], y.T if y.ndim == 2 else [y], strict=False))
    frame = pd.DataFrame(X, columns=NAMES).assign(**columns, **({} if weight is None else {"weight": weight}))
    frame.to_parquet(folder / "rows.parquet", row_group_size=700)
    named = {"codes": "code", "points": "point" if y.ndim == 2 else None}
    named["weights"] = None if weight is None else "weight"
    lazy = dd.from_pandas(frame.sample(frac=1, random_state=0).sort_index(), npartitions=7)
    of_frame = [lazy["code"] if y.ndim == 1 else lazy[["code", "point"]].rename(columns={"code": "answer"})]
    return {
        "memory": parquet_rows(frame, **named),
        "parquet": parquet_rows(folder / "rows.parquet", **named),
        "frame": dask_rows(lazy[NAMES], *of_frame, None if weight is None else lazy["weight"]),
        "array": dask_rows(da.from_array(X, chunks=(900, 8)), y, weight),
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_sample_however_rows_are_stored(rows, tmp_path, weighted):
    _, codes, weight = rows
    stored = sources(rows, tmp_path, weight=weight if weighted else None)
    surveys = {name: survey(source, 800) for name, source in stored.items()}
    expected, statistics, is_complete = surveys["memory"]
    weight = weight if weighted else np.ones(len(codes))
    assert not is_complete
    # All rows in answers, and 800 others that have the weight of all.
    is_known = (codes != 0) & (weight > 0)
    assert set(np.flatnonzero(is_known)) <= set(expected.rows)
    assert len(expected.rows) == is_known.sum() + 800
    assert expected.weight.sum() == pytest.approx(weight.sum())
    for batch, other, _ in surveys.values():
        for ours, theirs in zip(batch, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_allclose(other.mean_and_covariance(2)[0], statistics.mean_and_covariance(2)[0])
    others = survey(sources(rows, tmp_path)["memory"], 800, seed=1)[0].rows
    assert 0 < len(np.intersect1d(others, expected.rows)) < 800
    assert survey(sources(rows, tmp_path)["memory"])[2]


def test_a_sample_of_few_rows_among_many_that_are_known_is_as_large(rows, tmp_path):
    """How many rows may be drawn is known after the first pass."""
    _, codes, _ = rows
    weight = np.where(codes != 0, 1.0, np.arange(len(codes)) % 10 == 0)
    surveys = [survey(source, 300)[0] for source in sources(rows, tmp_path, weight=weight).values()]
    for batch in surveys:
        assert len(batch.rows) == 400 + 300
        np.testing.assert_array_equal(batch.rows, surveys[0].rows)


@pytest.mark.parametrize("weighted", [False, True])
def test_squared_loss_is_exact(rows, tmp_path, weighted):
    X, codes, weight = rows
    given = weight if weighted else None
    for source in sources(rows, tmp_path, weight=given).values():
        for estimator in (SDUClassifier("sdsu", alpha=0.01), SDUClassifierCV(alphas=[0.1], gammas=[0.4])):
            local = clone(estimator).fit(X, codes, given)
            model = fit_rows(estimator, source, n_unlabeled=50)
            assert_same_coefficients(model, local, 1e-10)
            assert astuple(model.prior_) == pytest.approx(astuple(local.prior_), rel=1e-12)
            assert model.feature_names_in_.tolist() == source.columns


def test_answers_that_share_points_have_the_prior_of_their_graph(tmp_path):
    X, y = make_waveform(3000, random_state=1)
    ends, same = random_answers(y[:300], 200)
    rows, known = stack_pairs(X, ends, same)
    local = SDUClassifier().fit(rows, known)
    for source in sources((rows, known, None), tmp_path, known).values():
        model = fit_rows(SDUClassifier(), source)
        assert_same_coefficients(model, local, 1e-10)
        assert model.prior_ == local.prior_
        joint = fit_rows(PairLogisticRegression(prior_strength=0, error_rate=0.05), source, n_unlabeled=300)
        whole = PairLogisticRegression(prior_strength=0, error_rate=0.05).fit(rows, known)
        assert_same_coefficients(joint, whole, 1e-6)


def test_the_joint_likelihood_is_exact_where_nothing_pulls(rows, tmp_path):
    X, codes, _ = rows
    for estimator in (PairLogisticRegression(prior_strength=0), PairLogisticRegressionCV(prior_strength=0)):
        local = clone(estimator).fit(X, codes)
        for source in sources(rows, tmp_path).values():
            assert_same_coefficients(fit_rows(estimator, source, n_unlabeled=200), local, 1e-6)
    # Rows in answers alone know the axes less well.
    few = PairLogisticRegression(prior_strength=0).fit(X[codes != 0], codes[codes != 0])
    assert np.abs(few.coef_ - PairLogisticRegression(prior_strength=0).fit(X, codes).coef_).max() > 0.01


@pytest.mark.parametrize("loss", ["logistic", "double_hinge"])
def test_the_exact_mean_makes_a_sample_nearly_as_good_as_all_rows(tmp_path, loss):
    """Shares of the deviation of the scores, as in docs/evidence/speed.md, where there are more rows."""
    X, y = make_waveform(60_000, random_state=0)
    errors = []
    for seed in range(3):
        drawn = sample_sdu(X, y, n_pairs=2000, n_unlabeled=20_000, prior=0.7, random_state=seed)
        source = parquet_rows(pd.DataFrame(drawn[0], columns=NAMES).assign(code=drawn[1]), codes="code")
        whole = SDUClassifier(loss=loss, alpha=1e-3).fit(*drawn)
        kept = survey(source, 4000)[0]
        sample = SDUClassifier(loss=loss, alpha=1e-3).fit(kept.X, kept.y, kept.weight)
        exact = fit_rows(SDUClassifier(loss=loss, alpha=1e-3), source, n_unlabeled=4000)
        assert exact.optimality_ < 1e-8
        z = [X[:4000] @ model.coef_[0] + model.intercept_[0] for model in (whole, sample, exact)]
        errors.append([np.std(other - z[0]) / np.std(z[0]) for other in z[1:]])
        right = [np.mean(np.sign(scores) == y[:4000]) for scores in z]
        assert right[2] > right[0] - 0.01
    by_sample, with_mean = np.mean(errors, axis=0)
    assert with_mean < 0.1
    assert with_mean < by_sample / 2


def test_a_sample_with_all_rows_is_the_fit_in_memory(rows, tmp_path):
    """Also of a Pipeline, which has no moments; rows with a label are kept, not drawn."""
    X, codes, weight = rows
    known = np.column_stack([codes, np.arange(len(codes)), 0 * codes, np.where(codes == 1, 1, 0)])
    y = pd.DataFrame(known[:, [0, 3]], columns=["answer", "label"])
    lazy = da.from_array(X, chunks=(1500, -1))
    for estimator in (PairLogisticRegressionCV(3), SDUClassifier(loss="logistic")):
        local = clone(estimator).fit(X, known, weight)
        model = fit_rows(clone(estimator), dask_rows(lazy, y, weight))
        np.testing.assert_array_equal(map_rows(model, lazy).compute(), local.predict(X))
    pipeline = make_pipeline(StandardScaler(), PairLogisticRegression())
    local = clone(pipeline).fit(X, known)
    np.testing.assert_array_equal(map_rows(fit_rows(pipeline, dask_rows(lazy, y)), lazy).compute(), local.predict(X))
    assert not np.array_equal(fit_rows(pipeline, dask_rows(lazy, y), n_unlabeled=9)[0].mean_, local[0].mean_)
    drawn = survey(dask_rows(lazy, y), 100)[0]
    assert np.sum(drawn.y[:, 3] != 0) == 2
    assert len(drawn.rows) == 400 + 100


def test_predictions_of_arrays_frames_and_files(rows, tmp_path):
    X, codes, _ = rows
    source = sources(rows, tmp_path)["parquet"]
    model = fit_rows(PairLogisticRegression(), source)
    frame = pd.DataFrame(X, columns=NAMES).assign(note="text")
    frame.index = frame.index + 7
    lazy = dd.concat([dd.from_pandas(frame[:0], 1), dd.from_pandas(frame, 3)])
    chunks = da.from_array(X, chunks=(2000, 10))
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(model, method)(frame[NAMES])
        np.testing.assert_allclose(np.concatenate(list(map_rows(model, source, method))), expected)
        np.testing.assert_allclose(map_rows(model, chunks, method).compute(), expected)
        predicted = map_rows(model, lazy, method)
        np.testing.assert_allclose(predicted.compute(), expected)
        assert predicted.compute().index.equals(frame.index)
        assert str(predicted.compute().dtypes) == str(predicted.dtypes)
    assert map_rows(model, lazy, "predict_proba").columns.tolist() == [-1, 1]
    with pytest.raises(InputError, match=r"lacks the column 'x3' that the model needs\. Add it"):
        map_rows(model, lazy.drop(columns="x3"))
    three = PairLogisticRegression(n_classes=3, error_rate=0.1).fit(X, codes)
    assert map_rows(three, chunks, "decision_function").shape == (len(X), 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(index=f.index[f["code"] == 5][0]), "5 appears on only one row.*half a pair"),
        (lambda f: f.assign(code=f["code"].mask(f.index == f.index[f["code"] == 5][0], -5)), r"as \+ .*as - "),
        (lambda f: f.assign(code=f["code"] + 0.5), "pair codes are integers"),
        (lambda f: f.assign(code=f["code"].astype(float).mask(f["code"] == 5)), "contains NaN.*pair code 0"),
        (lambda f: f.assign(x3=np.where(f.index == 4000, np.nan, f["x3"])), "X contains NaN"),
        (lambda f: f.assign(x3="text"), "column 'x3' does not contain numbers.*fit_table"),
        (lambda f: f.drop(columns="code"), "no column 'code' to read. Its columns: x0"),
        (lambda f: f[:0], "has no rows"),
        (lambda f: f[f["code"] == 0], "`y` is empty|has no answers"),
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_bad_rows_say_what_to_do(rows, loss, change, message):
    X, codes, _ = rows
    frame = change(pd.DataFrame(X, columns=NAMES).assign(code=codes))
    lazy = dd.from_pandas(frame.reset_index(drop=True), npartitions=4)
    for table in (frame, lazy):
        with pytest.raises(InputError, match=f"(?s){message}"):
            fit_rows(SDUClassifier(loss=loss), parquet_rows(table, codes="code"), n_unlabeled=500)


def test_what_is_no_dask_collection(rows):
    X, codes, _ = rows
    lazy = da.from_array(X, chunks=(1500, -1))
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES), 2)
    answers = pd.DataFrame({"id_a": [0], "id_b": [1], "label": [True]})
    named = dd.from_pandas(pd.DataFrame({"answer": codes, "point": np.arange(len(codes))}), 4)
    assert fit_rows(SDUClassifier(), dask_rows(lazy, named)).prior_ == SDUClassifier().fit(X, codes).prior_
    renamed = named.rename(columns={"answer": "code"})
    for refused, message in (
        (lambda: dask_rows(X, codes), "ndarray"),
        (lambda: dask_rows(lazy, codes[codes != 1]), "'answer' has 5,398"),
        (lambda: dask_rows(lazy, codes, da.ones(10)), "'weight' has 10"),
        (lambda: fit_rows(SDUClassifier(), dask_rows(lazy, renamed)), "'code'"),
        (lambda: fit_rows(SDUClassifier(loss="logistic"), dask_rows(lazy, codes), n_unlabeled=0), "`n_unlabeled`"),
        (lambda: fit_rows(SDUClassifier(), dask_rows(da.ones((4, 4001)), [1, 1, 0, 0])), "4,000"),
        (lambda: fit_table(lazy, answers), "dask DataFrame"),
        (lambda: fit_table(frame, frame), r"compute\(\)"),
        (lambda: fit_table(frame, answers, embedding="v.npy"), "vectors"),
    ):
        with pytest.raises(InputError, match=message):
            refused()


@pytest.fixture
def client(tmp_path, synchronous):
    """Three worker processes on loopback: two may die, and nobody has to wait until they are back."""
    settings = {"temporary-directory": str(tmp_path), "distributed.deploy.lost-worker-timeout": "10 minutes"}
    options = {"n_workers": 3, "threads_per_worker": 1, "processes": True, "protocol": "tcp://"}
    web = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(scheduler=None, **settings),
        LocalCluster(**options, **web) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(3, timeout=SECONDS)
        yield client


def slow_part(frame, here, folder):
    """Nothing may be read in this process; who reads it leaves a note."""
    assert os.getpid() != here
    time.sleep(0.1)
    (folder / f"{frame.index[0]}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return frame


@contextmanager
def one_worker_dies(folder):
    """A worker is killed once it has read a part or two; the work must not be over by then."""
    before, over, killed = len(list(folder.iterdir())), threading.Event(), []

    def kill():
        while not over.is_set():
            if len(notes := [note.name.split("-") for note in folder.iterdir()]) >= before + 3:
                killed.append(max(notes, key=lambda note: int(note[2]))[1])
                os.kill(int(killed[0]), signal.SIGKILL)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert killed


def test_a_worker_that_dies_changes_nothing(client, rows, tmp_path):
    X, codes, _ = rows
    frame = pd.DataFrame(X, columns=NAMES).assign(code=codes, id=[f"r{k}" for k in range(len(codes))])
    (notes := tmp_path / "notes").mkdir()
    plain = dd.from_pandas(frame, npartitions=14)
    lazy = plain.map_partitions(slow_part, os.getpid(), notes, meta=frame[:0])
    ends = np.argsort(np.abs(codes), kind="stable")[-400:].reshape(-1, 2)
    answers = pd.DataFrame({"id_a": frame["id"][ends[:, 0]].array, "id_b": frame["id"][ends[:, 1]].array})
    answers["label"] = codes[ends[:, 0]] > 0
    with one_worker_dies(notes):
        model = fit_rows(SDUClassifier(), dask_rows(lazy[NAMES], lazy["code"]))
    assert_same_coefficients(model, SDUClassifier().fit(X, codes), 1e-10)
    np.testing.assert_array_equal(map_rows(model, lazy).compute(), model.predict(frame[NAMES]))
    options = {"drop": ["code"], "model": "linear", "max_unlabeled": 1000}
    table_model = fit_table(lazy, answers, **options)
    local = fit_table(frame, answers, **options)
    assert_same_coefficients(table_model.estimator, local.estimator)
    with one_worker_dies(notes):
        predictions = list(predict_table(table_model, lazy))
    assert [name for batch in predictions for name in batch.ids.to_pylist()] == frame["id"].tolist()
    np.testing.assert_allclose(np.concatenate([batch.probability for batch in predictions]), local.predict_proba(frame))
    counts = write_predictions(table_model, lazy, tmp_path / "out")
    assert counts["by_class"].sum() == len(frame)
    written = pd.read_parquet(tmp_path / "out")
    assert written["id"].tolist() == frame["id"].tolist()
    assert len(list((tmp_path / "out").iterdir())) == 14
    # Several workers have read.
    assert len({note.name.split("-")[1] for note in notes.iterdir()}) > 2
