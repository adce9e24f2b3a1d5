"""The wait of a process, now. Pure: its record and its last entries in, a `ProcessWait` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.lifecycle import ENDED, PERSON
from fdstore.model.records import ProcessRecord, Record
from fdstore.results.people_config import ASK_PERSON


class ProcessWait(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The wait of a process. `kind`: a `worker` that claims it; other `processes`; a `person`, with other
    processes or not; a `tool`, of which the first in `tools` runs and the others follow; the `commands` of
    a pipeline; or the `model`. `since` is in seconds since the epoch by Redis; `trouble` is what blocks it,
    such as errors of the model. `is_overdue`: its lease has expired, so its worker may be lost."""

    kind: Literal["worker", "processes", "person", "tool", "commands", "model"]
    since: float | None = None
    tools: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    worker: str = ""
    trouble: str = ""
    is_overdue: bool = False

    @property
    def doing(self) -> str:
        """What the process does, for its head: `since` says for how long."""
        match self.kind:
            case "worker":
                return "waits for a worker"
            case "processes":
                return "waits for " + ("a process" if len(self.processes) == 1 else "other processes")
            case "person":
                return "waits for a person"
            case "tool" if self.tools[0] == ASK_PERSON:  # the agent is not parked: it runs in its caller
                said = "waits for a person"
            case "tool":
                said = f"runs {self.tools[0]}"
            case "commands":
                said = "runs its commands"
            case "model":
                said = "asks the model"
        return f"was lost with {self.worker or 'its worker'}; waits for another" if self.is_overdue else said

    def __str__(self) -> str:
        match self.kind:
            case "worker":
                said = "waits for a worker"
            case "processes":
                said = f"waits for {', '.join(self.processes)}; its slot is free"
            case "person":
                said = f"waits for {', '.join([*self.processes, 'a person'])}; its slot is free"
            case "tool":
                said = "waits for a person" if self.tools[0] == ASK_PERSON else f"{self.tools[0]} runs"
                if len(self.tools) > 1:
                    said += f"; then {', '.join(self.tools[1:])}"
            case "commands":
                said = "its commands run"
            case "model":
                said = "the model is asked"
        if self.is_overdue:
            said += f"; the lease of {self.worker or 'its worker'} has expired"
        return f"{said}; {self.trouble}" if self.trouble else said


def what_pends(
    process: ProcessRecord, open_calls: Sequence[ConversationEntry], last_at: float | None, now: float
) -> ProcessWait | None:
    """Return what a process waits for: None if it has ended, or if a client program runs it. `open_calls` are
    the calls of its last answer without results, `last_at` is the time of its last record."""
    if process.state in ENDED or process.state == "open":
        return None
    if process.state == "ready":
        return ProcessWait(kind="worker", since=last_at or process.started_at)
    if process.state == "waiting":
        others = tuple(each for each in process.waiting_for if each != PERSON)
        kind: Literal["person", "processes"] = "person" if PERSON in process.waiting_for else "processes"
        return ProcessWait(kind=kind, since=last_at, processes=others)
    lease = process.lease_until
    return ProcessWait(
        kind="commands" if process.kind == "pipeline" else "tool" if open_calls else "model",
        since=last_at or process.started_at,
        tools=tuple(each.tool for each in open_calls),
        worker=process.worker or "",
        trouble=process.trouble or "",
        is_overdue=lease is not None and lease < now,
    )


def mark_pending(
    entries: list[ConversationEntry], process: ProcessRecord
) -> tuple[list[ConversationEntry], list[ConversationEntry]]:
    """Mark the calls without results in the last entries of a conversation, unless the process has ended.
    Return all entries, and those calls."""
    if process.state in ENDED:
        return entries, []
    begin = max((n for n, entry in enumerate(entries) if entry.kind == "answer"), default=0)
    answered = {entry.call for entry in entries[begin:] if entry.kind == "result"}
    marked = [
        msgspec.structs.replace(entry, pending=True)
        if number > begin and entry.kind == "call" and entry.call not in answered
        else entry
        for number, entry in enumerate(entries)
    ]
    return marked, [entry for entry in marked if entry.pending]
