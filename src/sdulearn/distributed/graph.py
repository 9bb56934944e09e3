"""Task graphs in one layer, and the kinds of dask collections that signatures speak of.

With thousands of blocks, one ``delayed`` call per task costs more than the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from uuid import uuid4

import dask.array as da
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.typing import Key

DaskArray: TypeAlias = da.Array
DaskFrame: TypeAlias = Any
"""A dask DataFrame or Series; dask.dataframe is imported only where there is one."""
DaskCollection: TypeAlias = Any
"""A dask array, DataFrame or Series."""
VectorLike: TypeAlias = Any
"""One value per row: a dask array, a dask Series or array-like."""


class Layer:
    """Tasks ``(function, *arguments)`` by key.

    An argument that is a key, or a list of keys, stands for its result.
    """

    def __init__(self, name: str) -> None:
        self.name = f"{name}-{uuid4().hex}"
        self.tasks: dict[Key, object] = {}

    def add(self, place: Key, *task: object) -> Key:
        """Add a task and give its key."""
        key = (self.name, *place) if isinstance(place, tuple) else (self.name, place)
        self.tasks[key] = task
        return key

    def add_value(self, place: Key, value: object) -> Key:
        """Add a value as it is; one that many tasks share is sent once."""
        key = (self.name, place)
        self.tasks[key] = value
        return key

    def graph(self, needs: Sequence[DaskCollection]) -> HighLevelGraph:
        """The tasks together with those that the collections in ``needs`` stand for."""
        return HighLevelGraph.from_collections(self.name, self.tasks, dependencies=list(needs))

    def delayed(self, keys: Sequence[Key], needs: Sequence[DaskCollection]) -> list[Delayed]:
        """Delayed objects for some of the tasks."""
        graph = self.graph(needs)
        return [Delayed(key, graph, layer=self.name) for key in keys]
