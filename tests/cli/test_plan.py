import argparse
import csv
import dataclasses
import json
import math

import numpy as np
import pytest

from sdulearn.bounds import order_probability, recommended_gamma
from sdulearn.cli import plan
from sdulearn.planning import Curve, simulate_plan

FAST = ("--repeats", "2", "--sizes", "50", "200", "--n-features", "3")


def run(*arguments):
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    return plan.run(parser.parse_args([str(argument) for argument in arguments]))


def words(text):
    return " ".join(text.split())


def test_a_plan_on_generated_points(tmp_path, capsys):
    assert run("--prior", 0.7, "--target", 0.85, "--epsilon", 1, "--out", tmp_path / "new" / "folder", *FAST) == 0
    out = words(capsys.readouterr().out)
    for said in (
        "85.0% with the joint method:", "85.0% with the sddu method:", "An estimate by simulation (2 draws",
        "generated points: two Gaussian classes in 3 dimensions", "the paper advises SDDU", "plan.png", "plan.csv",
        "--epsilon 1 each answer is flipped with probability 26.9%", "0.50 to 0.83",
        f"{100 * order_probability(200, 0.7):.0f}% (99%)",
    ):  # fmt: skip
        assert said in out
    assert (tmp_path / "new" / "folder" / "plan.png").stat().st_size > 10_000
    with (tmp_path / "new" / "folder" / "plan.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["n_pairs"] for row in rows] == ["50", "200"]
    assert all(0.5 < float(row["joint_accuracy"]) < 0.9 for row in rows)
    assert float(rows[1]["order_bound"]) == pytest.approx(order_probability(200, 0.7))
    assert float(rows[1]["order_probability"]) == pytest.approx(order_probability(200, 0.7, exact=True))
    gamma = recommended_gamma("sddu", n_similar=29, n_dissimilar=21, n_unlabeled=500, prior=0.7)
    assert float(rows[0]["recommended_gamma"]) == pytest.approx(gamma)


def test_one_method_on_the_user_s_table(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    table = tmp_path / "X.csv"
    lines = [
        f"r{i},{a:.3f},{b:.3f},{c}" for i, (a, b) in enumerate(rng.normal(size=(80, 2))) for c in [("x", "y")[i % 2]]
    ]
    table.write_text("\n".join(["id,a,b,colour", *lines]) + "\n")
    run("--prior", 0.7, "--target", 0.8, "--features", table, "--method", "sddu", "--out", tmp_path, *FAST)
    out = words(capsys.readouterr().out)
    assert "your 80 rows of 4 features, with made-up classes" in out
    assert "right 90.0% of the time" in out
    assert "prior taken from the counts" in out
    assert "80 unlabeled rows" in out
    assert "joint, %" not in out


def test_at_one_half(tmp_path, capsys):
    run("--prior", 0.5, "--target", 0.8, "--out", tmp_path, *FAST)
    out = words(capsys.readouterr().out)
    assert "Which mixture: none." in out
    assert "plans for the joint method" in out
    assert "sddu, %" not in out
    assert "a few labelled points name the classes" in out
    with pytest.raises(ValueError, match="PairLogisticRegression"):
        run("--prior", 0.5, "--target", 0.8, "--method", "sddu", "--out", tmp_path, *FAST)


def test_json_is_all_of_the_plan(tmp_path, capsys):
    run("--prior", 0.7, "--target", 0.85, "--epsilon", 1, "--method", "sddu", "--json", "--out", tmp_path, *FAST)
    found = json.loads(capsys.readouterr().out)
    expected = simulate_plan(prior=0.7, methods=("sddu",), n_repeats=2, sizes=(50, 200), n_features=3)
    assert found["target_accuracy"] == 0.85
    for answer in found["pairs_needed"]:
        needed = expected.pairs_needed(0.85, answer["method"])
        numbers = [value if math.isfinite(value) else None for value in (needed.n_pairs, needed.low, needed.high)]
        assert [answer["n_pairs"], answer["low"], answer["high"]] == numbers
    assert found["plan"] == json.loads(json.dumps(dataclasses.asdict(expected)))
    assert found["files"] == {"picture": str(tmp_path / "plan.png"), "numbers": str(tmp_path / "plan.csv")}
    assert all((tmp_path / name).exists() for name in ("plan.png", "plan.csv"))
    assert found["times_as_many_for_privacy"] == pytest.approx(1 / np.tanh(0.5) ** 2)


def test_numbers_of_pairs_in_words():
    simulated = simulate_plan(prior=0.7, methods=("sddu",), sizes=(25, 100, 400, 1600), n_repeats=1)
    curve = Curve("joint", (0.72, 0.80, 0.78, 0.88), (0.0,) * 4, (0.0,) * 4)
    drawn = dataclasses.replace(simulated, curves=(curve,))
    assert "25 pairs or fewer" in plan.describe_need(drawn.pairs_needed(0.71))
    exact = plan.describe_need(drawn.pairs_needed(0.835))
    assert exact == "83.5% with the joint method: about 800 pairs (800 to 800)"
    assert "more than 1600 pairs" in plan.describe_need(drawn.pairs_needed(0.89))
    noisy = dataclasses.replace(drawn, curves=(dataclasses.replace(curve, error=(0.01,) * 4),))
    assert "to more than 1600)" in plan.describe_need(noisy.pairs_needed(0.87))


def test_what_was_simulated_in_words():
    options = {"prior": 0.7, "methods": ("sddu",), "sizes": (50,), "n_repeats": 1}
    generated = plan.describe(simulate_plan(**options))
    assert "generated points: two Gaussian classes in 10 dimensions" in generated
    assert "the prior taken from the counts" in generated
    X = (np.random.default_rng(0).random((300, 150)) < 0.1).astype(float)
    wide = plan.describe(simulate_plan(**options, X=X))
    assert "300 rows of 150 features (cut to the 100 main directions: optimistic)" in wide
    assert "along a random direction, a new one in each draw, so steep" in wide
