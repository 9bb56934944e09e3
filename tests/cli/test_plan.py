"""sdulearn plan: text, table, picture, numbers and JSON of a simulation."""

import argparse
import csv
import dataclasses
import json
import math

import numpy as np
import pytest

from sdulearn.cli import plan
from sdulearn.planning import Curve, simulate_plan

FAST = ("--repeats", "2", "--sizes", "50", "200", "--n-features", "3")


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command into a folder that it makes; what it prints."""

    def call(*arguments):
        parser = argparse.ArgumentParser()
        plan.add_arguments(parser)
        given = [str(argument) for argument in ("--out", tmp_path / "new" / "folder", *FAST, *arguments)]
        assert plan.run(parser.parse_args(given)) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture(scope="module")
def simulated():
    """What the command simulates at prior 0.7."""
    return simulate_plan(prior=0.7, n_repeats=2, sizes=(50, 200), n_features=3)


def words(text):
    return " ".join(text.split())


def test_a_plan_on_generated_points(run, tmp_path, simulated):
    out = run("--prior", 0.7, "--target", 0.85, "--epsilon", 1)
    joint = simulated.curves[0]
    for said in (
        "85.0% with the joint method:", "85.0% with the sddu method:", "Estimated by simulation in 2 draws",
        "generated points of two Gaussian classes in 3 dimensions", "the paper recommends SDDU", "plan.png", "plan.csv",
        "--epsilon 1 each answer is flipped with probability 26.9%", "about 4.7 times as many", "0.50 to 0.83",
        f"50 {100 * joint.accuracy[0]:.1f} ± {100 * joint.error[0]:.1f}",
        f"{100 * simulated.rows[1].order_bound:.0f}% (99%) {simulated.rows[1].recommended_gamma:.2f}",
    ):  # fmt: skip
        assert said in words(out)
    folder = tmp_path / "new" / "folder"
    assert (folder / "plan.png").stat().st_size > 10_000
    with (folder / "plan.csv").open() as file:
        rows = list(csv.DictReader(file))
    for i, (row, theory) in enumerate(zip(rows, simulated.rows, strict=True)):
        expected = {
            "n_pairs": theory.n_pairs, "joint_accuracy": joint.accuracy[i], "joint_error": joint.error[i],
            "sddu_unfitted": simulated.curves[1].unfitted[i], "prior_low": theory.prior.low,
            "prior_high": theory.prior.high, "order_bound": theory.order_bound,
            "no_value_probability": theory.no_value_probability, "recommended_gamma": theory.recommended_gamma,
        }  # fmt: skip
        assert {name: float(row[name]) for name in expected} == expected


def test_one_method_on_the_user_s_table(run, tmp_path):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    table = tmp_path / "X.csv"
    lines = [f"r{i},{a:.3f},{b:.3f},{'xy'[i % 2]}" for i, (a, b) in enumerate(rng.normal(size=(80, 2)))]
    table.write_text("\n".join(["id,a,b,colour", *lines]) + "\n")
    out = run("--prior", 0.7, "--target", 0.8, "--features", table, "--method", "sddu")
    for said in (
        "your 80 rows of 4 features, with simulated classes", "right 90.0% of the time",
        "prior is estimated from the counts", "80 unlabeled rows", "200 answers are about 79 of your rows",
    ):  # fmt: skip
        assert said in words(out)
    assert "joint, %" not in out


def test_at_one_half(run):
    out = words(run("--prior", 0.5, "--target", 0.8))
    for said in ("Which mixture: none.", "this plan is for the joint method", "A few labelled points name the classes"):
        assert said in out
    assert "sddu, %" not in out
    with pytest.raises(ValueError, match="PairLogisticRegression"):
        run("--prior", 0.5, "--target", 0.8, "--method", "sddu")


def test_json_is_all_of_the_plan(run, tmp_path, simulated):
    found = json.loads(run("--prior", 0.7, "--target", 0.89, "--epsilon", 1, "--json"))
    assert found["plan"] == json.loads(json.dumps(dataclasses.asdict(simulated)))
    assert found["target_accuracy"] == 0.89
    for answer in found["pairs_needed"]:
        needed = simulated.pairs_needed(0.89, answer["method"])
        expected = {"n_pairs": needed.n_pairs, "low": needed.low, "high": needed.high, "method": needed.method}
        assert answer == {name: None if value == math.inf else value for name, value in expected.items()}
    files = {"picture": "plan.png", "numbers": "plan.csv"}
    assert found["files"] == {name: str(tmp_path / "new" / "folder" / file) for name, file in files.items()}
    assert found["times_as_many_for_privacy"] == pytest.approx(1 / np.tanh(0.5) ** 2)


def test_numbers_of_pairs_and_wide_tables_in_words(simulated):
    curve = Curve("joint", (0.72, 0.88), (0.0,) * 2, (0.0,) * 2)
    drawn = dataclasses.replace(simulated, curves=(curve,), n_rows=300, n_features=150, n_axes=100)
    assert "50 pairs or fewer" in plan.describe_need(drawn.pairs_needed(0.71))
    assert plan.describe_need(drawn.pairs_needed(0.8)) == "80.0% with the joint method: about 100 pairs (100 to 100)"
    assert "more than 200 pairs" in plan.describe_need(drawn.pairs_needed(0.89))
    noisy = dataclasses.replace(drawn, curves=(dataclasses.replace(curve, error=(0.01,) * 2),))
    assert "to more than 200)" in plan.describe_need(noisy.pairs_needed(0.875))
    assert "300 rows of 150 features (reduced to 100 principal directions: optimistic)" in plan.describe(drawn)
