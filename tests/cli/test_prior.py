"""sdulearn prior: counts, files of answers and logs, as text and as JSON."""

import argparse
import json

import pytest

from sdulearn import estimate_prior
from sdulearn.cli import prior

KINDS = ["linked"] * 26 + ["random"] * 20 + ["explore"] * 14


@pytest.fixture
def run(capsys):
    """Run the command; what it prints, in one line, or its JSON."""

    def call(*arguments):
        parser = argparse.ArgumentParser()
        prior.add_arguments(parser)
        assert prior.run(parser.parse_args([str(argument) for argument in arguments])) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else " ".join(out.split())

    return call


@pytest.mark.parametrize(
    ("arguments", "phrases"),
    [
        ((580, 420), ("prior: 0.700, 95% interval 0.656 to 0.735", "either method works", "2.5; within the interval")),
        ((580, 420, "--majority", "negative", "--confidence", 0.5), ("prior: 0.300, 50% interval", "the negative one")),
        (
            (58, 42),
            ("prior: 0.700, 95% interval 0.500 to", "includes 1/2", "PairLogisticRegression", "orient(X, y_true)"),
        ),
        ((20, 30), ("prior: no value", "does not indicate a mistake", "PairLogisticRegression")),
        ((50, 50), ("prior: no value", "no more similar than dissimilar pairs")),
        ((100, 200), ("prior: no value", "Chance does not explain it", "not drawn at random")),
        ((10, 0), ("prior: 1.000", "no dissimilar pair")),
    ],
)
def test_counts(run, arguments, phrases):
    out = run(*arguments)
    for phrase in phrases:
        assert phrase in out


def test_a_file_of_answers(run, tmp_path):
    file = tmp_path / "pairs.csv"
    answers = ["similar"] * 58 + ["dissimilar"] * 42
    file.write_text("id_a,id_b,label\n" + "".join(f"a{i},b{i},{answer}\n" for i, answer in enumerate(answers)))
    out = run(file)
    assert "58 similar, 42 dissimilar" in out
    assert "prior: 0.700" in out
    file.write_text(file.read_text().replace("dissimilar", "no").replace("similar", "yes"))
    assert "prior: 0.700" in run(file, "--answers", "yes=similar,no=dissimilar")
    file.write_text("id_a,id_b,label\na,b,same\na,c,different\na,d,different\n")
    out = run(file)
    assert "prior: no value" in out
    assert "neither class is shown to be larger" in out
    file.write_text("id_a,id_b,label\na,b,unsure\n")
    with pytest.raises(ValueError, match="nothing to estimate a prior from"):
        run(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((7,), "Give two numbers"),
        ((1, 2, 3), "Give two numbers"),
        (("x", 3), "Give two numbers"),
        ((0, 0), "No pairs"),
        ((5, 3, "--confidence", 2), "`confidence` must lie between 0 and 1"),
    ],
)
def test_bad_input(run, arguments, message):
    with pytest.raises(ValueError, match=message):
        run(*arguments)


def test_json_of_counts_and_of_a_file(run, tmp_path):
    found = run(580, 420, "--json")
    estimate = estimate_prior(580, 420)
    for name in ("value", "low", "high", "identified", "n_similar", "noise_factor", "p_value", "has_value"):
        assert found[name] == getattr(estimate, name)
    assert found["noise_range"] == list(estimate.noise_range)
    file = tmp_path / "pairs.csv"
    file.write_text("id_a,id_b,label\na,b,dissimilar\nc,d,similar\n")
    found = run(file, "--json")
    assert (found["n_similar"], found["n_dissimilar"], found["has_value"], found["value"]) == (1, 1, False, None)
    assert found["noise_range"] == [estimate_prior(1, 1).noise_range[0], None]


def write_log(path, kinds):
    """Questions about 60 rows and one hub: 41 rows are in its class, 19 in the other."""
    said = ["same"] * 41 + ["different"] * 19
    lines = [
        {"event": "answer", "number": k + 1, "left": f"r{k}", "right": "hub", "answer": said[k], "annotator": "",
         "kind": kind, "time": "", "session": "s"}
        for k, kind in enumerate(kinds)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_answers_of_a_file_that_share_points(run, tmp_path):
    """As loose pairs 41 of 60 would be 0.80; 42 of 61 points are on one side."""
    star = tmp_path / "star.csv"
    said = ["same"] * 41 + ["different"] * 19
    star.write_text("id_a,id_b,label\n" + "".join(f"r{k},hub,{word}\n" for k, word in enumerate(said)))
    found = run(star, "--json")
    assert found["value"] == pytest.approx(42 / 61, abs=1e-3)
    assert found["low"] < 0.6 < 0.75 < found["high"]
    assert found["p_value"] is None
    assert "from 41 similar and 19 dissimilar answers about 61 points" in run(star)


def test_a_log_tells_the_prior_by_its_random_questions(run, tmp_path):
    """Of the random ones 15 of 20 are in one class; the 40 chosen ones are half and half."""
    found = run(write_log(tmp_path / "log.jsonl", KINDS), "--json")
    assert (found["n_similar"], found["n_dissimilar"]) == (15, 5)
    assert found["value"] == pytest.approx(0.75, abs=0.01)
    with pytest.raises(ValueError, match="holds no random question"):
        run(write_log(tmp_path / "log.jsonl", [""] * 60))
