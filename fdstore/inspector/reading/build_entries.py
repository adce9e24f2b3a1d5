"""Build the entries of a conversation from records of its journal. Pure: no I/O.

Any part of a journal can be built alone: the facts in its records name the turns, calls and tools.
In records without such facts, results after the first record of a part may lack the name of their tool.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from fdstore.agents.loop.conversation import (
    Assistant,
    Called,
    Cleared,
    Entry,
    Note,
    Result,
    Start,
    Undeferred,
    UnknownEntry,
    decode_entry,
)
from fdstore.agents.loop.record_facts import RecordFacts, read_facts
from fdstore.inspector.reading.cutting import cut_facts, cut_text, cut_value, text_of_blocks
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.records import TOKEN_COUNTS, ProcessRecord, TokenUsage
from fdstore.store.processes.losses import HOW_LOST, Loss
from fdstore.tools.process_task import ForkTask, PipeTask, SpawnTask

MAX_TEXT_CHARS = 2000
MAX_FDS = 8
ROUNDING_S = 0.01

LOSS_PART = 1_000_000
"""Losses are numbered from here on, as parts of the record that followed."""

MEASURED = ("result", "cleared", "system", "prompt")
"""The kinds of entries whose tokens can be counted."""

_TURN = re.compile(r"turn[0-9]+:")

BEFORE_TEXT = {
    "loss": "its worker was lost",
    "wait": "what it waited for has ended",
    "return": "its worker returned it",
}


def build_entries(
    records: Sequence[bytes], first: int = 0, *, max_chars: int = MAX_TEXT_CHARS, begun: float | None = None
) -> list[ConversationEntry]:
    """Return the entries of these journal records, of which the first has the position `first`. Texts are
    cut to `max_chars`; `begun` is the time of the process's task, whose record has none.

    >>> [(e.kind, e.text) for e in build_entries([b'{"kind":"note","text":"ref:plan was not stored."}'])]
    [('note', 'ref:plan was not stored.')]
    """
    return _mark_cleared(EntryBuilder(max_chars, begun).add(records, first))


def with_losses(entries: Sequence[ConversationEntry], losses: Sequence[Loss]) -> list[ConversationEntry]:
    """Return these entries, and each of these losses before the first record that followed it."""
    lost = [
        ConversationEntry(
            position=each.records,
            part=LOSS_PART + each.number,
            kind="loss",
            at=each.at,
            text=HOW_LOST[each.how],
            chars=len(HOW_LOST[each.how]),
            number=each.attempt,
            worker=each.worker,
            losses=each.number,
        )
        for each in losses
    ]
    return sorted([*lost, *entries], key=lambda entry: entry.position)


def end_entry(process: ProcessRecord, position: int, max_chars: int = MAX_TEXT_CHARS) -> ConversationEntry:
    """Return the entry of the end of a process; `position` is the length of its journal."""
    text, chars = cut_text(process.reason or "", max_chars)
    return ConversationEntry(
        position=position,
        kind="end",
        at=process.ended_at,
        text=text,
        chars=chars,
        state=process.state,
        exit_code=process.exit_code,
    )


class EntryBuilder:
    """A builder of the entries of a journal that is read part by part. From record to record it keeps the
    calls of the last answer that have no result (`open_calls`), and the time of the last record (`last_at`).
    `measure` counts the tokens of results and of the lines that replace them."""

    def __init__(
        self, max_chars: int, begun: float | None, measure: Callable[[str], int] | None = None
    ) -> None:
        self._max_chars = max_chars
        self._begun = begun
        self._measure = measure
        self.open_calls: list[ConversationEntry] = []
        self.last_at = begun

    def add(self, records: Sequence[bytes], first: int) -> list[ConversationEntry]:
        """Return the entries of the next records, of which the first has the position `first`."""
        return [
            msgspec.structs.replace(entry, position=position, part=part)
            for position, record in enumerate(records, first)
            for part, entry in enumerate(self._entries_of(record))
        ]

    def _entries_of(self, record: bytes) -> Iterator[ConversationEntry]:
        """Yield the entries of the next record; `add` numbers them."""
        try:
            entry = decode_entry(record)
        except (ValueError, RecursionError) as error:
            yield self._entry("unreadable", str(error) or type(error).__name__)
            return
        facts = read_facts(record)
        at = None if facts.at_ms is None else facts.at_ms / 1000
        yield from self._before(facts, at)
        yield from self._of(entry, facts, at)
        self.last_at = at if at is not None else self.last_at

    def _before(self, facts: RecordFacts, at: float | None) -> Iterator[ConversationEntry]:
        """Yield what happened before the record was written."""
        took = (facts.took_ms or 0) / 1000
        if (new := facts.attempt) is not None:
            yield self._entry(
                "attempt",
                BEFORE_TEXT.get(new.before, ""),
                at=self._in_order(None if new.at_ms is None else new.at_ms / 1000),
                number=new.number,
                worker=new.worker,
                losses=new.losses,
                before=new.before,
            )
        if facts.outage_ms is not None:
            began = None if at is None else at - took - facts.outage_ms / 1000
            yield self._entry(
                "outage", "Redis did not answer", at=self._in_order(began), duration_s=facts.outage_ms / 1000
            )
        for each in facts.retries:
            yield self._entry(
                "retry",
                each.reason,
                at=self._in_order(None if at is None else at - took + each.after_ms / 1000),
                number=each.number,
                duration_s=each.pause_ms / 1000,
            )

    def _in_order(self, at: float | None) -> float | None:
        """Return a computed time, unless rounding made it earlier than the record before."""
        before = self.last_at
        return before if at is not None and before is not None and 0 < before - at < ROUNDING_S else at

    def _of(self, entry: Entry, facts: RecordFacts, at: float | None) -> Iterator[ConversationEntry]:
        match entry:
            case SpawnTask(query=query):
                yield self._entry("task", text_of_blocks(query), at=self._begun)
            case ForkTask(prompt=prompt, of=of):
                yield self._entry("task", prompt, at=self._begun, process=of)
            case PipeTask(commands=commands):
                yield self._entry("commands", " | ".join(map(shlex.join, commands)), at=self._begun)
            case Start(system=system, content=content, input=given, preloads=preloads, context_window=window):
                if system:
                    yield self._entry("system", system, at=at, facts=cut_facts(preloads, self._max_chars))
                prompt = text_of_blocks(content)
                facts_of_input = cut_facts(given, self._max_chars)
                yield self._entry("prompt", prompt, at=at, facts=facts_of_input, context_window=window)
            case Assistant():
                yield from self._answer(entry, facts, at)
            case Called(call=call, tool=tool, arguments=arguments):
                yield self._call(call, tool, arguments, at)
            case Result():
                yield self._result(entry, facts, at)
            case Note(text=text):
                yield self._entry("note", text, at=at)
            case Cleared(lines=lines):
                yield self._entry("cleared", "\n".join(lines.values()), at=at, calls=tuple(lines))
            case Undeferred(reason=reason):
                yield self._entry("undeferred", reason, at=at)
            case UnknownEntry(kind=kind):
                yield self._entry("unknown", kind, at=at)

    def _answer(self, answer: Assistant, facts: RecordFacts, at: float | None) -> Iterator[ConversationEntry]:
        for block in answer.content:
            if block.get("type") == "thinking" and (shown := block.get("thinking")):
                yield self._entry("thinking", str(shown), at=at)
        yield self._entry(
            "answer",
            answer.text,
            at=at,
            duration_s=None if facts.took_ms is None else facts.took_ms / 1000,
            number=facts.turn,
            usage=TokenUsage(**{name: getattr(answer, name) for name in TOKEN_COUNTS}),
            is_estimated=answer.is_estimated,
            stop_reason=answer.stop_reason,
        )
        self.open_calls = []
        times: dict[str, int] = {}
        for block in answer.content:
            kind = block.get("type")
            if kind == "tool_use":
                id_ = str(block["id"])
                times[id_] = times.get(id_, 0) + 1
                key = f"turn{facts.turn}:{id_}" if facts.turn else id_
                key += f"#{times[id_]}" if times[id_] > 1 else ""
                yield self._call(key, str(block["name"]), block["input"], at)
            elif kind not in ("text", "thinking"):
                yield self._entry("block", str(kind), at=at)

    def _call(self, key: str, tool: str, arguments: Any, at: float | None) -> ConversationEntry:
        called = self._entry(
            "call",
            "",
            at=at,
            tool=tool[:200],
            arguments=cut_value(arguments, self._max_chars),
            call=key,
        )
        self.open_calls.append(called)
        return called

    def _result(self, result: Result, facts: RecordFacts, at: float | None) -> ConversationEntry:
        call = next((each for each in self.open_calls if _answers(result, facts, each.call)), None)
        if call is not None:
            self.open_calls.remove(call)
        took = None if facts.took_ms is None else facts.took_ms / 1000
        if took is None and at is not None and call is not None and call.at is not None:
            took = max(0.0, at - call.at)  # it waited for other processes since its answer
        return self._entry(
            "result",
            text_of_blocks(result.content),
            at=at,
            duration_s=took,
            tool=facts.tool or (call.tool if call else ""),
            call=facts.key or (call.call if call else result.call),
            is_error=result.is_error,
            facts=cut_facts(result.facts, self._max_chars),
            fds=result.facts.fds[:MAX_FDS],
        )

    def _entry(self, kind: Any, text: str, **more: Any) -> ConversationEntry:
        shown, chars = cut_text(text, self._max_chars)
        tokens = self._measure(text) if self._measure and kind in MEASURED else 0
        return ConversationEntry(position=0, kind=kind, text=shown, chars=chars, tokens=tokens, **more)


def _answers(result: Result, facts: RecordFacts, call: str) -> bool:
    """Return whether the result is that of the call with this key."""
    if facts.key:
        return facts.key == call
    return _TURN.sub("", call, count=1).partition("#")[0] == result.call


def _mark_cleared(entries: list[ConversationEntry]) -> list[ConversationEntry]:
    cleared = {call for entry in entries for call in entry.calls}
    if not cleared:
        return entries
    return [
        msgspec.structs.replace(entry, cleared=True)
        if entry.kind == "result" and entry.call in cleared
        else entry
        for entry in entries
    ]
