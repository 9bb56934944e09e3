"""The same estimators for rows that come in blocks, from a disk or a cluster: every step is a sum over blocks."""

from __future__ import annotations

from sdulearn.blocks.estimators import fit_classifier, fit_classifier_cv
from sdulearn.blocks.source import Block, Blocks, HashedPairKFold, LocalBlocks, Part, Sums

__all__ = [
    "Block",
    "Blocks",
    "HashedPairKFold",
    "LocalBlocks",
    "Part",
    "Sums",
    "fit_classifier",
    "fit_classifier_cv",
]
