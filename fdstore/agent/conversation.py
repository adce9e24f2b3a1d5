"""The conversation of an agent, as its journal holds it, and as the Messages API wants it.

    brief       what the process was told when it was born (or `fork`: whose copy it is, see `past`;
                or `pipe`: its commands, and then nothing follows)
    start       the system prompt and the user's message as they were shown
    assistant   one answer of the model, block by block
    result      what one tool call came to
    note        a message to the model, sent with the results of a turn
    ...         any other kind is a newer fdstore's, and is passed over

The journal is append-only and is the truth: a new attempt builds the conversation from it and goes
on where the last record leaves off. Pure: records in, messages out.

What belongs to an answer is what stands between it and the next one: the ids of calls need not be unique
beyond one answer, and some providers number them from the start in each.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Any

import msgspec

from fdstore.tools.task import ForkTask, PipeTask, SpawnTask

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
    where others read the agent's text as a stream, how many characters that has with it. `malformed` says
    what is wrong with the arguments of calls that are not JSON, by the calls' ids."""

    content: list[dict[str, Any]]
    stop_reason: str | None
    input_tokens: int = 0
    output_tokens: int = 0
    said: int = 0
    malformed: dict[str, str] = {}

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
    def is_paused(self) -> bool:
        """Whether the next answer goes on with it, in the same message."""
        return self.stop_reason == "pause_turn"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Its tool calls, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="kind"):
    """What the tool call with this id came to, as the model is shown it."""

    call: str
    content: str
    is_error: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True, tag="note", tag_field="kind"):
    """What the model is told after the results of its calls."""

    text: str


class ToolCall(msgspec.Struct, frozen=True):
    """One call of the model. `key` identifies it in its conversation, `id` in its answer, `sent_id` in the
    messages that are sent back; `malformed` says what is wrong with arguments that are not JSON."""

    key: str
    id: str
    name: str
    input: Any
    malformed: str = ""
    sent_id: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """A record of a kind that a newer fdstore writes. It is passed over: whatever older ones must not pass
    over makes the format of the tree a newer one (see `store.decoding.FORMAT`)."""

    kind: str


_Known = SpawnTask | ForkTask | PipeTask | Start | Assistant | Result | Note
Entry = _Known | Unknown
_decoder = msgspec.json.Decoder(_Known)
_unknown = msgspec.json.Decoder(Unknown)
KINDS = frozenset({"brief", "fork", "pipe", "start", "assistant", "result", "note"})


def decode_entry(record: bytes) -> Entry:
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


def encode_entry(entry: Entry) -> str:
    """A journal record, as JSON."""
    return msgspec.json.encode(entry).decode("utf-8")


class _Round:
    """One answer, the results of its calls, and the notes that follow them. `taken` are the ids of earlier
    calls, to which it adds its own: the API wants them unique, also of a provider that repeats them."""

    def __init__(self, number: int, answer: Assistant, taken: set[str]) -> None:
        self.answer = answer
        self.calls: list[ToolCall] = []
        self.results: list[Result] = []
        self.notes: list[Note] = []
        times = Counter[str]()
        for block in answer.calls:
            id_ = block["id"]
            times[id_] += 1
            key = f"turn{number}:{id_}" + (f"#{times[id_]}" if times[id_] > 1 else "")
            sent_id, more = id_, 1
            while sent_id in taken:
                more += 1
                sent_id = f"{id_}_{more}"
            taken.add(sent_id)
            malformed = answer.malformed.get(id_, "")
            self.calls.append(ToolCall(key, id_, block["name"], block["input"], malformed, sent_id))

    def answered(self) -> list[tuple[ToolCall, Result | None]]:
        """The calls, each with its result if there is one yet."""
        results: defaultdict[str, deque[Result]] = defaultdict(deque)
        for result in self.results:
            results[result.call].append(result)
        return [(call, results[call.id].popleft() if results[call.id] else None) for call in self.calls]

    def content(self) -> list[dict[str, Any]]:
        """The blocks of the answer as they are sent back."""
        ids = iter(self.calls)
        blocks = (
            {**block, "id": next(ids).sent_id} if block.get("type") == "tool_use" else block
            for block in self.answer.content
        )
        # a blank text is something that models say and the API refuses to be told
        return [block for block in blocks if not _is_blank(block)]


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
    def answer(self) -> list[Assistant]:
        """The last answer that this process asked for: the turns that were paused, and the one that goes on
        with them. Empty before the first."""
        turns = self.own_turns
        first = len(turns) - 1
        while first > 0 and turns[first - 1].is_paused:
            first -= 1
        return turns[max(first, 0) :]

    @property
    def text(self) -> str:
        """The text of the last answer, all of it."""
        return "".join(turn.text for turn in self.answer)

    @property
    def tokens(self) -> int:
        """What its own answers cost, in tokens."""
        return sum(turn.tokens for turn in self.own_turns)

    def open_calls(self) -> list[ToolCall]:
        """The tool calls of the last answer that have no result yet, in order."""
        rounds = self._rounds()
        if not rounds or rounds[-1].answer.stop_reason != "tool_use":
            return []
        return [call for call, result in rounds[-1].answered() if result is None]

    def _rounds(self) -> list[_Round]:
        rounds: list[_Round] = []
        taken: set[str] = set()
        for entry in self.entries:
            match entry:
                case Assistant():
                    rounds.append(_Round(len(rounds) + 1, entry, taken))
                case Result() if rounds:
                    rounds[-1].results.append(entry)
                case Note() if rounds:
                    rounds[-1].notes.append(entry)
        return rounds

    def messages(self) -> list[dict[str, Any]]:
        """The messages for the next request. The last call's results must all be there."""
        start = self.start
        made: list[dict[str, Any]] = [{"role": "user", "content": start.content}] if start else []
        notes: list[dict[str, Any]] = []
        for round_ in self._rounds():
            content = round_.content()
            if made and made[-1]["role"] == "assistant":
                # the turn before was paused and sent back as it was; this one goes on from there
                made[-1] = {"role": "assistant", "content": made[-1]["content"] + content}
            elif content:
                made.append({"role": "assistant", "content": content})
            notes += [{"type": "text", "text": note.text} for note in round_.notes]
            results = [_block(call, result) for call, result in round_.answered() if result is not None]
            if results:
                # a note on a turn without calls, as one that was paused, waits for the next results
                made.append({"role": "user", "content": results + notes})
                notes = []
        return made


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not block["text"].strip()


def _block(call: ToolCall, result: Result) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.sent_id, "content": result.content}
    return {**block, "is_error": True} if result.is_error else block
