"""Watching a tree from outside: what its processes do, as their journals and tables say it.

Nothing is asked of the processes; a watcher reads Redis as anybody may, so it sees an agent on
another machine as well as one in this program.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from fdstore.agent.conversation import Assistant, Note, Result, Start, decoded
from fdstore.cli.tables import size
from fdstore.client import Store
from fdstore.errors import FDStoreError, NotFound
from fdstore.records import ENDED
from fdstore.regularly import regularly
from fdstore.store import journal
from fdstore.store.contents import listed
from fdstore.store.processes import open_child
from fdstore.text.layout import visible
from fdstore.tools.brief import PipeBrief

EVERY_S = 0.1


class Watch:
    """Tells what happens in a tree, line by line, from a thread."""

    def __init__(self, store: Store, tree: str, say: Callable[[str], None]) -> None:
        self._store = store
        self._tree = tree
        self._say = say
        self._began = time.monotonic()
        self._states: dict[str, str] = {}
        self._read: dict[str, int] = {}
        self._fds: dict[str, set[str]] = {}
        self.chars_shown = 0
        """Characters that models were shown so far, in all processes."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Tells all while the block runs, and what is new at its end."""
        with regularly(EVERY_S, self._keep, "watch"):
            yield
        self.look()

    def _keep(self) -> bool:
        with suppress(FDStoreError):  # the program that is watched says what is wrong
            self.look()
        return True

    def look(self) -> None:
        """Tells what is new since the last look."""
        for member in self._store.tree(self._tree).members:
            before = self._states.get(member.id)
            if before is None:
                program = f" runs {member.program}" if member.program else ""
                self._tell(member.id, f"new process{program}")
            self._new_entries(member.id)
            self._new_fds(member.id)
            if before != member.state:
                self._states[member.id] = member.state
                if member.state == "waiting":
                    self._tell(member.id, f"waiting for {', '.join(member.waiting_for)}; its slot is free")
                elif member.state in ENDED:
                    code = "" if member.exit_code is None else f" with code {member.exit_code}"
                    self._tell(member.id, f"{member.state}{code} {member.reason or ''}".rstrip())

    def _tell(self, process: str, what: str) -> None:
        self._say(f"{time.monotonic() - self._began:6.2f}s  {process:<18} {visible(what, keep='')}")

    def _new_entries(self, process: str) -> None:
        records = self._store.run(journal.read(self._store.prefix, process))
        for record in records[self._read.get(process, 0) :]:
            try:
                entry = decoded(record)
            except (ValueError, RecursionError):
                self._tell(process, "  a record of its journal cannot be read")
                continue
            match entry:
                case PipeBrief(commands=commands):
                    self._tell(process, f"runs {' | '.join(map(shlex.join, commands))[:90]}")
                case Start(system=system, content=content):
                    self.chars_shown += len(system) + len(str(content))
                case Assistant() as turn:
                    self._tell_turn(process, turn)
                case Result(content=content, is_error=failed):
                    self.chars_shown += len(content)
                    how = "an error of" if failed else "a result of"
                    self._tell(process, f"  is shown {how} {size(len(content))}")
                case Note(text=text):
                    self.chars_shown += len(text)
                    self._tell(process, f"  is told: {text.partition('<')[0].strip()}")
        self._read[process] = len(records)

    def _tell_turn(self, process: str, turn: Assistant) -> None:
        if turn.text:
            said = " ".join(turn.text.split())
            self._tell(process, f'says "{said[:90]}{"..." if len(said) > 90 else ""}"')
        for call in turn.calls:
            if not isinstance(call["input"], dict):
                continue
            given = ", ".join(f"{name}={_short(value)}" for name, value in call["input"].items())
            self._tell(process, f"calls {call['name']}({given})")

    def _new_fds(self, process: str) -> None:
        known = self._fds.setdefault(process, set())
        try:
            space = self._store.run(open_child(self._store.prefix, process))
        except NotFound:
            return
        for each in self._store.run(listed(space)):
            if each.fd not in known:
                known.add(each.fd)
                own = each.producer == process
                how = each.source if own else f"by reference, made by {each.producer}"
                pages = "1 page" if each.pages == 1 else f"{each.pages} pages"
                self._tell(process, f"  holds {each.fd}: {size(each.bytes)}, {pages} ({how})")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
