"""Vectors in a file of their own, beside a table."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sdulearn import fit_table, load_model
from sdulearn.cli.main import main
from sdulearn.errors import InputError, MissingFileError
from sdulearn.tables.source import open_table, with_embedding
from sdulearn.workflow import predict_table


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """A folder with 200 rows of one column, vectors of two classes in several files, and answers."""
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.6, 1, -1)
    # The class is in the axis of the largest spread, as in principal components.
    vectors = rng.normal(size=(200, 6)) * [0.5, 0.3, 0.2, 0.1, 0.1, 0.1] + np.outer(y, [4, 0, 0, 0, 0, 0])
    table = pd.DataFrame({"id": [f"r{k}" for k in range(200)], "height": rng.normal(size=200)})
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", row_group_size=60)
    np.save(folder / "v.npy", vectors.astype(np.float32))
    order = rng.permutation(200)
    named = pa.table({"id": table.id[order].to_numpy(), "vector": list(vectors[order].astype(np.float32))})
    pq.write_table(named, folder / "v.parquet")
    pairs = rng.permutation(200)[:120].reshape(-1, 2)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    answers = pd.DataFrame(
        {"id_a": table.id[pairs[:, 0]].array, "id_b": table.id[pairs[:, 1]].array, "label": same * 1}
    )
    answers.to_csv(folder / "a.csv", index=False)
    return folder, y, vectors.astype(np.float32)


def joined(table, columns, rows):
    """All batches of a table as one array."""
    batches = [np.column_stack([np.asarray(b[c], float) for c in columns]) for _, b in table.batches(columns, rows)]
    return np.concatenate(batches)


def test_a_model_learns_from_vectors_and_wants_them_again(embedded, tmp_path, capsys, no_importances):
    folder, y, _ = embedded
    model = fit_table(folder / "t.csv", folder / "a.csv", embedding=folder / "v.npy", drop=["height"], model="linear")
    by_id = fit_table(
        folder / "t.parquet", folder / "a.csv", embedding=folder / "v.parquet", drop=["height"], model="linear"
    )
    np.testing.assert_allclose(by_id.estimator.coef_, model.estimator.coef_, atol=1e-8)
    # One scale for all: the axes keep their weights.
    assert len(np.unique(model.columns.scale)) == 1
    model.save(tmp_path / "m.sdu")
    path = tmp_path / "m.sdu"
    files = [str(path), str(folder / "t.csv"), "-o", str(tmp_path / "out.csv")]
    assert main(["predict", *files, "--embedding", str(folder / "v.parquet")]) == 0
    found = pd.read_csv(tmp_path / "out.csv")["label"]
    assert max(np.mean(found == y), np.mean(found == -y)) > 0.97
    [one] = predict_table(load_model(path), folder / "t.csv", embedding=folder / "v.npy")
    np.testing.assert_allclose(one.probability[:, 1], pd.read_csv(tmp_path / "out.csv")["probability"])
    capsys.readouterr()
    assert main(["predict", *files]) == 2
    assert "Give the vectors of its rows with --embedding." in capsys.readouterr().err


@pytest.mark.parametrize("table", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(
    ("number", "message"),
    [(199, "v.npy has no vector for (line 201|row 200) of"), (201, "has 200 rows and .*v.npy 201 vectors")],
)
def test_every_row_needs_one_vector(embedded, tmp_path, table, number, message):
    folder, _, vectors = embedded
    np.save(tmp_path / "v.npy", np.resize(vectors, (number, 6)))
    with pytest.raises(InputError, match=message):
        joined(with_embedding(open_table(folder / table), tmp_path / "v.npy"), ["embedding 1"], 10**6)


def test_files_that_hold_no_vectors(embedded, tmp_path):
    """Objects, one axis, another format, no file; lists of many lengths, ids twice, lost or in two columns, no list."""
    folder, _, vectors = embedded
    ids = [f"r{k}" for k in range(200)]
    np.save(tmp_path / "objects.npy", np.array([{}] * 200), allow_pickle=True)
    np.save(tmp_path / "flat.npy", np.arange(200.0))
    (tmp_path / "v.csv").write_text("a\n1\n")
    wrong = {
        "lengths": {"vector": [[1.0]] * 100 + [[1.0, 2.0]] * 50 + [[]] * 50},
        "twice": {"id": ["r0", *ids[:-1]]},
        "lost": {"id": ["other", *ids[1:]]},
        "two": {"height": ["x"] * 200},
        "none": {"vector": ["a"] * 200},
    }
    for name, change in wrong.items():
        pq.write_table(pa.table({"id": ids, "vector": list(vectors), **change}), tmp_path / f"{name}.parquet")
    for file in ("objects.npy", "flat.npy", "v.csv", "gone.npy", *(f"{name}.parquet" for name in wrong)):
        with pytest.raises(MissingFileError if file == "gone.npy" else InputError):
            joined(with_embedding(open_table(folder / "t.csv"), tmp_path / file), ["embedding 1"], 10**6)
