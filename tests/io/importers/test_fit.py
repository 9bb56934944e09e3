"""The files of other tools, from the file to a model."""

import json

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 2)).round(4) + 3 * truth[:, None]
    return pd.DataFrame(X, columns=["u", "v"]).assign(key=[f"k{i}" for i in range(200)]), truth


def asked(truth, n=60):
    ends = np.random.default_rng(1).permutation(len(truth))[: 2 * n].reshape(-1, 2)
    return ends, truth[ends[:, 0]] == truth[ends[:, 1]]


def test_whole_records_teach_what_their_ids_would(tmp_path, points):
    table, truth = points
    ends, same = asked(truth)
    records = table[["u", "v"]].to_dict("records")
    lists = {"match": [], "distinct": []}
    for (a, b), alike in zip(ends.tolist(), same, strict=True):
        lists["match" if alike else "distinct"].append([records[a], records[b]])
    (tmp_path / "training.json").write_text(json.dumps(lists))
    frame = pd.DataFrame({"id_a": table.key[ends[:, 0]], "id_b": table.key[ends[:, 1]].array, "label": same})
    frame = frame.sort_values("label", ascending=False, kind="stable")
    by_record = fit_table(table, tmp_path / "training.json", id_column="key")
    by_id = fit_table(table, frame, id_column="key")
    assert np.array_equal(by_record.predict_proba(table), by_id.predict_proba(table))
    assert "entities" in [finding.code for finding in by_record.report.findings]
    assert "entities" not in [finding.code for finding in by_id.report.findings]


def test_a_record_that_is_not_in_the_table_stops_a_fit(tmp_path, points):
    table, _ = points
    records = table[["u", "v"]].to_dict("records")
    lists = {"match": [records[:2], [records[2], {"u": 99, "v": 99}]], "distinct": []}
    (tmp_path / "training.json").write_text(json.dumps(lists))
    with pytest.raises(ValueError, match=r"1 unreadable rows \(lines 2\)"):
        fit_table(table, tmp_path / "training.json", id_column="key")
