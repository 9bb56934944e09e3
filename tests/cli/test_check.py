import json


def test_a_clean_file(tmp_path, call, capsys):
    (tmp_path / "p.csv").write_text("id_a,id_b,label\na,b,1\nb,c,0\n")
    (tmp_path / "t.csv").write_text("id,x\na,1\nb,2\nc,3\n")
    assert call("check", tmp_path / "p.csv", "--features", tmp_path / "t.csv") == 0
    out = capsys.readouterr().out
    assert "1 similar, 1 dissimilar, 0 unsure" in out
    assert "'1' = similar (1), '0' = dissimilar (1)" in out
    assert "Nothing wrong" in out


def test_a_file_full_of_mistakes(tmp_path, call, capsys):
    rows = "a,b,same b,c,same a,c,different a,a,same a,b,same c,d,same d,c,different a,x,perhaps a,,same a,q,unsure"
    (tmp_path / "p.csv").write_text("\n".join(["left,right,label", *rows.split()]))
    (tmp_path / "t.csv").write_text("name,x\na,1\nb,2\nc,3\nd,4\n")
    assert call("check", tmp_path / "p.csv", "--features", tmp_path / "t.csv", "--id", "name") == 1
    out = capsys.readouterr().out
    for text in (
        "5 similar, 2 dissimilar, 1 unsure",
        "Unreadable rows: 2",
        "line 9: label 'perhaps'",
        "line 10: id_b is empty",
        "does not have: 1\n  line 11: q",
        "line 5: a and a similar",
        "same answer: 1\n  line 6: a and b similar",
        "line 7: c and d similar; line 8: d and c dissimilar",
        "line 4: a and c dissimilar; line 3: b and c similar; line 2: a and b similar",
    ):
        assert text in out
    call("check", tmp_path / "p.csv", "--show", 1)
    assert "... and 1 more (--show 2)" in capsys.readouterr().out
    assert call("check", tmp_path / "p.csv", "--features", tmp_path / "t.csv", "--id", "name", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    read = found["facts"][0]["details"]
    assert (read["n_similar"], read["n_dissimilar"], read["n_unsure"]) == (5, 2, 1)
    assert found["unreadable"] == [
        {"line": 9, "reason": "label 'perhaps' is not one that is known"},
        {"line": 10, "reason": "id_b is empty"},
    ]
    assert found["unknown_ids"] == [{"line": 11, "id": "q"}]
    assert (found["self_pairs"], found["repeats"]) == ([5], [6])
    assert found["contradictions"] == {"both_ways": [[7, 8]], "closure": [[4, 3, 2]], "odd_cycles": []}


def test_a_file_of_a_tool_that_links_records(tmp_path, call, capsys):
    (tmp_path / "training.json").write_text(json.dumps({"distinct": [[{"name": "Ann"}, {"name": "Bob"}]], "match": []}))
    assert call("check", tmp_path / "training.json") == 2
    err = capsys.readouterr().err
    assert "a file of dedupe, which is not a format that is read; write id_a,id_b,label" in err


def test_answers_about_entities(tmp_path, call, capsys):
    """200 records twice, each pair "similar", and each row beside two others."""
    lines = ["id_a,id_b,label", *(f"a{k},b{k},1" for k in range(200))]
    lines += [f"{side}{k},a{(k + step) % 200},0" for k in range(200) for side, step in (("a", 1), ("b", 7))]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    assert call("check", tmp_path / "p.csv") == 1
    out = capsys.readouterr().out
    assert "connect 200 groups of rows, half of them of 2 rows or fewer" in out
    assert "Splink or dedupe" in out
    assert "Nothing wrong" not in out
    call("check", tmp_path / "p.csv", "--json")
    assert "entities" in [fact["code"] for fact in json.loads(capsys.readouterr().out)["facts"]]


def test_answers_that_share_points(tmp_path, call, capsys):
    """A star of 30 answers, of which none follows from the others, and two more, one of them wrong."""
    answers = [f"hub,p{k},{int(k % 3 > 0)},ann" for k in range(30)]
    (tmp_path / "p.csv").write_text("\n".join(["id_a,id_b,label,annotator", *answers, "p0,p1,1,bob", "p3,p6,1,cem"]))
    assert call("check", tmp_path / "p.csv") == 1
    out = capsys.readouterr().out
    for text in (
        "The 32 answers share 31 points, in 1 connected group.",
        "30 of the 32 are independent, the rest follow from them",
        "1 point is in many of the 32 answers (hub: 30)",
        "By annotator: bob: 1 of 1, ann: 2 of 30, cem: 0 of 1.",
    ):
        assert text in out
    call("check", tmp_path / "p.csv", "--json")
    found = {fact["code"]: fact["details"] for fact in json.loads(capsys.readouterr().out)["facts"]}
    assert found["hubs"]["points"] == ["hub"]
    assert found["shared_points"]["n_independent"] == 30
    assert found["contradictions"]["by_annotator"] == {"bob": [1, 1], "ann": [2, 30], "cem": [0, 1]}


def test_a_ratio_that_the_prior_does_not_explain(tmp_path, call, capsys):
    loose = [f"a{k},b{k},{int(k < 50)}" for k in range(100)]
    chain = [f"a{k},a{k + 1},1" for k in range(100)]
    for answers, told in ((loose, "50 of 100 pairs are similar"), (chain, "Of the pairs among the 101 points")):
        (tmp_path / "p.csv").write_text("\n".join(["id_a,id_b,label", *answers]))
        assert call("check", tmp_path / "p.csv") == 0
        capsys.readouterr()
        assert call("check", tmp_path / "p.csv", "--prior", 0.8) == 1
        out = capsys.readouterr().out
        assert told in out
        assert "Nothing wrong" not in out


def test_long_ids_are_cut(call, tmp_path, capsys):
    long = "y" * 9_999
    (tmp_path / "a.csv").write_text(f"id_a,id_b,label,annotator\n{long},b,1,{long}\n{long},b,0,{long}\n{long},c,1,d\n")
    (tmp_path / "t.csv").write_text("id,x\nb,1\n")
    assert call("check", tmp_path / "a.csv", "--features", tmp_path / "t.csv") == 1
    told = capsys.readouterr().out
    assert "Ids that the table does not have: 4" in told
    assert max(map(len, told.splitlines())) < 700
