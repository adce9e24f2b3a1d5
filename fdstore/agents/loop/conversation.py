"""The conversation of an agent: journal records in, messages for the Messages API out.

    brief       the task of the process (or `fork`: which process it copies, see `history`;
                or `pipe`: its commands, and no further records)
    start       the system prompt and the first user message, as sent
    assistant   one answer of the model, block by block
    result      the result of one tool call
    note        a message to the model, sent with the results of a turn
    cleared     old results that are sent as one line from then on, see `tools.clearing`
    offered     from then on the tools on descriptors are offered, see `offering`
    undeferred  from then on no tool is deferred: the model's server refuses it
    called      a call that no answer of an agent's model made: by a program of a host, see the gateway
    ...         any other kind belongs to a newer fdstore and is skipped

The journal is append-only and authoritative: a new attempt rebuilds the conversation from it and continues
after the last record. Pure: no I/O.

Results and notes belong to the answer that they follow: call ids need not be unique beyond one answer, and
some providers number the calls of each answer from the start.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from fdstore.elements.facts import NO_FACTS, ResultFacts
from fdstore.model.providers import DEFAULT_PROVIDER
from fdstore.model.records import Ordinal, TokenUsage
from fdstore.results.coverage import ReadParts, coverage
from fdstore.results.wrapping import NO_OUTPUT, NO_TEXT, is_blank
from fdstore.tools.clearing import ShownResult
from fdstore.tools.process_task import ForkTask, PipeTask, SpawnTask
from fdstore.tools.turn_calls import following

_BLOCKS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": object},
}
"""Required fields of the blocks of an answer, by block type."""

HeldBack = bool | Literal["deferred"]
"""How tools on descriptors are held back: not (False), by leaving them out of requests (True), or as deferred
definitions, which stand in each request and which models do not see before a result has loaded them."""


class Start(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="start", tag_field="kind"):
    """The first prompt. `held_back`: how the tools on descriptors are held back until an `Offered`. `input`
    has the facts of `content`, `preloads` those of the preloaded texts in `system`. `provider`: the one that
    the whole conversation is held with; `context_window`: the tokens that its model takes, if they are
    known."""

    system: str
    content: str | list[Any]
    held_back: HeldBack = False
    input: ResultFacts = NO_FACTS
    preloads: ResultFacts = NO_FACTS
    provider: str = DEFAULT_PROVIDER
    context_window: Ordinal | None = None


class Assistant(TokenUsage, frozen=True, kw_only=True, tag="assistant", tag_field="kind"):
    """One answer of the model: its content blocks as JSON, its stop reason and its tokens. `said` is the
    length of the answer stream after it, in characters (0 without a stream); `malformed` maps calls
    whose arguments are not JSON, as `name_calls` names them, to the problem; `is_estimated` says that the
    model's server counted no tokens. What a provider wants back as it came is in its blocks, see
    `models.message_blocks`."""

    content: list[dict[str, Any]]
    stop_reason: str | None
    said: int = 0
    malformed: dict[str, str] = msgspec.field(default_factory=dict)
    is_estimated: bool = False

    def check(self) -> None:
        """Check that its blocks have the fields which the loop relies on. Raises `ValueError`."""
        for block in self.content:
            kind = block.get("type")
            required = _BLOCKS.get(kind, {}) if isinstance(kind, str) else {}
            if not all(name in block and isinstance(block[name], type_) for name, type_ in required.items()):
                raise ValueError("a block of an answer lacks a required field")

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return "".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def is_last(self) -> bool:
        """Return whether the conversation ends with it. Every stop reason other than `tool_use` and
        `pause_turn` is final, unknown ones included."""
        match self.stop_reason:
            case "tool_use":
                return not self.calls
            case "pause_turn":
                return False
        return True

    @property
    def is_paused(self) -> bool:
        """Return whether the next answer continues it in the same message."""
        return self.stop_reason == "pause_turn"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Its tool calls, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="result", tag_field="kind"):
    """The result of the tool call with this id, as sent to the model: a text, or content blocks. Its facts
    are not sent."""

    call: str
    content: str | list[dict[str, Any]]
    is_error: bool = False
    facts: ResultFacts = NO_FACTS


class Note(msgspec.Struct, frozen=True, kw_only=True, tag="note", tag_field="kind"):
    """A message sent to the model after the results of its calls."""

    text: str


class Cleared(msgspec.Struct, frozen=True, kw_only=True, tag="cleared", tag_field="kind"):
    """The line that is sent in place of each of these results, by the key of its call."""

    lines: dict[str, str]


class Offered(Note, frozen=True, kw_only=True, omit_defaults=True, tag="offered", tag_field="kind"):
    """A note that explains the tools on descriptors, which are offered from then on. Deferred ones are loaded
    by the result of the call with the key `loaded_by`, which names them."""

    loaded_by: str = ""
    tools: tuple[str, ...] = ()


class Undeferred(msgspec.Struct, frozen=True, kw_only=True, tag="undeferred", tag_field="kind"):
    """The model's server refuses deferred tools: those that are offered stay so, the others are left out."""

    reason: str


