"""Connections that send nothing must not keep others out. It needs the extra ``ask``."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 200
# A browser opens six at a time; several people may share an address.
_MOST_OF_ONE_ADDRESS = 40
# From the first byte, or from the connection, until a request is there.
_REQUEST_SECONDS = 10.0


class PageConnection(H11Protocol):
    """One connection: it must send a request soon, and where there are too many the one idle longest is closed."""

    _timer: asyncio.TimerHandle | None = None
    _opened = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and begin to wait."""
        super().connection_made(transport)
        self._opened = self.loop.time()
        self._make_room()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Stop waiting when a whole request is there."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _watch(self) -> None:
        if self.is_busy:
            self._stop_waiting()
        elif self._timer is None:
            self._timer = self.loop.call_later(_REQUEST_SECONDS, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hang_up(self) -> None:
        self._timer = None
        if not self.is_busy:
            self.transport.close()

    def _make_room(self) -> None:
        others = [
            one for one in self.connections
            if isinstance(one, PageConnection) and one is not self and not one.transport.is_closing()
        ]  # fmt: skip
        alike = [one for one in others if one._address == self._address]
        crowd = alike if len(alike) >= _MOST_OF_ONE_ADDRESS else others if len(others) >= MAX_CONNECTIONS - 1 else []
        idle = [one for one in crowd if not one.is_busy]
        if idle:
            min(idle, key=lambda one: one._opened).transport.close()
        elif crowd:
            self.transport.close()
