"""Watch a tree from outside: report the events in the journals and tables of its processes.

A watcher only reads Redis, so it sees agents on other machines as well as in this program. Besides events it
reports why nothing happens: a refusing model, a lost worker, a slow call, an unreachable Redis.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from fdstore.agents.runtime.eligibility import why_unclaimed
from fdstore.agents.runtime.periodic import run_periodically
from fdstore.cli.happenings import Happening
from fdstore.client import Store
from fdstore.errors import DamagedRecord, FDStoreError, NewerFormat, NotFound
from fdstore.inspector.reading.build_entries import build_entries
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.narrate import Tone, narrate
from fdstore.model.ends import in_words
from fdstore.model.lifecycle import ENDED, waited_for
from fdstore.model.records import ProcessRecord
from fdstore.store.clock import redis_now
from fdstore.store.contents.descriptors import list_fds
from fdstore.store.keys import AT_ONCE
from fdstore.store.processes import journal
from fdstore.store.processes.processes import open_child
from fdstore.store.views import worker_check
from fdstore.store.views.shown_processes import shown_tree
from fdstore.text.quantities import format_count, format_size, moment

EVERY_S = 0.1
SILENT_S = 3.0
"""The time that Redis may be silent before this is reported."""

LONG_S = 10.0
"""The time that a running agent may be silent before its pending call is reported; doubled each time."""


class Unclaimed:
    """The ready processes that no worker claims: why, once for each, after it has waited for a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since: dict[str, float | None] = {}

    def reason(self, process: ProcessRecord) -> str:
        """Return why no worker claims a process, if that is due; else ""."""
        if process.state != "ready":
            self._since.pop(process.id, None)
            return ""
        since = self._since.setdefault(process.id, time.monotonic())
        if since is None or time.monotonic() - since < worker_check.PATIENCE_S:
            return ""
        self._since[process.id] = None
        return self._store.run(why_unclaimed(self._store.prefix, process.id))


class _Quiet:
    """The pending calls of a running agent, and the time of its last event."""

    def __init__(self, now_s: float) -> None:
        self.since = now_s
        self.say_at = now_s + LONG_S
        self.calls: list[str] = []

    def has_news(self, now_s: float) -> None:
        self.since, self.say_at = now_s, now_s + LONG_S

    def due(self, now_s: float) -> float | None:
        """Return the seconds of silence if they are to be reported now."""
        if now_s < self.say_at:
            return None
        quiet_s = now_s - self.since
        self.say_at = now_s + quiet_s
        return quiet_s


ASKS_EVERY_S = 2.0
"""The interval at which the progress of asks is reported."""

LATE_S = 10.0
"""The age of a tree from which a watcher says when it began."""


