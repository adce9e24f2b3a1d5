"""The state of a running inspector: its store, its options, and how data are loaded from a store that
may be away.

A person should not wait for a Redis that is slow: a page is given up after its own time. One that does not
answer is given up by the store, which has patience (`PATIENCE_S`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from fdstore.client._async.store import Store
from fdstore.errors import FDStoreError, StoreUnavailable, UnknownOutcome
from fdstore.http.address import LOOPBACK_NAMES
from fdstore.inspector.web.ask_tracks import AskTracks
from fdstore.inspector.web.journal_tracks import JournalTracks
from fdstore.inspector.web.rendering import page_templates
from fdstore.model.people import AskingProcess
from fdstore.store.doctor.safety import Finding
from fdstore.store.processes import people
from fdstore.store.views.health import read_health

T = TypeVar("T")

PATIENCE_S = 1.0
"""The time that a read of the store waits for Redis."""

HEALTH_S = 1.0
"""The time for which findings about the health of the store are shown again. All pages have them."""

QUESTIONS_S = 1.0
"""The time for which the count of open questions is shown again, and at least `COUNT_REST` times the time
that counting takes."""

COUNT_REST = 20

MAX_LIVE = 64
"""Pages that browsers may show live at the same time."""

MAX_EXPORTS = 4
"""Runs that may be exported at the same time."""

MAX_READING_WHOLE = 2
"""Texts that are read whole at the same time, to compare them or to count in them; others wait."""

Connect = Callable[[], Awaitable[Store]]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the operator. `hosts` are the names by which browsers may call; without a `token`
    everyone who reaches the server may look. `export_root` is the export root of the workers on this machine,
    if they are here: approvals show which files they would overwrite."""

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    token: str | None = None
    may_kill: bool = False
    may_answer: bool = False
    export_root: str | None = None


class Inspector:
    """`store` is opened for looking; `connect_to_write` opens one that may cancel processes and answer
    questions. `stopping` is set when the server stops."""

    def __init__(self, store: Store, options: Options, connect_to_write: Connect | None = None) -> None:
        self.store = store
        self.options = options
        self.connect_to_write = connect_to_write
        self.stopping = asyncio.Event()
        self.templates = page_templates()
        self.tracks = JournalTracks()
        self.ask_tracks = AskTracks()
        self.live = 0
        self.exports = 0
        self.reading_whole = asyncio.Semaphore(MAX_READING_WHOLE)
        self.health: list[Finding] | None = None
        """The findings of `look_at_health`; None if they are not known."""
        self._health_at = float("-inf")
        self.asking: list[AskingProcess] = []
        """The processes that wait for people, as `look_at_questions` found last."""
        self._questions_at = float("-inf")

    async def look_at_health(self) -> None:
        """Read the health of the store again if it was read long ago. Raises nothing: a page that cannot know
        it is shown without."""
        if time.monotonic() - self._health_at < HEALTH_S:
            return
        self._health_at = time.monotonic()  # others show the last one meanwhile
        try:
            self.health = await self.within(
                PATIENCE_S, lambda: self.store.run(read_health(self.store.prefix))
            )
        except FDStoreError:
            self.health = None

    @property
    def questions(self) -> int:
        """How many questions are open, as `look_at_questions` found last."""
        return sum(each.questions for each in self.asking)

    async def look_at_questions(self) -> None:
        """Count the open questions again if they were counted long ago: the more trees, the longer. Raises
        nothing: the count stays while Redis is away."""
        began = time.monotonic()
        if began < self._questions_at:
            return
        self._questions_at = float("inf")  # others show the last count meanwhile
        try:
            self.asking = await self.within(
                PATIENCE_S, lambda: self.store.run(people.who_asks(self.store.prefix))
            )
        except FDStoreError:
            pass
        finally:
            now = time.monotonic()
            self._questions_at = now + max(QUESTIONS_S, COUNT_REST * (now - began))

    async def within(self, seconds: float, call: Callable[[], Awaitable[T]]) -> T:
        """Call something that uses the store. Raises `StoreUnavailable` if it takes longer, too."""
        try:
            async with asyncio.timeout(seconds):
                return await call()
        except TimeoutError:
            raise StoreUnavailable(self.store.where, "does not answer in time") from None
        except UnknownOutcome as error:
            raise StoreUnavailable(self.store.where, str(error)) from error
