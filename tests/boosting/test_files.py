"""Files of tree models: what is read back is what was fitted, and a forged file is refused before LightGBM sees it."""

import sys
import tracemalloc

import numpy as np
import pytest

from sdulearn import PairBoostingClassifier, PairModelCV, load_model
from sdulearn.boosting.model_text import checked_trees
from sdulearn.errors import InputError, MissingExtraError, ModelFileError
from sdulearn.io import container

lightgbm = pytest.importorskip("lightgbm")


def coded(y):
    """Codes of 200 pairs of neighbours, and of 100 unlabeled rows."""
    same = y[:400:2] * y[1:400:2]
    return np.append(np.repeat(np.arange(1, 201) * same, 2), np.zeros(100, dtype=int))


@pytest.fixture(scope="module")
def rows():
    """Three columns of numbers with gaps, and one of categories, so many that the start does not see them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    hint = curve(X) * np.where(rng.random(500) < 0.8, 1, -1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return np.column_stack([X, 2 * rng.integers(0, 30, 500) + (hint > 0)])


def curve(X):
    return np.where(X[:, 0] + np.nan_to_num(X[:, 1]) ** 2 > 0.4, 1, -1)


@pytest.fixture(scope="module")
def boosted(rows):
    model = PairBoostingClassifier(prior=0.6, max_iter=40, categorical_features=[3]).fit(rows, coded(curve(rows)))
    assert "num_cat=1" in "".join(model.trees_)
    return model.orient(rows, -curve(rows))


@pytest.fixture(scope="module")
def linear(rows):
    return PairModelCV(["linear"], prior=0.6).fit(rows, coded(curve(rows)))


@pytest.fixture(scope="module")
def kernel(rows):
    """One class inside the other: a line says nothing."""
    inside = np.where(np.nansum(rows[:, :3] ** 2, axis=1) < 2, 1, -1)
    model = PairBoostingClassifier(prior=0.49, max_iter=5, cv=3).fit(rows, coded(inside))
    assert model.start_.has_kernel
    return model


def refuse_forged(model, folder, match=None, **changes):
    """A file with other arrays, or other entries of its header, is not loaded."""
    header, arrays = container.describe_estimator(model)
    for name, value in changes.items():
        target = arrays if isinstance(value, np.ndarray) else header["fitted"]
        assert name in target or name == "coef_" or "names" in name
        target[name] = value
    container.write(folder / "forged.sdu", header, arrays)
    with pytest.raises(ModelFileError, match=match):
        load_model(folder / "forged.sdu")


@pytest.mark.parametrize("name", ["boosted", "kernel", "linear"])
def test_a_loaded_model_is_the_fitted_one(name, request, rows, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model.sdu")
    again = load_model(tmp_path / "model.sdu")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    assert again.get_params() == model.get_params()
    assert again.prior_ == model.prior_
    assert getattr(again, "model_", "") == getattr(model, "model_", "")
    again.save(tmp_path / "again.sdu")
    assert (tmp_path / "again.sdu").read_bytes() == (tmp_path / "model.sdu").read_bytes()


def test_a_file_of_trees_names_the_extra(boosted, tmp_path, monkeypatch):
    boosted.save(tmp_path / "model.sdu")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sdulearn\[boosting\]'"):
        load_model(tmp_path / "model.sdu")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("leaf_count=", "leaf_count=x "),
        ("max_feature_idx=3", "max_feature_idx=20"),
        ("is_linear=0", "is_linear=1"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3"),
    ],
)
def test_forged_trees_are_refused_before_lightgbm_sees_them(boosted, tmp_path, monkeypatch, old, new):
    monkeypatch.setattr(lightgbm, "Booster", lambda **_: pytest.fail("an untrusted text reached native code"))
    first, *others = boosted.trees_
    assert old in first
    refuse_forged(boosted, tmp_path, trees_=[first.replace(old, new, 1), *others])


TREE = {
    "num_leaves": "3", "num_cat": "1", "split_feature": "0 1", "split_gain": "1 1", "threshold": "0 0.5",
    "decision_type": "1 2", "left_child": "1 -1", "right_child": "-3 -2", "leaf_value": "1 2 3", "leaf_weight": "1 1 1",
    "leaf_count": "1 1 1", "internal_value": "0 0", "internal_weight": "1 1", "internal_count": "2 2",
    "cat_boundaries": "0 1", "cat_threshold": "5",
}  # fmt: skip


def tree_text(**change):
    fields = "\n".join(f"{name}={value}" for name, value in (TREE | change).items())
    return f"num_tree_per_iteration=1\nmax_feature_idx=1\n\nTree=0\n{fields}\nend of trees\n"


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("split_feature", "1 0", ("0 2", "0 -1")),  # of two columns
        ("left_child", "1 -1", ("1 2", "1 -4", "-1 -1", "1 -2", "0 -1")),  # of two nodes and three leaves
        ("decision_type", "0 10", ("1 12", "1 -1")),
        ("threshold", "0 -inf", ("1 0.5", "-1 0.5", "0.5 0.5", "0 nan")),  # the first is the number of a set
        ("cat_boundaries", "0 1", ("1 2", "0 0", "0 2", "0 16777217")),
        ("cat_threshold", "4294967295", ("4294967296", "5 5")),
        ("cat_threshold", "0", ("-1",)),
        ("leaf_value", "1 -2 .5e3", ("1 2", "1 2 inf", "1 2 nan", "1 2 3 4")),
        ("num_cat", "1", ("-1", "2", "4")),
        ("num_leaves", "3", ("2", "0", "65537", "99999999999")),
    ],
)
def test_every_index_of_a_tree_has_its_limits(name, allowed, refused):
    """What is just inside is read, and what is just outside is not."""
    assert f"\n{name}={allowed}\n" in checked_trees(tree_text(**{name: allowed}), 2)
    for value in refused:
        with pytest.raises(InputError):
            checked_trees(tree_text(**{name: value}), 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_rounds_", -1),
        ("n_features_in_", 0),
        ("n_features_in_", 5),
        ("n_features_in_", 2**31),
        ("n_classes_", 2**16),
        ("feature_names_in_", ["a"]),
        ("trees_", ["tree"]),
        ("trees_", [1]),
        ("coef_", 1),
    ],
)
def test_forged_headers_are_refused(boosted, tmp_path, name, value):
    refuse_forged(boosted, tmp_path, **{name: value})


@pytest.mark.parametrize(
    "name", [f"start_parts_/{name}" for name in ("coef", "mean", "n_values")] + ["feature_importances_", "order_"]
)
@pytest.mark.parametrize("value", [np.array([np.nan, 1.0, 1.0, 1.0]), np.ones(7), np.array([1, 1])])
def test_forged_arrays_are_refused(boosted, tmp_path, name, value):
    refuse_forged(boosted, tmp_path, **{name: value})


@pytest.mark.parametrize("name", ["n_values", "mean", "scale", "coef", "centres"])
def test_forged_shapes_are_refused_before_they_meet(kernel, tmp_path, name):
    """A column beside a row would make a matrix of both sizes."""
    tracemalloc.start()
    try:
        wrong = {f"start_parts_/{name}": np.ones((10**5, 1))}
        refuse_forged(kernel, tmp_path, "parts of the linear score do not fit together", **wrong)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_folds_without_their_trees_are_refused(boosted, tmp_path):
    parts = boosted.fold_parts_
    n_folds = len(boosted.boosters_)
    fewer = {
        "fold_parts_/fold": np.minimum(parts["fold"], n_folds - 2),
        "fold_parts_/coef": parts["coef"][: -len(parts["coef"]) // n_folds],
        "fold_parts_/intercept": parts["intercept"][:-1],
    }
    refuse_forged(boosted, tmp_path, "trees and folds", **fewer)
    refuse_forged(boosted, tmp_path, "models of folds", **{"fold_parts_/intercept": parts["intercept"][:-1]})


def test_sets_of_categories_must_not_overlap():
    """Two sets: from 0 to 1 and from 1 to 2; or to 2 and back."""
    two = {"num_cat": "2", "cat_threshold": "5 6"}
    assert "cat_boundaries=0 1 2" in checked_trees(tree_text(**two, cat_boundaries="0 1 2"), 2)
    for boundaries in ("0 2 2", "0 3 2", "1 1 2"):
        with pytest.raises(InputError):
            checked_trees(tree_text(**two, cat_boundaries=boundaries), 2)
