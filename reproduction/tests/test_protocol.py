import dataclasses

import pytest

from reproduction import protocol as module
from reproduction.datasets import BENCHMARKS
from reproduction.methods import METHODS
from reproduction.protocol import FIGURE2, FIGURE3, PROTOCOLS, QUICK, TABLE, Cell
from reproduction.tables import paper_table
from reproduction.trials import SETS, n_test_points

SIZES = {
    "adult": (7841, 24720), "banana": (2376, 2924), "codrna": (39690, 19845), "ijcnn1": (4853, 45137),
    "magic": (6688, 12332), "phishing": (3726, 4678), "phoneme": (3818, 1586), "spambase": (1812, 2785),
    "w8a": (1479, 48270), "waveform": (1657, 3343), "breast_cancer": (357, 212),
}  # fmt: skip


def test_the_table_is_the_papers():
    keys = {(c.draw.dataset, c.draw.n_pairs, c.method) for c in TABLE.with_changes(trials=1).cells()}
    assert set(paper_table()) <= keys
    assert len(paper_table()) == 200
    assert {c.draw.n_unlabeled for c in TABLE.with_changes(trials=1).cells()} == {500}
    assert (TABLE.trials, TABLE.priors, TABLE.assumed, TABLE.n_test) == (50, (0.7,), ("counts",), 500)


def test_the_figures_are_the_papers():
    assert FIGURE2.n_pairs == (50, 100, 200, 400, 600)
    assert (FIGURE2.trials, FIGURE2.assumed) == (50, ("known",))
    assert (FIGURE3.trials, FIGURE3.n_pairs, FIGURE3.assumed) == (100, (50,), ("counts",))
    assert FIGURE2.datasets == FIGURE3.datasets == BENCHMARKS


@pytest.mark.parametrize("protocol", [*PROTOCOLS.values(), *QUICK.values()], ids=lambda p: f"{p.name}-{p.trials}")
def test_names_are_known_and_data_suffice(protocol):
    assert set(protocol.methods) <= set(METHODS)
    assert set(protocol.datasets) <= set(SETS)
    for draw in protocol.with_changes(trials=1).draws():
        assert n_test_points(draw, protocol.n_test, *SIZES[draw.dataset]) > 0


def test_only_w8a_runs_out_of_test_points():
    short = {
        (draw.dataset, draw.n_pairs)
        for protocol in (TABLE, FIGURE2, FIGURE3)
        for draw in protocol.with_changes(trials=1).draws()
        if n_test_points(draw, 500, *SIZES[draw.dataset]) < 500
    }
    assert short == {("w8a", 600)}


def test_seeds_hang_on_the_cell_alone(tiny):
    cells = list(tiny.cells())
    assert len({cell.seed for cell in cells}) == len(cells)
    assert len({cell.draw.seed for cell in cells}) == 6
    grown = list(tiny.with_changes(trials=9, name="other").cells())
    assert {cell.seed for cell in cells} <= {cell.seed for cell in grown}


def test_key_and_back(tiny):
    for cell in tiny.cells():
        assert Cell.from_key(cell.key()) == cell


def test_hash_changes_with_what_matters(tiny, monkeypatch):
    assert tiny.hash() == tiny.with_changes(trials=9, methods=("joint",), datasets=("adult",)).hash()
    assert tiny.hash() != tiny.with_changes(n_test=81).hash()
    before = tiny.hash()
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    assert tiny.hash() != before


def test_frozen(tiny):
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny.trials = 1
