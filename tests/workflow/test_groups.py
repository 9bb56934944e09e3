"""Rows that belong together: several rows of one person, product or document."""

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairKFold, PairLogisticRegression, fit_table, load_model
from sdulearn.answers import AnswerGraph
from sdulearn.dependence import answer_spread, design_effect, few_units
from sdulearn.metrics import class_agreement, cross_val_accuracy, pair_accuracy
from sdulearn.related_rows import is_key_name, near_copies
from sdulearn.workflow.predict import predict_table
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")


def people(seed, n=25, rows=24, width=20, signal=0.4, within=0.2):
    """Rows of people, who are easy to recognise, and whose classes are hard to see; and rows of others."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(400), rows)
    kind = rng.permutation(np.arange(400) % 2)
    centres = rng.normal(size=(400, width))
    centres[:, :4] += signal * (2 * kind[:, None] - 1)
    X = centres[person] + within * rng.normal(size=(len(person), width))
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(width)]).assign(person=[f"p{k}" for k in person])
    new = person >= n
    return table[~new].reset_index(drop=True), kind[person[~new]], table[new], kind[person[new]]


def answered(table, y, answers_about, seed, n=150):
    ends = np.random.default_rng(seed).permutation(len(y))[: 2 * n].reshape(-1, 2)
    return table.assign(id=[f"r{k}" for k in range(len(y))]), answers_about(y, ends)


def true_accuracy(model, table, y):
    right = np.mean((model.predict(table) > 0) == (y > 0))
    return max(right, 1 - right)


def test_with_groups_the_accuracy_is_that_on_new_groups_and_too_high_without(answers_about):
    covered = []
    gaps = {"without": [], "with": []}
    for seed in range(6):
        table, y, others, y_others = people(seed)
        rows, answers = answered(table, y, answers_about, seed)
        model = fit_table(rows, answers, groups="person", model="linear")
        estimate, truth = model.report.accuracy, true_accuracy(model, others, y_others)
        covered.append(estimate.low <= truth <= estimate.high)
        gaps["with"].append(estimate.value - truth)
        blind = fit_table(rows.drop(columns="person"), answers, model="linear")
        gaps["without"].append(blind.report.accuracy.value - true_accuracy(blind, others, y_others))
    assert sum(covered) >= 5
    assert abs(np.mean(gaps["with"])) < 0.1
    assert np.mean(gaps["without"]) > 0.2


def test_the_column_of_groups_is_no_feature_and_the_headline_names_it(answers_about, tmp_path):
    table, y, others, _ = people(0)
    rows, answers = answered(table, y, answers_about, 0)
    model = fit_table(rows, answers, groups="person", model="linear")
    assert [column.name for column in model.columns.columns] == [f"x{k}" for k in range(20)]
    assert (model.report.groups, model.report.n_groups) == ("person", 25)
    assert "new person" in model.summary()
    assert "related_rows" not in {finding.code for finding in model.report.findings}
    model.save(tmp_path / "m.sdu")
    again = load_model(tmp_path / "m.sdu")
    assert (again.report.groups, again.reading.groups) == ("person", "person")
    # New rows need no such column.
    assert (again.predict(others.drop(columns="person")) == model.predict(others)).all()
    assert next(predict_table(again, others.drop(columns="person").assign(id=range(len(others))))).ids is not None


def test_a_row_without_a_group_is_one_of_its_own(answers_about):
    table, y, *_ = people(1)
    rows, answers = answered(table, y, answers_about, 1)
    rows.loc[rows["person"] == "p3", "person"] = None
    n_rows = int(
        rows["person"].isna()[np.unique([int(r[1:]) for r in answers[["id_a", "id_b"]].to_numpy().ravel()])].sum()
    )
    assert fit_table(rows, answers, groups="person", model="linear").report.n_groups == 24 + n_rows


def test_groups_that_cannot_be_used_are_refused(answers_about):
    table, y, *_ = people(2)
    rows, answers = answered(table, y, answers_about, 2)
    with refuses("groups"):
        fit_table(rows, answers, groups="person", categories=["person"])
    with refuses(shows=["person2"]):
        fit_table(rows, answers, groups="person2")
    with refuses("groups='x'"):
        fit_table(rows.assign(x=rows["person"].eq("p3")), answers, groups="x", drop=["person"])


@pytest.mark.parametrize("options", [{"method": "sd", "prior": 0.55}, {"classes": 3}, {"model": "boosted"}])
def test_other_methods_keep_groups_together_too(options, answers_about):
    if options.get("model") == "boosted":
        pytest.importorskip("lightgbm")
    table, y, *_ = people(3, n=60, rows=8, signal=1.0)
    y = y if "classes" not in options else np.where(np.arange(len(y)) % 16 < 8, y, 2)
    rows, answers = answered(table, y, answers_about, 3)
    report = fit_table(rows, answers, groups="person", **options).report
    judged = report.accuracy or report.agreement.agreement
    # At a prior near 1/2 the paper's risks may learn nothing from a few people.
    assert judged.low <= judged.value < judged.high
    assert judged.high - judged.low > 0.1


def test_without_groups_a_finding_names_the_column_or_the_copies(answers_about):
    table, y, *_ = people(4)
    rows, answers = answered(table, y, answers_about, 4)
    for given, column in (
        (rows, "person"),
        (rows.rename(columns={"person": "c"}), "c"),
        (rows[[*[*rows][:20], "id"]], ""),
    ):
        findings = {finding.code: finding for finding in fit_table(given, answers, model="linear").report.findings}
        related = findings["related_rows"]
        assert (related.column, related.n_groups, related.severity) == (column, 25, "warning")
        assert "`groups" in str(related)


def test_independent_rows_are_no_near_copies_and_have_no_key(answers_about):
    rng = np.random.default_rng(0)
    for X in (
        rng.normal(size=(400, 3)),
        np.exp(2 * rng.normal(size=(400, 6))),
        rng.normal(size=(400, 8)) + 20 * rng.integers(0, 10, 400)[:, None],
        rng.integers(0, 3, (400, 6)).astype(float),
    ):
        assert near_copies(X) is None
    copies = np.repeat(rng.normal(size=(150, 8)), 2, axis=0)
    assert near_copies(copies + 1e-3 * rng.normal(size=copies.shape)).n_groups == 150
    assert near_copies(copies).n_rows == 300
    y = np.arange(300) % 2
    table = pd.DataFrame(rng.normal(size=(300, 3)) + y[:, None], columns=list("abc"))
    rows, answers = answered(table.assign(town=rng.choice(list("uvwxyz"), 300)), y, answers_about, 0, n=100)
    assert "related_rows" not in {finding.code for finding in fit_table(rows, answers, model="linear").report.findings}


@pytest.mark.parametrize(("name", "is_key"), [
    ("person", True), ("Patient ID", True), ("customerId", True), ("product_nr", True), ("Subjects", True),
    ("width", False), ("paid", False), ("colour", False), ("idea", False),
])  # fmt: skip
def test_names_of_keys(name, is_key):
    assert is_key_name(name) == is_key


def random_graph(seed, n_points=60, n_answers=90, n_groups=12):
    rng = np.random.default_rng(seed)
    ends = np.array([rng.choice(n_points, 2, replace=False) for _ in range(n_answers)])
    kind = rng.integers(0, 2, n_points)
    y = np.asarray(AnswerGraph.from_answers(ends, kind[ends[:, 0]] == kind[ends[:, 1]], n_points=n_points))
    return y, rng.integers(0, n_groups, n_points)[y[:, 1]]


@pytest.mark.parametrize("seed", range(5))
def test_no_fold_splits_a_group_and_all_points_are_held_out_once(seed):
    y, groups = random_graph(seed)
    fold = PairKFold(4).fold_of_points(AnswerGraph.from_y(y, groups=groups))
    of_point = dict(zip(y[:, 1].tolist(), groups.tolist(), strict=True))
    by_group = {}
    for point, its_fold in enumerate(fold.tolist()):
        assert by_group.setdefault(of_point[point], its_fold) == its_fold
    assert set(by_group.values()) == {0, 1, 2, 3}
    for train, test in PairKFold(4).split(None, y, groups):
        assert not {*groups[train]} & {*groups[test]}


def test_the_group_of_a_hub_is_not_held_out():
    ends = np.column_stack([np.arange(1, 61), np.zeros(60, dtype=int)])
    y = np.asarray(AnswerGraph.from_answers(ends, np.arange(60) % 3 > 0))
    groups = np.minimum(y[:, 1] // 5, 8)
    fold = PairKFold(3).fold_of_points(AnswerGraph.from_y(y, groups=groups))
    assert (fold[:5] == -1).all()
    assert (fold[5:] >= 0).all()


def test_folds_need_groups_and_a_point_has_one():
    y, groups = random_graph(0, n_groups=3)
    with refuses(shows=["groups"]):
        PairKFold(4).fold_of_points(AnswerGraph.from_y(y, groups=groups))
    shown_twice = np.flatnonzero(y[:, 1] == y[0, 1])
    groups[shown_twice[0]] = 7
    with refuses("groups"):
        AnswerGraph.from_y(y, groups=groups)


def test_groups_of_one_row_change_no_estimate_and_groups_of_many_widen_the_interval():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    right = np.repeat(rng.random(20) < 0.8, 20)
    z = np.where(right, 2 * kind - 1, 1 - 2 * kind).astype(float)
    ends = rng.permutation(400).reshape(-1, 2)
    graph = AnswerGraph.from_answers(ends, kind[ends[:, 0]] == kind[ends[:, 1]])
    y = np.asarray(graph)
    decision = z[y[:, 1]]
    alone, single = (pair_accuracy(decision, AnswerGraph.from_y(y, groups=g)) for g in (None, y[:, 1]))
    assert single.value == alone.value
    assert abs((single.high - single.low) / (alone.high - alone.low) - 1) < 0.05
    together = pair_accuracy(decision, AnswerGraph.from_y(y, groups=y[:, 1] // 20))
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
    by_class = [
        class_agreement(np.sign(decision).astype(int), AnswerGraph.from_y(y, groups=g)) for g in (None, y[:, 1] // 20)
    ]
    assert by_class[1].agreement.n < by_class[0].agreement.n / 2


def test_answers_within_groups_alone_say_nothing_about_new_ones():
    graph = AnswerGraph.from_answers([(0, 1), (2, 3), (4, 5)], [True, False, True])
    found = pair_accuracy(np.ones(6), AnswerGraph.from_y(np.asarray(graph), groups=np.arange(6) // 2))
    assert (found.value, found.low, found.high, found.n_answers) == (0.5, 0.5, 1.0, 0)


def test_design_effect_of_clusters_is_the_clustered_variance():
    rng = np.random.default_rng(1)
    cluster = rng.integers(0, 6, 80)
    r = rng.normal(size=80) + rng.normal(size=6)[cluster]
    by_cluster = np.bincount(cluster, r)
    assert design_effect(r, cluster[:, None]) == pytest.approx(max(1.0, by_cluster @ by_cluster / (r @ r)))
    graph = AnswerGraph.from_answers([(0, 1), (2, 3)], [True, False])
    assert answer_spread(np.array([0.5, -0.5]), graph, np.ones(2, dtype=bool), 0.95) == 1
    assert few_units(np.arange(10_000), 0.95) == pytest.approx(1, abs=1e-3)
    assert few_units(np.arange(5), 0.95) > 2


def test_cross_validation_of_estimators_takes_a_graph_with_groups():
    table, y, *_ = people(5)
    X = table[[f"x{k}" for k in range(20)]].to_numpy()
    ends = np.random.default_rng(5).permutation(len(y))[:300].reshape(-1, 2)
    known = np.asarray(AnswerGraph.from_answers(ends, y[ends[:, 0]] == y[ends[:, 1]], n_points=len(y)))
    rows = X[known[:, 1]]
    person = table["person"].to_numpy()[known[:, 1]]
    model = PairLogisticRegression(0.01)
    apart = cross_val_accuracy(model, rows, AnswerGraph.from_y(known, groups=person))
    assert apart.value < cross_val_accuracy(model, rows, known).value - 0.15


@pytest.mark.parametrize("n_groups", [5, 30])
def test_answers_that_share_rows_and_their_groups(n_groups):
    """Folds of the likelihood keep the groups of the rows."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 120)
    table = pd.DataFrame({"id": [f"r{k}" for k in range(120)], "x": rng.normal(size=120) + 3 * y})
    ends = rng.integers(0, 120, (60, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    ids = table["id"].to_numpy()
    answers = pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": y[ends[:, 0]] == y[ends[:, 1]]})
    model = fit_table(
        table.assign(who=rng.integers(0, n_groups, 120).astype(str)), answers, groups="who", model="linear"
    )
    assert true_accuracy(model, table, y) > 0.85
    with refuses("groups"):
        fit_table(table, answers, groups="id")