class TreeWatcher:
    """Reports the events of a tree, one by one, from a thread.

    The events that one look finds are reported in their order, with their own times: those of records where
    these have one, else that of the look.
    """

    def __init__(self, store: Store, tree: str, say: Callable[[Happening], None]) -> None:
        self._store = store
        self._tree = tree
        self._say = say
        self._redis_ahead_s: float | None = None
        """By how much the clock of Redis is ahead of the monotonic one of this process."""
        self._tree_began = 0.0
        self._found: list[Happening] = []
        self._states: dict[str, str] = {}
        self._read: dict[str, int] = {}
        self._fds: dict[str, set[str]] = {}
        self._known: dict[str, ProcessRecord] = {}
        self._left: set[str] = set()
        self._unclaimed = Unclaimed(store)
        self._quiet: dict[str, _Quiet] = {}
        self._asks: dict[str, tuple[str, float]] = {}
        """The last line about the asks of a call, and when the next one is due."""
        self._tries: defaultdict[str, set[int]] = defaultdict(set)
        """The tries for the next answer of each process that were reported while they were pending."""
        self._attempts: defaultdict[str, int] = defaultdict(int)
        """The last attempt of each process that was reported when it began."""
        self._look_began: float | None = None
        self._away_since: float | None = None
        self.chars_shown = 0
        """The number of characters sent to models so far, in all processes."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Report events while the block runs, and the last ones at its end."""
        with (
            run_periodically(EVERY_S, self._keep, "watch"),
            run_periodically(SILENT_S / 6, self._keep_time, "watch time"),
        ):
            yield
        self.look()

    def _keep(self) -> bool:
        self._look_began = time.monotonic()
        try:
            # the watched program itself reports these errors
            with suppress(NotFound, DamagedRecord, NewerFormat):
                self.look()
        except FDStoreError as error:
            self._report_away(str(error))
        else:
            self._report_back()
        self._look_began = None
        return True

    def _keep_time(self) -> bool:
        """Report Redis as away if the current poll has taken too long."""
        began = self._look_began
        if began is not None and time.monotonic() - began > SILENT_S:
            self._report_away("does not answer; running processes continue when it does")
        return True

    def _report_away(self, what: str) -> None:
        if self._away_since is None:
            self._away_since = self._look_began or time.monotonic()
            self._say(Happening(self._passed(), "Redis", what.removeprefix("Redis "), "bad"))

    def _report_back(self) -> None:
        if self._away_since is not None:
            away_s = time.monotonic() - self._away_since
            self._away_since = None
            self._say(Happening(self._passed(), "Redis", f"answers again, after {away_s:.0f} s", "good"))

    def look(self) -> None:
        """Report the events since the last call."""
        if self._redis_ahead_s is None:
            self._redis_ahead_s = self._store.run(redis_now()) - time.monotonic()
        try:
            self._look()
        finally:
            found, self._found = self._found, []
            for each in sorted(found, key=lambda each: each.passed_s):
                self._say(each)

    def _look(self) -> None:
        members = self._store.run(shown_tree(self._store.prefix, self._tree)).members
        parents = {member.parent for member in members if member.state not in ENDED}
        for member in members:
            if member.kind == "asks":
                self._asked(member)
                continue
            before = self._states.get(member.id)
            if before is None:
                self._report_new(member)
            known = self._known.get(member.id, member)
            self._new_losses(member)
            self._new_entries(member.id)
            # after the answers before it, with which earlier tries are over
            self._new_trouble(member, known)
            self._new_fds(member)
            if before != member.state:
                self._states[member.id] = member.state
                if member.state == "waiting":
                    on = ", ".join(waited_for(member.waiting_for))
                    self._report(member.id, f"waiting for {on}; its slot is free")
                elif member.state in ENDED:
                    self._report_end(member)
            self._report_unclaimed(member)
            if member.state == "running" and member.kind is None and member.id not in parents:
                self._pending(member)

    def _report_new(self, member: ProcessRecord) -> None:
        program = f" runs {member.program}" if member.program else ""
        began = member.started_at
        if member.id == self._tree:
            self._tree_began = self._now() if began is None else began
            if self._passed() > LATE_S:
                program += f", since {moment(self._tree_began)}"
        self._report(member.id, f"new process{program}", at=began)

    def _report_end(self, member: ProcessRecord) -> None:
        code = "" if member.exit_code is None else f" with code {member.exit_code}"
        why = f": {in_words(member.reason)}" if member.reason else ""
        tone: Tone = "good" if member.state == "exited" else "bad"
        self._report(member.id, f"{member.state}{code}{why}", tone, at=member.ended_at)

    def _asked(self, lanes: ProcessRecord) -> None:
        """Report how many asks of a call are done: now and then, and at their end."""
        now = time.monotonic()
        known = self._known.get(lanes.id, lanes)
        self._new_losses(lanes)
        self._new_trouble(lanes, known)
        said, due = self._asks.get(lanes.id, ("", now))
        if lanes.program and lanes.program != said and (now >= due or lanes.state in ENDED):
            self._asks[lanes.id] = (lanes.program, now + ASKS_EVERY_S)
            self._report(lanes.parent or lanes.id, lanes.program)
        self._report_unclaimed(lanes)

    def _new_losses(self, member: ProcessRecord) -> None:
        """Report a loss, and who goes on."""
        before = self._known.get(member.id, member)
        if member.losses > before.losses:
            # until another worker takes over, the record names no worker
            lost = f"was lost by {before.worker or 'its worker'} (loss {member.losses})"
            self._report(member.id, lost, "bad")
        if member.kind != "asks":  # its state and attempt are those of one lane now, of another then
            self._new_attempt(member, before)
        self._known[member.id] = member

    def _new_trouble(self, member: ProcessRecord, known: ProcessRecord) -> None:
        """Report what a process has trouble with, unless it was known."""
        if member.trouble and (known is member or member.trouble != known.trouble):
            self._report(member.id, f"  {member.trouble}", "busy")
            if number := re.match(r"try ([0-9]{1,9}): ", member.trouble):
                self._tries[member.id].add(int(number[1]))

    def _new_attempt(self, member: ProcessRecord, before: ProcessRecord) -> None:
        if before.state == "running" and member.state == "ready":
            self._left.add(member.id)
        elif member.attempt > before.attempt and (member.id in self._left or before.state == "running"):
            self._left.discard(member.id)
            self._report(member.id, f"continues as attempt {member.attempt}, on {member.worker}")
            self._attempts[member.id] = member.attempt

    def _report_unclaimed(self, member: ProcessRecord) -> None:
        if why := self._unclaimed.reason(member):
            self._report(member.id, why.removeprefix(f"{member.id} "), "busy")

    def _pending(self, member: ProcessRecord) -> None:
        quiet = self._quiet.setdefault(member.id, _Quiet(time.monotonic()))
        for_s = quiet.due(time.monotonic())
        if for_s is not None:
            called = ", ".join(dict.fromkeys(quiet.calls))
            what = f"{called} has run" if called else "the model has been asked"
            self._add(member.id, f"  {what} for {for_s:.0f} s", "busy")

    def _report(self, process: str, what: str, tone: Tone = "mark", *, at: float | None = None) -> None:
        if quiet := self._quiet.get(process):
            quiet.has_news(time.monotonic())
        self._add(process, what, tone, at=at)

    def _add(self, process: str, what: str, tone: Tone, *, at: float | None = None) -> None:
        self._found.append(Happening(self._passed(at), process, what, tone))

    def _now(self) -> float:
        """Return the Redis time, as this process knows it."""
        return time.monotonic() + (self._redis_ahead_s or 0.0)

    def _passed(self, at: float | None = None) -> float:
        """Return the seconds from the beginning of the tree to a time, by default to now."""
        return max(0.0, (self._now() if at is None else at) - self._tree_began) if self._tree_began else 0.0

    def _new_entries(self, process: str) -> None:
        while True:
            start = self._read.get(process, 0)
            window = self._store.run(journal.read_window(self._store.prefix, process, start, AT_ONCE))
            for entry in build_entries(window.records, start):
                self._report_entry(process, entry)
            self._read[process] = start + len(window.records)
            if self._read[process] >= window.length:
                return

    def _report_entry(self, process: str, entry: ConversationEntry) -> None:
        quiet = self._quiet.setdefault(process, _Quiet(time.monotonic()))
        line = narrate(entry)
        if line.is_sent:
            self.chars_shown += entry.chars
        match entry.kind:
            case "answer":
                quiet.calls = []
                self._tries.pop(process, None)
            case "call":
                quiet.calls.append(entry.tool)
            case "result" if quiet.calls:
                quiet.calls.pop(0)
        if line.news and not self._is_reported(process, entry):
            self._report(process, line.news, line.tone, at=self._time_of(process, entry))

    def _time_of(self, process: str, entry: ConversationEntry) -> float | None:
        """Return when a record was written; of one without a time in a process that has ended by now, when
        that began: such a record is its command."""
        known = self._known.get(process)
        if entry.at is None and known is not None and known.state in ENDED:
            return known.started_at
        return entry.at

    def _is_reported(self, process: str, entry: ConversationEntry) -> bool:
        """Return whether a failed try or a takeover was seen in the record of the process already."""
        match entry.kind:
            case "retry":
                return entry.number in self._tries.get(process, ())
            case "attempt":
                return entry.number <= self._attempts[process]
        return False

    def _new_fds(self, member: ProcessRecord) -> None:
        process = member.id
        known = self._fds.setdefault(process, set())
        try:
            handle = self._store.run(open_child(self._store.prefix, process))
        except NotFound:
            return
        for each in self._store.run(list_fds(handle)):
            if each.fd not in known:
                known.add(each.fd)
                own = each.producer == process
                how = each.source if own else f"by reference, created by {each.producer}"
                size = f"{format_size(each.bytes)}, {format_count(each.pages, 'page')}"
                self._report(
                    process,
                    f"  holds {each.fd}: {size} ({how})",
                    at=max(each.created_at, member.started_at or 0.0),
                )
