"""Read the conversation of a process from its journal, and from those of the processes it is a copy of.

    triage      brief  start  assistant(fork)  result ...
                |<------ records ------>|
    triage.2    fork: of triage, records, call, prompt
                then a synthetic result for each open call of that turn; then its own records

The journal of a copy refers to the other's records instead of repeating them: journals are append-only, so
the first records never change. For a copy of a copy the chain is followed.
"""

from __future__ import annotations

import msgspec

from fdstore.agents.loop.conversation import (
    Assistant,
    Conversation,
    Entry,
    Result,
    Start,
    UnknownEntry,
    decode_entry,
)
from fdstore.elements.render import fd_inline
from fdstore.errors import DamagedRecord, NewerFormat
from fdstore.store.keys import ProcessKeys, member_of
from fdstore.store.processes import journal
from fdstore.store.record_format import decoding, show_bytes
from fdstore.tools.process_task import ForkTask, SpawnTask, Task
from fdstore.wire.operation import Operation

NOT_RUN_IN_FORK = "This call belongs to the process that you are a copy of; it is not run in this copy."


class History(msgspec.Struct, frozen=True):
    """The task of a process, the records it inherited, and those of its own journal."""

    task: Task
    inherited: list[Entry]
    own: list[Entry]

    def conversation(self) -> Conversation:
        return Conversation([*self.inherited, *self.own], inherited=len(self.inherited))

    @property
    def start(self) -> Start | None:
        """The first prompt, if there is one yet."""
        return next((entry for entry in (*self.inherited, *self.own) if isinstance(entry, Start)), None)

    @property
    def unknown(self) -> str:
        """The kinds of records that are skipped, as text for a log line; "" if none."""
        kinds = {entry.kind for entry in (*self.inherited, *self.own) if isinstance(entry, UnknownEntry)}
        return ", ".join(sorted(map(show_bytes, kinds)))

    @property
    def last_answer(self) -> Assistant | None:
        """The last answer in the process's own journal."""
        return next((entry for entry in reversed(self.own) if isinstance(entry, Assistant)), None)


def read_history(keys: ProcessKeys, records: list[bytes]) -> Operation[History]:
    """Return the history of the process with this journal, in one round trip per process in its chain of
    forks. Raises `DamagedRecord`, and `NewerFormat` if its first record is of an unknown kind."""
    own = _entries(keys.process, records)
    if not (own and isinstance(own[0], ForkTask)):
        task = own[0] if own and isinstance(own[0], SpawnTask) else SpawnTask(query="")
        return History(task, [], own)
    inherited = yield from _inherited(keys, own[0], frozenset({keys.process}))
    return History(own[0], inherited, own)


def _entries(process: str, records: list[bytes]) -> list[Entry]:
    with decoding(f"the journal of process {process}"):
        entries = [decode_entry(record) for record in records]
    if entries and isinstance(entries[0], UnknownEntry):
        raise NewerFormat(f"process {process}", f"its first record is a {show_bytes(entries[0].kind)}")
    return entries


def _inherited(keys: ProcessKeys, task: ForkTask, seen: frozenset[str]) -> Operation[list[Entry]]:
    """Return the records that a copy inherits, with results for the calls that were open at the fork,
    following the chain of forks; `seen` detects a cycle."""
    other = member_of(keys.tree, task.of.encode())
    if other is None or other.process in seen:
        raise DamagedRecord(f"the journal of process {keys.process}", "it is a copy of itself, or of nothing")
    records = yield from journal.read(keys.tree.prefix, other.process, max(task.records, 0))
    entries = _entries(other.process, records)
    if not entries:
        raise DamagedRecord(f"the journal of process {other.process}", "it is missing; a copy needs it")
    first = entries[0]
    if isinstance(first, ForkTask):
        entries = (yield from _inherited(other, first, seen | {other.process})) + entries
    with decoding(f"the journal of process {keys.process}"):
        return entries + _results_at_fork(task, entries)


def _results_at_fork(task: ForkTask, entries: list[Entry]) -> list[Entry]:
    """Return a result for each call that was open at the fork: for the fork call itself, the copy's task."""
    return [
        Result(
            call=call.id,
            content=fork_task_text(task) if task.call in (call.key, call.id) else NOT_RUN_IN_FORK,
        )
        for call in Conversation(entries).open_calls()
    ]


def fork_task_text(task: ForkTask) -> str:
    """Return the text that gives a copy its task.

    >>> task = ForkTask(of="triage", records=3, call="c", prompt="Look at page 2.", copy=2, copies=3)
    >>> fork_task_text(task).partition(".")[0], fork_task_text(task).rpartition("\\n")[2]
    ('You are copy 2 of 3', 'Look at page 2.')
    """
    alone = "" if task.may_spawn else " Copies have no fork and no spawn."
    return (
        f"You are copy {task.copy} of {task.copies}. You have the conversation and the stored texts of "
        f"the process that made this call, as they were then; it waits for your last message.{alone} "
        f"Your task:\n\n{fd_inline(task.prompt)}"
    )
