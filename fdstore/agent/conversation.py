"""The conversation of an agent, as its journal holds it, and as the Messages API wants it.

    brief       what the process was told when it was born (or `fork`: whose copy it is, see `past`;
                or `pipe`: its commands, and then nothing follows)
    start       the system prompt and the user's message as they were shown
    assistant   one answer of the model, block by block
    result      what one tool call came to
    ...         any other kind is a newer fdstore's, and is passed over

The journal is append-only and is the truth: a new attempt builds the conversation from it and goes
on where the last record leaves off. Pure: records in, messages out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fdstore.tools.brief import Brief, ForkBrief, PipeBrief

_BLOCKS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": object},
}
"""What blocks of an answer must have."""


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start", tag_field="kind"):
    """What the model was shown first."""

    system: str
    content: str | list[Any]


class Assistant(msgspec.Struct, frozen=True, kw_only=True, tag="assistant", tag_field="kind"):
    """One answer of the model: its content blocks as JSON, why it stopped, what it cost in tokens, and,
    where others read the agent's text as a stream, how many characters that has with it."""

    content: list[dict[str, Any]]
    stop_reason: str | None
    input_tokens: int = 0
    output_tokens: int = 0
    said: int = 0

    def check(self) -> None:
        """Check what the loop takes for granted of its blocks. Raises `ValueError`."""
        for block in self.content:
            kind = block.get("type")
            wanted = _BLOCKS.get(kind, {}) if isinstance(kind, str) else {}
            if not all(name in block and isinstance(block[name], type_) for name, type_ in wanted.items()):
                raise ValueError("a block of an answer lacks what it must have")

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return "".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def tokens(self) -> int:
        """What it cost, in and out."""
        return self.input_tokens + self.output_tokens

    @property
    def is_last(self) -> bool:
        """Whether the conversation is over with it, for better or worse: any stop reason that does
        not say how to go on is an end, also one that nobody knows yet."""
        match self.stop_reason:
            case "tool_use":
                return not self.calls
            case "pause_turn":
                return False
        return True

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Its tool calls, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="kind"):
    """What the tool call with this id came to, as the model is shown it."""

    call: str
    content: str
    is_error: bool = False


class Unknown(msgspec.Struct, frozen=True):
    """A record of a kind that a newer fdstore writes. It is passed over: whatever older ones must not pass
    over makes the format of the tree a newer one (see `store.decoding.FORMAT`)."""

    kind: str


Entry = Brief | ForkBrief | PipeBrief | Start | Assistant | Result | Unknown
_Known = Brief | ForkBrief | PipeBrief | Start | Assistant | Result
_decoder = msgspec.json.Decoder(_Known)
_unknown = msgspec.json.Decoder(Unknown)
KINDS = frozenset({"brief", "fork", "pipe", "start", "assistant", "result"})


def decoded(record: bytes) -> Entry:
    """A journal record. Fields that are not known here are ignored. Raises `ValueError` for what is no
    record, `RecursionError` for what is nested too deep."""
    try:
        entry: Entry = _decoder.decode(record)
    except msgspec.ValidationError:
        other = _unknown.decode(record)
        if other.kind in KINDS:
            raise
        return other
    if isinstance(entry, Assistant):
        entry.check()
    return entry


def encoded(entry: Entry) -> str:
    """A journal record, as JSON."""
    return msgspec.json.encode(entry).decode("utf-8")


class Conversation:
    """The entries so far, and what they mean for the next step. Of a copy, the first `inherited` are
    another process's: they are what it knows, and do not count as its own turns and tokens."""

    def __init__(self, entries: Iterable[Entry] = (), inherited: int = 0) -> None:
        self.entries: list[Entry] = list(entries)
        self._inherited = inherited

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)

    @property
    def start(self) -> Start | None:
        return next((entry for entry in self.entries if isinstance(entry, Start)), None)

    @property
    def turns(self) -> list[Assistant]:
        """The model's answers."""
        return [entry for entry in self.entries if isinstance(entry, Assistant)]

    @property
    def own_turns(self) -> list[Assistant]:
        """The answers that this process asked for."""
        return [entry for entry in self.entries[self._inherited :] if isinstance(entry, Assistant)]

    @property
    def tokens(self) -> int:
        """What its own answers cost, in tokens."""
        return sum(turn.tokens for turn in self.own_turns)

    def open_calls(self) -> list[dict[str, Any]]:
        """The tool calls of the last answer that have no result yet, in order."""
        if not self.turns or self.turns[-1].stop_reason != "tool_use":
            return []
        done = {entry.call for entry in self.entries if isinstance(entry, Result)}
        return [block for block in self.turns[-1].calls if block["id"] not in done]

    def messages(self) -> list[dict[str, Any]]:
        """The messages for the next request. The last call's results must all be there."""
        start = self.start
        made: list[dict[str, Any]] = [{"role": "user", "content": start.content}] if start else []
        results = {entry.call: entry for entry in self.entries if isinstance(entry, Result)}
        for turn in self.turns:
            # a blank text is something that models say and the API refuses to be told
            content = [block for block in turn.content if not _is_blank(block)]
            if made and made[-1]["role"] == "assistant":
                # the turn before was paused and sent back as it was; this one goes on from there
                made[-1] = {"role": "assistant", "content": made[-1]["content"] + content}
            elif content:
                made.append({"role": "assistant", "content": content})
            answered = [results[block["id"]] for block in turn.calls if block["id"] in results]
            if answered:
                made.append({"role": "user", "content": [_block(result) for result in answered]})
        return made


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not block["text"].strip()


def _block(result: Result) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call, "content": result.content}
    return {**block, "is_error": True} if result.is_error else block
