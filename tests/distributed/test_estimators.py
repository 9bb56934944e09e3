"""The estimators on dask collections equal the local ones; predictions are lazy; files are the same."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from scipy import sparse
from sklearn.base import clone

import sdulearn
from sdulearn import distributed, load_model
from sdulearn.distributed import DaskBlocks, gather_pairs
from tests.reference import assert_same_coefficients

LOSSES = {"squared": 1e-8, "double_hinge": 1e-11, "logistic": 1e-11}
NAMES = [f"x{k}" for k in range(21)]
METHODS = {"decision_function": np.float64, "predict": np.int64, "predict_proba": np.float64}
MODELS = [
    distributed.SDUClassifier(loss="logistic"),
    distributed.SDUClassifierCV(loss="logistic", alphas=[0.1], gammas=[0.0, 0.5], cv=3),
    distributed.PairLogisticRegression(),
]


def assert_same_model(model, local, tolerance=1e-8):
    assert_same_coefficients(model, local, tolerance)
    assert model.prior_.value == pytest.approx(local.prior_.value, rel=1e-12)
    assert model.n_features_in_ == local.n_features_in_
    np.testing.assert_array_equal(model.classes_, local.classes_)


def csr_chunks(rows, chunks):
    return da.from_array(rows, chunks=chunks).map_blocks(sparse.csr_matrix)


def as_frame(rows, codes, npartitions=5):
    return dd.from_pandas(pd.DataFrame(rows, columns=NAMES).assign(codes=codes), npartitions=npartitions)


@pytest.fixture(autouse=True)
def few_drawn(monkeypatch):
    """A sample of so few rows would be all of them, and no pass over blocks were needed."""
    monkeypatch.setattr("sdulearn.blocks.problem.affordable_rows", lambda n_columns: 60)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["sparse", "weights"])
def test_classifier_equals_the_local_one(thinned, weights, kind, loss):
    rows, codes = thinned
    options = {"loss": loss, "tol": LOSSES[loss], "alpha": 0.05, "gamma": 0.3, "fit_intercept": kind != "weights"}
    X = csr_chunks(rows, (37, 10)) if kind == "sparse" else da.from_array(rows, chunks=(37, 10))
    # In another unit, and with the rows of weight 0.
    given = da.from_array(7.3 * weights, chunks=11) if kind == "weights" else None
    model = distributed.SDUClassifier(**options).fit(X, da.from_array(codes, chunks=50), given)
    kept = weights > (0 if kind == "weights" else -1)
    plain = sparse.csr_matrix(rows) if kind == "sparse" else rows
    local = sdulearn.SDUClassifier(**options)
    local.fit(plain[kept], codes[kept], weights[kept] if kind == "weights" else None)
    assert model.optimality_ <= options["tol"]
    assert_same_model(model, local)
    assert model.objective_ == pytest.approx(local.objective_, rel=1e-8)


@pytest.mark.parametrize("kind", ["sparse", "frame"])
def test_joint_equals_the_local_one(thinned, weights, kind, tmp_path):
    rows, codes = thinned
    if kind == "frame":
        frame = as_frame(rows, codes).assign(weight=dd.from_pandas(pd.Series(weights), npartitions=5))
        X, y, weight = frame[NAMES], frame["codes"], frame["weight"]
    else:
        X, y, weight = csr_chunks(rows, (37, 21)), codes, weights
    options = {"tol": 1e-10, "alpha": 0.02}
    # In another unit, and with the rows of weight 0.
    model = distributed.PairLogisticRegression(**options).fit(*gather_pairs(X, y, 7.3 * weight))
    kept = weights > 0
    rows = sparse.csr_matrix(rows) if kind == "sparse" else rows
    assert_same_model(model, sdulearn.PairLogisticRegression(**options).fit(rows[kept], codes[kept], weights[kept]))
    # Its file is that of the local estimator, and is read without Dask.
    model.save(tmp_path / "model.sdu")
    back = load_model(tmp_path / "model.sdu")
    assert type(back) is sdulearn.PairLogisticRegression
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.coef_, model.coef_)


def test_frames_bring_their_names_and_plain_input_is_fitted_here(waveform):
    rows, codes = waveform
    frame = as_frame(rows, codes)
    local = sdulearn.SDUClassifier().fit(rows, codes)
    model = distributed.SDUClassifier().fit(frame[NAMES], frame["codes"])
    assert_same_model(model, local)
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[NAMES[::-1]])
    model.fit(da.from_array(rows, chunks=50), codes)
    assert not hasattr(model, "feature_names_in_")
    for y in (codes, da.from_array(codes, chunks=7)):
        np.testing.assert_array_equal(distributed.SDUClassifier().fit(rows, y).coef_, local.coef_)


@pytest.fixture(scope="module")
def fitted(waveform):
    """The three estimators, fitted on plain arrays, with a loss that gives probabilities."""
    return [clone(model).fit(*waveform) for model in MODELS]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "unknown"])
def test_lazy_predictions_on_arrays(waveform, fitted, kind, method):
    rows, _ = waveform
    lengths = (50, 0, 100, 50)
    X = csr_chunks(rows, (lengths, 10)) if kind == "sparse" else da.from_array(rows, chunks=(lengths, 10))
    if kind == "unknown":
        X = X[da.from_array(np.ones(200, dtype=bool), chunks=(lengths,))]
    for model in fitted:
        expected, found = getattr(model, method)(rows), getattr(model, method)(X)
        assert found.dtype == found._meta.dtype == expected.dtype == METHODS[method]
        assert found.ndim == found._meta.ndim == expected.ndim
        assert kind == "unknown" or (found.chunks[0], found.shape) == (lengths, expected.shape)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_lazy_predictions_on_frames(waveform, method):
    table = pd.DataFrame(waveform[0], columns=NAMES)
    model = clone(MODELS[0]).fit(table, waveform[1])
    frame = as_frame(*waveform)[NAMES]
    # Some partitions are empty.
    X = frame[frame["x0"] > 2]
    expected = X.compute()
    found = getattr(model, method)(X)
    assert isinstance(found, dd.DataFrame if method == "predict_proba" else dd.Series)
    computed = found.compute()
    pd.testing.assert_index_equal(computed.index, expected.index)
    if method == "predict_proba":
        assert computed.columns.tolist() == found.columns.tolist() == [-1, 1]
    assert (found.dtypes == METHODS[method]).all() if method == "predict_proba" else found.dtype == METHODS[method]
    np.testing.assert_allclose(computed.to_numpy(), getattr(model, method)(expected), rtol=1e-12)


@pytest.mark.parametrize("kind", ["all", "similar"])
def test_score_and_orient(waveform, weights, fitted, kind):
    rows, codes = waveform
    keep = codes >= (codes.min() if kind == "all" else 0)
    rows, codes, weights = rows[keep], codes[keep], weights[keep]
    X, y = da.from_array(rows, chunks=(50, 10)), da.from_array(codes, chunks=30)
    for model in fitted:
        assert model.score(X, y) == pytest.approx(model.score(rows, codes), rel=1e-12)
        assert model.score(X, y, weights) == pytest.approx(model.score(rows, codes, weights), rel=1e-12)
    # With one kind of answer a given prior makes an accuracy of it, whatever the classes are called.
    given = distributed.SDUClassifier(prior=0.7).fit(*waveform)
    before = given.score(X, y)
    assert before == pytest.approx(given.score(rows, codes), rel=1e-12)
    assert before != 0.5
    plain, lazy = given.predict(rows), given.predict(X)
    assert given.orient(X, -given.predict(X)).score(X, y) == pytest.approx(before)
    # A lazy prediction is of the model as it was.
    np.testing.assert_array_equal(lazy.compute(), plain)


@pytest.mark.parametrize(("loss", "persists"), [("squared", 0), ("logistic", 1)])
def test_only_iterative_losses_keep_the_blocks_and_every_chunk_is_read_once(waveform, monkeypatch, loss, persists):
    rows, codes = waveform
    read, kept, passes = [], [], []
    persist, plain_sum = DaskBlocks.persist, DaskBlocks.sum
    monkeypatch.setattr(DaskBlocks, "persist", lambda blocks: kept.append(persist(blocks)) or kept[-1])
    monkeypatch.setattr(
        DaskBlocks, "sum", lambda blocks, task, *more: passes.append(task) or plain_sum(blocks, task, *more)
    )

    def chunk(number):
        read.append(number)
        return rows[number * 50 : number * 50 + 50]

    parts = [da.from_delayed(delayed(chunk)(number), (50, 21), dtype=float) for number in range(4)]
    distributed.SDUClassifier(loss=loss).fit(da.concatenate(parts), codes)
    assert sorted(read) == [0, 1, 2, 3]
    assert len(kept) == persists
    assert 1 + persists <= len(passes) <= 1 + 14 * persists
    # Blocks that are given as such are read again in every pass, unless their owner keeps them.
    portions = [lambda k=k: [(rows[k::4], codes[k::4], None)] for k in range(4)]
    distributed.SDUClassifier(loss=loss).fit(DaskBlocks.from_parts(portions))
    assert len(kept) == persists


def test_bad_input_is_named(waveform, untouchable):
    rows, codes = waveform
    X = da.from_array(rows, chunks=50)
    model = distributed.SDUClassifier()
    with pytest.raises(ValueError, match="'alpha' parameter of SDUClassifier must be"):
        distributed.SDUClassifier(alpha=-1).fit(X, codes)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(da.where(X > 2, np.nan, X), codes)
    model.fit(X, codes)
    unlabeled = codes == 0
    for given, y, message in [
        (X[:0], codes[:0], "There are no rows"),
        (da.where(X > 2, np.nan, X), codes, "Input X contains NaN"),
        (X[1:], codes[1:], "half a pair"),
        (X[unlabeled], codes[unlabeled], "`y` holds no answers"),
        (X[:, 0], codes, "`X` must have rows and columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.score(given, y)
    assert not hasattr(distributed.SDUClassifier(loss="double_hinge"), "predict_proba")
    # The width is checked at once, and nothing is computed for it.
    with pytest.raises(ValueError, match="X has 20 features, but SDUClassifier is expecting 21"):
        model.predict(untouchable((200, 20), (50, 10)))
    with pytest.raises(AssertionError, match="was computed"):
        model.predict(untouchable((200, 21), (50, 10))).compute()


@pytest.mark.parametrize("kind", ["columns apart", "frame"])
def test_a_table_of_answers_and_points(shared, kind):
    rows, y = shared
    X = da.from_array(rows, chunks=(100, -1))
    known = da.from_array(y, chunks=(70, 1))
    if kind == "frame":
        rows = pd.DataFrame(rows, columns=["a", "b", "c"])
        X = dd.from_pandas(rows, npartitions=3, sort=False)
        known = dd.from_pandas(pd.DataFrame(y, columns=["answer", "point"]), npartitions=3, sort=False)
    found = distributed.SDUClassifier(prior=0.7).fit(X, known)
    local = sdulearn.SDUClassifier(prior=0.7).fit(rows, y)
    np.testing.assert_allclose(found.coef_, local.coef_)
    assert found.score(X, known) == pytest.approx(local.score(rows, y))
    with pytest.raises(ValueError, match=r"the joint likelihood needs all of these together"):
        distributed.PairLogisticRegression().fit(X, known)


@pytest.fixture(scope="module")
def labelled():
    """100 loose pairs of one annotator, and 40 labels that call the smaller class +1."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(300) < 0.3, 1, -1)
    X = rng.normal(size=(300, 3)) + truth[:, None]
    ends = np.arange(200).reshape(-1, 2)
    labels = np.where(np.arange(300) % 8 == 0, truth, 0)
    return sdulearn.stack_pairs(X, ends, truth[ends[:, 0]] == truth[ends[:, 1]], labels=labels)


