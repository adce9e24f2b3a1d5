"""The records of a program of a host in the journal of its process: `fdstore log` and the inspector show it.

called   run_python, with the code
called   a tool of a server, with its arguments
result   its size or its error, and how long it took
result   what the host's model sees
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Called, Entry, Result, encode_entry
from fdstore.agents.loop.record_facts import RecordFacts, add_facts
from fdstore.inspector.reading.cutting import cut_value
from fdstore.results.tool_outcome import ToolResult
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import journal
from fdstore.tools.functions.function_values import FunctionOutcome
from fdstore.wire.operation import Operation

MAX_ARGUMENT_CHARS = 2000
"""The characters of the arguments of one call that are kept: they may hold whole files."""

NOTES_AT_ONCE = 100


class ProgramJournal:
    """The records of one program. Those of calls are written in groups."""

    def __init__(self, handle: ProcessHandle, call_id: str) -> None:
        self._handle, self._call_id = handle, call_id
        self._notes: list[str] = []

    def begin(self, code: str) -> Operation[None]:
        """Note that the program begins."""
        called = Called(call=self._call_id, tool="run_python", arguments={"code": code})
        yield from journal.add(self._handle, [_record(called)])

    def note_call(
        self, call_id: str, tool: str, arguments: dict[str, Any], outcome: FunctionOutcome, took_s: float
    ) -> Operation[None]:
        """Note that a tool has answered."""
        shown = cut_value(arguments, MAX_ARGUMENT_CHARS)
        result = Result(call=call_id, content=_in_words(outcome), is_error=bool(outcome.error))
        self._notes += [
            _record(Called(call=call_id, tool=tool, arguments=shown)),
            _record(result, took_s, tool, call_id),
        ]
        if len(self._notes) >= NOTES_AT_ONCE:
            yield from self._write()

    def end(self, result: ToolResult, took_s: float) -> Operation[None]:
        """Note what the model sees."""
        content = result.content if isinstance(result.content, str) else ""
        ended = Result(call=self._call_id, content=content, is_error=result.is_error, facts=result.facts)
        self._notes.append(_record(ended, took_s, "run_python", self._call_id))
        yield from self._write()

    def _write(self) -> Operation[None]:
        notes, self._notes = self._notes, []
        yield from journal.add(self._handle, notes)


def _record(entry: Entry, took_s: float | None = None, tool: str = "", key: str = "") -> str:
    took_ms = None if took_s is None else max(0, round(took_s * 1000))
    return add_facts(encode_entry(entry), RecordFacts(took_ms=took_ms, tool=tool, key=key))


def _in_words(outcome: FunctionOutcome) -> str:
    """Return what a call gave, in words: the value itself is the program's."""
    if outcome.error:
        return outcome.error
    if outcome.fd:
        return f"a text, stored as {outcome.fd}"
    if isinstance(outcome.value, str):
        return f"a str of {len(outcome.value)} characters"
    size = len(msgspec.json.encode(outcome.value))
    return f"a {type(outcome.value).__name__} of {size} characters as JSON"
