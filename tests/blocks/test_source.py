"""A sum over blocks is a sum over rows, however they are dealt out."""

from functools import partial

import numpy as np

from sdulearn.blocks import LocalBlocks, Sums
from sdulearn.blocks.source import add_all, count_blocks


def held(*blocks):
    return list(blocks)


def total(X, y, weight, factor):
    return Sums(rows=len(y), columns=factor * X.sum(axis=0), codes=[y])


def blocks_of(n, **options):
    rows = np.arange(24.0).reshape(12, 2)
    return LocalBlocks([partial(held, (rows[k::n], np.arange(12)[k::n], None)) for k in range(n)], **options)


def test_sums_add_up_whatever_the_threads():
    for n in (1, 3, 12):
        for n_jobs in (1, 3):
            found = blocks_of(n, n_jobs=n_jobs).sum(total, 2.0)
            assert found["rows"] == 12
            np.testing.assert_array_equal(found["columns"], [264.0, 288.0])
            np.testing.assert_array_equal(
                np.concatenate(found["codes"]), np.concatenate([np.arange(12)[k::n] for k in range(n)])
            )


def test_watch_hears_of_every_block_and_of_the_end():
    heard = []
    blocks_of(3, watch=heard.append).sum(total, 1.0)
    assert heard == [4, 4, 4, None]


def test_nothing_adds_up_to_none():
    assert add_all([None, None]) is None
    assert LocalBlocks([held]).sum(total, 1.0) is None


def test_a_part_may_say_how_many_blocks_it_has():
    part = partial(held)
    part.n_blocks = 5
    assert count_blocks([part, held]) == 6
    assert blocks_of(4).n_blocks == 4


def test_blocks_can_be_walked_through():
    assert [len(y) for _, y, _ in blocks_of(3)] == [4, 4, 4]
