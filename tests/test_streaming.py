"""Fit from disk: the walk from a Parquet folder to a model file, and what can go wrong on it."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from sdulearn import SDUClassifier as Local
from sdulearn import load_model
from sdulearn.errors import InputError
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.streaming import SDUClassifier, parquet_blocks

NAMES = [f"x{j}" for j in range(21)]


def write(folder, rows, codes, n_files=3, **more):
    for k, some in enumerate(np.array_split(np.arange(len(codes)), n_files)):
        columns = {name: rows[some, j] for j, name in enumerate(NAMES)}
        columns |= {"code": codes[some]} | {name: values[some] for name, values in more.items()}
        pq.write_table(pa.table(columns), folder / f"part-{k}.parquet", row_group_size=50)
    return folder


@pytest.fixture
def folder(tmp_path, waveform):
    return write(tmp_path, *waveform)


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_from_a_folder_to_a_model_file(waveform, loss, tmp_path):
    rows, codes = waveform
    weight = 1.0 + np.abs(codes) % 2
    write(tmp_path, rows, codes, heavy=weight, count=np.arange(len(codes)))
    names = ["x3", "count", "x1"]
    ends = []
    blocks = parquet_blocks(tmp_path, "code", columns=names, weights="heavy", n_jobs=1, watch=ends.append)
    options = {"loss": loss, "tol": 1e-10, "alpha": 1e-3}
    model = SDUClassifier(**options).fit(blocks)
    assert ends.count(None) == 1 or loss != "squared"
    chosen = np.column_stack([rows[:, 3], np.arange(len(codes)), rows[:, 1]])
    local = Local(**options).fit(chosen, codes, weight)
    np.testing.assert_allclose(model.coef_, local.coef_, rtol=0, atol=1e-8 * np.abs(local.coef_).max())
    assert model.feature_names_in_.tolist() == names
    model.save(tmp_path / "model.sdu")
    back = load_model(tmp_path / "model.sdu")
    assert type(back) is Local
    np.testing.assert_array_equal(back.coef_, model.coef_)
    assert back.get_params() == local.get_params()


def test_predictions_portion_by_portion(folder, waveform):
    rows, codes = waveform
    blocks = parquet_blocks(folder, "code")
    model = SDUClassifier(loss="logistic").fit(blocks)
    local = Local(loss="logistic").fit(rows, codes)
    for method in ("decision_function", "predict", "predict_proba"):
        together = np.concatenate(list(getattr(model, method)(blocks)))
        np.testing.assert_allclose(together, getattr(local, method)(rows), atol=1e-8)
    frame = pd.DataFrame(rows, columns=NAMES)
    np.testing.assert_array_equal(model.predict(frame), local.predict(rows))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[NAMES[::-1]])
    assert not hasattr(SDUClassifier(loss="double_hinge"), "predict_proba")


def test_answers_of_weight_0_are_not_linked(waveform):
    """Two thirds of the answers are about one point, and none of these counts."""
    rows, codes = waveform
    kept = np.abs(codes) % 3 == 0
    first = np.unique(np.abs(codes), return_index=True)[1]
    y = np.column_stack([codes, np.arange(len(codes))])
    y[first[~kept[first]], 1] = 1000
    weight = kept.astype(float)
    with pytest.raises(InputError, match="Point 1000 is in 40 of the 60 answers"):
        Local(prior=0.7).fit(rows, y)
    local = Local(prior=0.7).fit(rows[kept], y[kept])
    model = SDUClassifier(prior=0.7).fit([(rows[k::3], y[k::3], weight[k::3]) for k in range(3)])
    np.testing.assert_allclose(model.coef_, local.coef_, rtol=1e-8)


def test_bad_tables(folder, waveform, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("elsewhere")
    with pytest.raises(TypeError, match=r"generator, which comes only once.*partial_fit"):
        SDUClassifier().fit(portion for portion in [waveform])
    with pytest.raises(ValueError, match=r"has no column 'codes'\. Its columns: x0, x1"):
        parquet_blocks(folder, "codes")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"holds no \.parquet files"):
        parquet_blocks(tmp_path / "empty")
    texts = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0], "town": ["a", "b"], "code": [1, 1]}), texts)
    with pytest.raises(ValueError, match=r"column 'town' holds string, not numbers\. Leave it out of `columns`"):
        parquet_blocks(texts, "code")
    gaps = tmp_path / "gaps.parquet"
    pq.write_table(pa.table({"x": [1.0, None, 2.0, 3.0], "code": [1, 1, 0, 0]}), gaps)
    with pytest.raises(ValueError, match="contains NaN"):
        SDUClassifier(risk="su", prior=0.7).fit(parquet_blocks(gaps, "code"))
    missing = tmp_path / "missing.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0], "code": pa.array([1, None], pa.int64())}), missing)
    with pytest.raises(ValueError, match="code"):
        SDUClassifier().fit(parquet_blocks(missing, "code"))
    unmarked = parquet_blocks(folder, columns=NAMES)
    with pytest.raises(ValueError, match="0 similar and 0 dissimilar"):
        SDUClassifier().fit(unmarked)


FORMS = {
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"f{k}" for k in range(X.shape[1])]),
    "coo": sparse.coo_matrix,
    "csc": sparse.csc_matrix,
    "csr array": sparse.csr_array,
}


@pytest.mark.parametrize("form", FORMS)
def test_portions_in_any_form(waveform, form):
    rows, codes = waveform
    portions = [(FORMS[form](rows[k::3]), codes[k::3].tolist(), [1.0] * len(codes[k::3])) for k in range(3)]

    class Afresh:
        def __iter__(self):
            return iter(portions)

    expected = Local(loss="logistic").fit(rows, codes)
    for given in (portions, Afresh()):
        model = SDUClassifier(loss="logistic").fit(given)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    names = [f"f{k}" for k in range(21)] if form in ("pandas", "polars") else None
    assert getattr(model, "feature_names_in_", np.array(None)).tolist() == names
    assert len(model.predict(portions[0][0])) == len(portions[0][1])


def test_portions_that_are_none_are_named(waveform):
    rows, codes = waveform
    frame = pd.DataFrame(rows, columns=[f"f{k}" for k in range(21)])
    cases = [
        ([rows, codes], r"A portion is `\(X, y\)`.*got ndarray"),
        ([(rows.astype(str), codes)], "must be a table of numbers.*dtype <U"),
        ([(rows, codes + 0.5)], "`y` holds fractions"),
        ([(rows[:5], codes[:4])], r"5 rows of `X`, 4 pair codes\. Give `X`, `y`"),
        ([(rows[:5], codes[:5], np.ones(4))], "5 pair codes and 4 weights"),
        ([(rows[:, 0], codes)], r"must be a table of numbers.*shape \(200,\)"),
        ([(frame, codes), (frame[frame.columns[::-1]], codes)], "same columns in the same order"),
    ]
    for portions, message in cases:
        with pytest.raises(InputError, match=message):
            SDUClassifier().fit(portions)
    for data in (frame, rows, iter([(rows, codes)])):
        with pytest.raises(TypeError, match="fit needs portions"):
            SDUClassifier().fit(data)