def as_dask(y, kind):
    if kind == "array":
        return da.from_array(y, chunks=(100, -1))
    frame = pd.DataFrame(y, columns=["answer", "point", "annotator", "label"]).drop(columns="point")
    return frame if kind == "plain frame" else dd.from_pandas(frame, npartitions=3, sort=False)


def test_labels_and_annotators_are_refused_by_the_joint_fit_and_not_dropped(labelled):
    rows, y = labelled
    X = da.from_array(rows, chunks=(100, -1))
    for kind in ("array", "plain frame"):
        with pytest.raises(ValueError, match=r"`y` has labels on 38 rows.*in memory"):
            distributed.PairLogisticRegression().fit(X, as_dask(y, kind))
    unnamed = np.where([True, True, True, False], y, 0)
    found = distributed.PairLogisticRegression().fit(X, as_dask(unnamed, "array"))
    plain = distributed.PairLogisticRegression().fit(X, da.from_array(y[:, 0], chunks=100))
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    unnamed[:, 2] = np.abs(y[:, 0]) % 2 + 1
    with pytest.raises(ValueError, match=r"`y` names 2 annotators.*`error_rate=0`"):
        distributed.PairLogisticRegression().fit(X, as_dask(unnamed, "array"))
    certain = distributed.PairLogisticRegression(error_rate=0).fit(X, as_dask(unnamed, "array"))
    np.testing.assert_array_equal(certain.coef_, plain.coef_)


