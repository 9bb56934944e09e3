import json

import numpy as np
import pytest

from sdulearn.answers.records import flip_rate


@pytest.fixture
def files(tmp_path):
    """Predictions that are right for 60 of 100 rows, others for 90, labels of all rows and pairs of them."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 400)

    def write(name, header, rows):
        (tmp_path / name).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))

    for name, share in (("poor", 0.6), ("good", 0.9)):
        predicted = np.where(rng.random(400) < share, classes, 1 - classes)
        write(
            f"{name}.csv",
            "id,label,probability",
            [(f"r{k}", ("no", "yes")[c], 0.7) for k, c in enumerate(predicted)],
        )
    write("labels.csv", "id,label", [(f"r{k}", ("no", "yes")[c]) for k, c in enumerate(classes)])
    pairs = rng.permutation(400).reshape(-1, 2)
    write("pairs.csv", "id_a,id_b,label", [(f"r{a}", f"r{b}", int(classes[a] == classes[b])) for a, b in pairs])
    return tmp_path


def test_the_floor_decides_the_exit_code(files, call, capsys):
    assert call("audit", files / "poor.csv", files / "labels.csv", "--at-least", 0.8) == 2
    assert call("audit", files / "good.csv", files / "labels.csv", "--at-least", 0.8) == 0
    # Not certainly missed: the pairs leave room.
    assert call("audit", files / "good.csv", files / "pairs.csv", "--at-least", 0.92) == 0
    assert "%" in capsys.readouterr().out


def test_two_files_of_predictions_as_json(files, call, capsys):
    command = ("audit", files / "good.csv", files / "pairs.csv", "--compare", files / "poor.csv", "--json")
    assert call(*command) == 0
    audit = json.loads(capsys.readouterr().out)["audit"]
    assert audit["basis"] == "random pairs"
    assert audit["difference"]["low"] > 0
    assert audit["accuracy"]["low"] < 0.9 < audit["accuracy"]["high"]


def test_predictions_of_another_table_are_refused(files, refused):
    (files / "other.csv").write_text("id,label\nx,1\ny,2\n")
    assert "r0" in refused("audit", files / "other.csv", files / "labels.csv")


def test_many_classes_by_match_questions_of_a_log(tmp_path, call, capsys):
    """Five classes that the predictions call by other names; names exchanged make no difference."""
    rng = np.random.default_rng(2)
    classes = rng.integers(0, 5, 600)
    X = np.eye(5)[classes] + rng.normal(0, 0.5, (600, 5))
    rows = [f"r{k},{','.join(f'{x:.3f}' for x in X[k])},class {c}" for k, c in enumerate(classes)]
    table, log = tmp_path / "table.csv", tmp_path / "log.jsonl"
    table.write_text("\n".join(["id,a,b,c,d,e,kind", *rows]))
    options = ("--oracle", "kind", "--questions", 150, "--seed", 0, "--design", "match", "--classes", 5)
    assert call("ask", table, "-o", log, *options) == 0
    predicted = np.where(rng.random(600) < 0.8, classes, rng.integers(0, 5, 600))
    for name, shift in (("first.csv", 0), ("second.csv", 1)):
        cells = [f"r{k},{(c + shift) % 5}" for k, c in enumerate(predicted)]
        (tmp_path / name).write_text("\n".join(["id,label", *cells]))
    capsys.readouterr()
    command = ("audit", tmp_path / "first.csv", log, "--compare", tmp_path / "second.csv", "--error-rate", 0, "--json")
    assert call(*command) == 0
    audit = json.loads(capsys.readouterr().out)["audit"]
    assert audit["basis"] == "random questions"
    assert audit["accuracy"]["low"] < np.mean(predicted == classes) < audit["accuracy"]["high"] < 0.97
    assert audit["difference"]["value"] == 0
    assert audit["difference"]["low"] < 0 < audit["difference"]["high"]


def test_flips_for_privacy_are_allowed_for(tmp_path, call, capsys):
    """The rate of the flips is in the log; without it a good classifier would look poor."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 500)
    rows = [f"r{k},{rng.normal():.3f},{['no', 'yes'][c]}" for k, c in enumerate(classes)]
    table, log, predicted = tmp_path / "table.csv", tmp_path / "log.jsonl", tmp_path / "predicted.csv"
    table.write_text("\n".join(["id,a,kind", *rows]))
    options = ("--oracle", "kind", "--questions", 200, "--seed", 0, "--private", 1)
    assert call("ask", table, "-o", log, *options) == 0
    right = np.where(rng.random(500) < 0.95, classes, 1 - classes)
    predicted.write_text("\n".join(["id,label", *(f"r{k},{c}" for k, c in enumerate(right))]))
    accuracies = []
    for more in ((), ("--error-rate", flip_rate(1.0)), ("--error-rate", 0)):
        capsys.readouterr()
        assert call("audit", predicted, log, "--json", *more) == 0
        accuracies.append(json.loads(capsys.readouterr().out)["audit"]["accuracy"])
    assert accuracies[0] == accuracies[1]
    assert accuracies[0]["low"] < np.mean(right == classes) < accuracies[0]["high"]
    assert accuracies[2]["high"] < np.mean(right == classes)
