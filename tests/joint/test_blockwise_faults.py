from functools import partial

import numpy as np
import pytest

from sdulearn.blocks import LocalBlocks
from sdulearn.joint.blockwise import BlockData, _survey
from sdulearn.joint.path import PairData
from sdulearn.pairs import read_pairs


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_the_positive_share_and_its_spread_are_those_of_memory(waveform, weighted, with_unlabeled):
    rows, codes = waveform
    if not with_unlabeled:
        rows, codes = rows[codes != 0], codes[codes != 0]
    weight = np.ones(len(codes))
    if weighted:
        weight[codes == 0] = np.random.default_rng(0).integers(1, 5, int(np.sum(codes == 0)))
    memory = PairData.of(rows, read_pairs(codes), weight, 0.7, 3.0)
    half = 60
    parts = [(rows[:half], codes[:half], weight[:half]), (rows[half:], codes[half:], weight[half:])]
    blocks = LocalBlocks([partial(list, [part]) for part in parts])
    data = BlockData.of(blocks, blocks.sum(_survey), 0.7, 3.0)
    rng = np.random.default_rng(1)
    coef, intercept = rng.normal(size=rows.shape[1]), 0.3
    # One line in the axes of either.
    ours = np.append(data.axes.V.T @ coef, intercept)
    theirs = np.append(memory.axes.V.T @ coef, intercept)
    assert data.positive_share(ours) == pytest.approx(memory.positive_share(theirs))