class Called(msgspec.Struct, frozen=True, kw_only=True, tag="called", tag_field="kind"):
    """A tool call in a process that runs no agent. Its `Result` follows."""

    call: str
    tool: str
    arguments: Any


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call. `key` identifies it in its conversation, `id` in its answer, `sent_id` in the messages
    sent to the API; `malformed` says what is wrong with arguments that are not JSON."""

    key: str
    id: str
    name: str
    input: Any
    malformed: str = ""
    sent_id: str = ""


class UnknownEntry(msgspec.Struct, frozen=True):
    """A record of a kind that a newer fdstore writes. It is skipped: a kind that older versions must not skip
    raises the format version of the tree (see `store.record_format.FORMAT`)."""

    kind: str


_Known = (
    SpawnTask
    | ForkTask
    | PipeTask
    | Start
    | Assistant
    | Result
    | Note
    | Cleared
    | Offered
    | Undeferred
    | Called
)
Entry = _Known | UnknownEntry
_decoder = msgspec.json.Decoder(_Known)
_unknown = msgspec.json.Decoder(UnknownEntry)
KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(_Known))


def decode_entry(record: bytes) -> Entry:
    """Decode a journal record. Unknown fields are ignored. Raises `ValueError` for anything that is not a
    record, `RecursionError` for excessive nesting."""
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
    """Encode a journal record as JSON."""
    return msgspec.json.encode(entry).decode("utf-8")


def name_calls(calls: list[dict[str, Any]]) -> list[str]:
    """Return a name for each call of an answer: its id, with a number where an earlier call has the same.

    >>> name_calls([{"id": "a"}, {"id": "b"}, {"id": "a"}])
    ['a', 'b', 'a#2']
    """
    names: list[str] = []
    taken = {call["id"] for call in calls}
    times = Counter[str]()
    for call in calls:
        id_ = call["id"]
        times[id_] += 1
        while times[id_] > 1 and f"{id_}#{times[id_]}" in taken:
            times[id_] += 1  # a call of another id has this name
        name = id_ if times[id_] == 1 else f"{id_}#{times[id_]}"
        taken.add(name)
        names.append(name)
    return names


class Turn:
    """One answer, its calls with their results, and the notes after them. `taken` holds the ids sent for
    earlier calls; the constructor adds its own. The API requires unique ids, and some providers repeat
    them."""

    def __init__(self, number: int, answer: Assistant, taken: set[str]) -> None:
        self.answer = answer
        self.calls: list[ToolCall] = []
        self.results: dict[str, Result] = {}
        """The results by the keys of their calls."""
        self.notes: list[Note] = []
        self._unanswered: defaultdict[str, deque[str]] = defaultdict(deque)
        for block, name in zip(answer.calls, name_calls(answer.calls), strict=True):
            id_, key = block["id"], f"turn{number}:{name}"
            sent_id, more = id_, 1
            while sent_id in taken:
                more += 1
                sent_id = f"{id_}_{more}"
            taken.add(sent_id)
            malformed = answer.malformed.get(name, "")
            self.calls.append(ToolCall(key, id_, block["name"], block["input"], malformed, sent_id))
            self._unanswered[id_].append(key)

    def add_result(self, result: Result) -> None:
        """Add the result of the first call with its id that has none."""
        if keys := self._unanswered[result.call]:
            self.results[keys.popleft()] = result

    def content(self) -> list[dict[str, Any]]:
        """Return the blocks of the answer as they are sent to the API."""
        ids = iter(self.calls)
        blocks = (
            {**block, "id": next(ids).sent_id} if block.get("type") == "tool_use" else block
            for block in self.answer.content
        )
        # models write blank text blocks, and the API refuses them
        return [block for block in blocks if not _is_blank(block)]


class Conversation:
    """The records so far, and what follows from them for the next step. The first `inherited` records of a
    fork come from another process: they are sent to the model, but do not count as own turns and tokens.

    start            the first prompt, None before it
    turns            the model's answers, with the results of their calls
    own_turns        those that this process itself requested
    system           the system prompt, with what explains tools that were offered before the first answer
    held_back        how the tools on descriptors are held back by now; those that are deferred stay so
    is_offered       whether the model has these tools
    is_undeferred    whether its server has refused deferred ones
    is_just_cleared  whether results were cleared after the last answer
    """

    def __init__(self, entries: Iterable[Entry] = (), inherited: int = 0) -> None:
        self.entries: list[Entry] = []
        self.start: Start | None = None
        self.turns: list[Turn] = []
        self.own_turns: list[Turn] = []
        self.system = ""
        self.held_back: HeldBack = False
        self.is_offered = True
        self.is_undeferred = False
        self.is_just_cleared = False
        self._inherited = inherited
        self._sent_ids: set[str] = set()
        self._cleared_lines: dict[str, str] = {}
        self._loaded_by: dict[str, list[dict[str, Any]]] = {}
        """The references to tools by the key of the result that loads them."""
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add the next record."""
        match entry:
            case Start() if self.start is None:
                self.start, self.system = entry, entry.system
                self.held_back, self.is_offered = entry.held_back, not entry.held_back
            case Assistant():
                turn = Turn(len(self.turns) + 1, entry, self._sent_ids)
                self.turns.append(turn)
                if len(self.entries) >= self._inherited:
                    self.own_turns.append(turn)
                self.is_just_cleared = False
            case Result() if self.turns:
                self.turns[-1].add_result(entry)
            case Note() if self.turns:
                self.turns[-1].notes.append(entry)
            case Offered():
                self.system = "\n\n".join(filter(None, [self.system, entry.text]))
            case Undeferred():
                self.is_undeferred, self.held_back = True, not self.is_offered
                self._loaded_by = {}
            case Cleared():
                self._cleared_lines |= entry.lines
                self.is_just_cleared = True
        if isinstance(entry, Offered):
            self.is_offered = True
            if entry.loaded_by:
                references = [{"type": "tool_reference", "tool_name": name} for name in entry.tools]
                self._loaded_by[entry.loaded_by] = references
            else:
                self.held_back = False
        self.entries.append(entry)

    @property
    def answer(self) -> list[Assistant]:
        """The last answer that this process requested: its paused turns and the one that continues them.
        Empty before the first."""
        turns = self.own_turns
        first = len(turns) - 1
        while first > 0 and turns[first - 1].answer.is_paused:
            first -= 1
        return [turn.answer for turn in turns[max(first, 0) :]]

    @property
    def text(self) -> str:
        """The whole text of the last answer, paused turns included."""
        return "".join(turn.text for turn in self.answer)

    @property
    def tokens(self) -> int:
        """The tokens of its own answers."""
        return sum(turn.answer.tokens for turn in self.own_turns)

    def open_calls(self) -> list[ToolCall]:
        """Return the tool calls of the last answer that have no result yet, in order."""
        if not self.turns or self.turns[-1].answer.stop_reason != "tool_use":
            return []
        last = self.turns[-1]
        return [call for call in last.calls if call.key not in last.results]

    def results(self) -> list[ShownResult]:
        """Return all results, in order, with those that were cleared since."""
        return [
            ShownResult(call.key, number, call.name, result.content, result.is_error, result.facts)
            for number, turn in enumerate(self.turns, 1)
            for call in turn.calls
            if (result := turn.results.get(call.key)) is not None
        ]

    def shown_results(self) -> list[ShownResult]:
        """Return the results that are sent as they were, in order."""
        return [each for each in self.results() if each.key not in self._cleared_lines]

    def read_parts(self) -> dict[str, ReadParts]:
        """Return what was read of each descriptor, see `results.coverage`. Preloaded texts that the first
        prompt shows whole are read too."""
        preloads = [] if self.start is None else [self.start.preloads]
        return coverage([*preloads, *(result.facts for result in self.results())])

    @property
    def first_result(self) -> str | None:
        """The descriptor of the first `fd_result` that it shows; None if there is none."""
        given = [] if self.start is None else [self.start.input, self.start.preloads]
        facts = (*given, *(result.facts for result in self.results()))
        return next((each.fd for found in facts for each in found.stored), None)

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages for the next request. Every call must have its result."""
        messages: list[dict[str, Any]] = []
        if self.start:
            messages.append({"role": "user", "content": _sent(self.start.content, NO_TEXT) or NO_TEXT})
        notes: list[dict[str, Any]] = []
        for turn in self.turns:
            content = turn.content()
            if messages and messages[-1]["role"] == "assistant":
                # the previous turn was paused and resent unchanged; this one continues it
                messages[-1] = {"role": "assistant", "content": messages[-1]["content"] + content}
            elif content:
                messages.append({"role": "assistant", "content": content})
            notes += [{"type": "text", "text": note.text} for note in turn.notes if not is_blank(note.text)]
            results, after = self._sent_results(turn)
            if results:
                # a note on a turn without calls, such as a paused one, waits for the next results
                messages.append({"role": "user", "content": results + after + notes})
                notes = []
        return messages

    def _sent_results(self, turn: Turn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the results of a turn, and the blocks that follow them: the content of the one that loads
        tools, since the API takes nothing beside references to tools."""
        results: list[dict[str, Any]] = []
        after: list[dict[str, Any]] = []
        for number, call in enumerate(turn.calls, 1):
            if (result := turn.results.get(call.key)) is None:
                continue
            content = _sent(self._cleared_lines.get(call.key, result.content), NO_OUTPUT)
            references = self._loaded_by.get(call.key)
            results.append(_block(call, result, references or content))
            if references:
                is_clear = number == len(turn.calls) and isinstance(content, str)
                after = following(_blocks(content), number, call.name, is_clear=is_clear)
        return results, after


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and is_blank(block["text"])


def _sent(content: str | list[dict[str, Any]], instead: str) -> str | list[dict[str, Any]]:
    """Return the content of a message or result without blank texts, which the API refuses; `instead` if
    nothing is left."""
    if isinstance(content, str):
        return content
    return [block for block in content if not _is_blank(block)] or instead


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(call: ToolCall, result: Result, content: str | list[dict[str, Any]]) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.sent_id, "content": content}
    return {**block, "is_error": True} if result.is_error else block
