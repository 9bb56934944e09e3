"""The same estimators for rows that come in blocks, from a disk or a cluster: every step is a sum over blocks."""

from __future__ import annotations

from sdulearn.blocks.source import Block, Blocks, LocalBlocks, Part, Sums

__all__ = ["Block", "Blocks", "LocalBlocks", "Part", "Sums"]
