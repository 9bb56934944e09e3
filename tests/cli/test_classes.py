import csv
import json


def write(path, rows):
    path.write_text("\n".join(["id_a,id_b,label", *rows]))
    return path


def test_classes_of_a_file(tmp_path, call, capsys):
    """Two classes of ten ids each, compared with two of them, one of which looks like a formula; and a pair apart."""
    rows = [f"=0,p{k},{int(k % 2 == 0)}" for k in range(1, 20)] + [f"p1,p{k},{int(k % 2 == 1)}" for k in range(2, 20)]
    answers = write(tmp_path / "p.csv", [*rows, "x,y,1"])
    assert call("classes", answers, "-o", tmp_path / "out.csv") == 0
    assert "2 classes of 20 connected ids (1: 10, 2: 10)" in capsys.readouterr().out
    with (tmp_path / "out.csv").open(newline="") as file:
        found = {row["id"]: row for row in csv.DictReader(file)}
    assert found["'=0"]["class"] == found["p2"]["class"] != found["p1"]["class"] == found["p3"]["class"]
    assert (found["x"]["class"], found["x"]["part"], found["p1"]["n_answers"]) == ("1 of part 2", "2", "19")
    # Two answers each, which may be wrong.
    assert 0.99 < float(found["p5"]["probability_" + found["p5"]["class"]]) < 1
    assert call("classes", answers, "--classes", 3, "--json") == 0
    facts = {one["code"]: one["numbers"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert facts["classes_found"]["n_classes"] == 3
    assert facts["unconnected_parts"] == {"n_ids": 2, "n_parts": 1}
    assert call("classes", answers, "-o", "-") == 0
    rows, told = capsys.readouterr()
    assert rows == (tmp_path / "out.csv").read_text()
    assert "2 classes of 20 connected ids" in told


def test_files_without_classes(tmp_path, refused):
    assert "answers of one kind only" in refused("classes", write(tmp_path / "p.csv", ["a,b,1", "b,c,1"]))
    assert "has no answer" in refused("classes", write(tmp_path / "p.csv", ["a,b,unsure"]))
    entities = [f"a{k},b{k},1" for k in range(200)]
    entities += [f"{side}{k},a{(k + step) % 200},0" for k in range(200) for side, step in (("a", 1), ("b", 7))]
    assert "connect 200 groups of rows" in refused("classes", write(tmp_path / "p.csv", entities))
    few = write(tmp_path / "p.csv", ["a,b,1", "b,c,0"])
    assert "must end in .csv" in refused("classes", few, "-o", tmp_path / "out.xlsx")
    assert "-o" in refused("classes", few, "-o", "-", "--json")
    assert "would overwrite it" in refused("classes", few, "-o", few)
    clique = write(tmp_path / "p.csv", ["a,b,0", "a,c,0", "b,c,0", "a,d,0", "b,d,0", "c,d,0", "a,e,1"])
    assert "--classes 3: the answers are about 4 classes" in refused("classes", clique, "--classes", 3)