@pytest.mark.parametrize("kind", ["plain frame", "frame"])
def test_the_score_counts_labels(labelled, kind):
    rows, y = labelled
    table = pd.DataFrame(rows, columns=["a", "b", "c"]) if kind == "frame" else rows
    X = dd.from_pandas(table, npartitions=3, sort=False) if kind == "frame" else da.from_array(rows, chunks=(100, -1))
    model = distributed.SDUClassifier(prior=0.3).fit(table, y[:, 0])
    expected = model.score(table, y)
    assert expected != model.score(table, y[:, 0])
    assert model.score(X, as_dask(y, kind)) == pytest.approx(expected, rel=1e-12)


def test_more_than_two_classes_are_predicted_lazily():
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.normal(size=(120, 3)) + 4 * np.eye(3)[truth]
    pairs = rng.permutation(120).reshape(-1, 2)
    rows, y = sdulearn.stack_pairs(X, pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]])
    model = distributed.PairLogisticRegression(n_classes=3).fit(rows, y)
    lazy = da.from_array(rows, chunks=(40, -1))
    for method in METHODS:
        found = getattr(model, method)(lazy)
        assert found.shape == found.compute().shape
        np.testing.assert_allclose(found.compute(), getattr(model, method)(rows))
    with pytest.raises(ValueError, match="two classes only"):
        model.score(lazy, y)
