"""Asks: the questions of a process's programs to a model, their lanes and their answers, in Redis.

    fdstore:{triage}:triage:asks         hash   ask/CALL/7      a question about texts (JSON)
                                                answer/CALL/7   its answer, or why there is none (JSON)
                                                settings/ID     how it is asked (JSON)
                                                lanes/CALL      the lanes that were created for a call
                                                lanes           those of all calls that have not ended
                                                taken/LANE      the numbers that a lane has taken
                                                counts/CALL     how many there are, are answered, failed
    fdstore:{triage}:triage:asks:queue   zset   CALL/7          those that no lane has taken

An ask is one request to a model, without tools. A call of a program may make thousands; workers run them in
lanes. A lane is a process of kind `asks`, a child of the process that asks: it is claimed, leased, lost and
killed like any, but it is not counted in the processes of its tree, and its end wakes its parent. It takes
asks of its call from the queue, and stores several answers in one step, with what they cost. A lane whose
worker died has its asks still: the next attempt asks again those without an answer.

Every ask gets an answer or an error. A lane ends when its call has none left that it could take. One that
ends in another way leaves what it has taken, and `answers` gives those its reason as the error, as it does
all queued ones once no lane is left. What was answered once stays so, also an error: a program that is run
again must find the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import asdict

from fdstore.errors import DamagedRecord, FDStoreError, TooLarge
from fdstore.model.model_servers import ModelServer
from fdstore.model.records import (
    MAX_MOMENT_S,
    TOKEN_COUNTS,
    AskCounts,
    Count,
    ModelPrice,
    Moment,
    TokenUsage,
)
from fdstore.store.contents.resolving import content_info
from fdstore.store.hashes import Hash
from fdstore.store.keys import in_bounded_pieces, in_pieces, process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import (
    UNREADABLE,
    decode_count,
    decode_or_none,
    decode_record,
    decoding,
    replies_or_damage,
)
from fdstore.store.trees.ceilings import run_with_ceilings
from fdstore.telemetry.tracing import traceparent
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.selection import JsonValue, selector
from fdstore.text.words import joined_words
from fdstore.wire.operation import Command, Operation, Value
from fdstore.wire.scripts import script, text

PER_LANE = 25
"""Asks that one lane runs at once."""

PUT_BYTES = 512 * 1024
"""After this many bytes of questions, further ones are stored by another command."""

NUMBERS_AT_ONCE = 500
"""The most answers that one command reads, or asks that it fails."""


class AskPart(msgspec.Struct, frozen=True):
    """A text by reference: a descriptor of the asking process, with a selector or without."""

    ref: str


class Ask(msgspec.Struct, frozen=True):
    """A question about texts. `number` is that of the host call, so it is unique in its call."""

    number: int
    question: str
    parts: list[str | AskPart] = []


_Positive = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]


class AskSettings(ModelServer, frozen=True, kw_only=True):
    """The settings of asks: the texts of one have at most `max_chars` characters together; up to `at_once` of
    a call are asked at a time. `price` is that of the model."""

    model: str
    max_tokens: _Positive = 4096
    system: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    at_once: _Positive = 50
    max_chars: _Positive = 200_000
    price: ModelPrice | None = None
    give_up_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 600.0

    @property
    def id(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:16]


class AskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an ask, or why there is none: `error` is "type: reason". `seconds` is how long the
    request took, `tokens` what it used, of them `output_tokens` for the answer. `at_ms` is when it was
    stored, by Redis, `lane` the lane that did."""

    text: str = ""
    error: str = ""
    tokens: Count = 0
    seconds: Moment = 0.0
    output_tokens: Count = 0
    lane: str = ""
    at_ms: Annotated[int, msgspec.Meta(ge=0, lt=1000 * MAX_MOMENT_S)] | None = None


class StoredAsk(msgspec.Struct, frozen=True, omit_defaults=True):
    """An ask as it is stored. `is_shared`: other asks begin with the same text."""

    question: str
    parts: list[str | AskPart]
    settings: str
    is_shared: bool = False


class LaneTask(msgspec.Struct, frozen=True, tag="asks", tag_field="kind"):
    """The task of a lane, the first record of its journal: the call whose asks it takes, how many it runs at
    once, and the server that it asks, for workers that look whether they may."""

    call: str
    width: Annotated[int, msgspec.Meta(ge=1, le=PER_LANE)]
    server: ModelServer = ModelServer()


def check_size(size: int, limit: int) -> None:
    """Raise `TooLarge` if the texts of an ask are longer than the limit, in characters."""
    if size > limit:
        advice = "split the text, as text.split(chars=50_000) does, and ask about each part"
        raise TooLarge("this ask", size, limit, advice, "characters of text")


def failed(error: FDStoreError) -> AskAnswer:
    """Return the answer that says that an ask failed with this error."""
    return AskAnswer(error=f"{error.type}: {error}")


def _error_words(answers: Iterable[AskAnswer]) -> str:
    """Return the words of the errors among answers as scripts take them."""
    return joined_words("\n".join(each.error for each in answers if each.error))


def start(
    handle: ProcessHandle, call_id: str, asks: Sequence[Ask], settings: AskSettings
) -> Operation[tuple[str, ...]]:
    """Record asks of a call and create the lanes that ask them. Return the live lanes of the call, to wake
    and to wait for; none if all have their answers. A repeat records nothing twice, and an ask has at most
    one answer for ever. Raises `Fenced`, `NotFound`, `UnsafeStore`, `StoreFull`."""
    keys = handle.keys
    found = yield from answers(handle, call_id, [ask.number for ask in asks])
    pending = [ask for ask in asks if ask.number not in found]
    if not pending:
        return ()
    there = yield [("HEXISTS", keys.asks, f"ask/{call_id}/{ask.number}") for ask in pending]
    new = [ask for ask, exists in zip(pending, there, strict=True) if not exists]
    refused = yield from _too_large(handle, new, settings.max_chars)
    if new:
        yield from _put(handle, call_id, new, settings)
    price = b"" if settings.price is None else msgspec.json.encode(settings.price)
    rest: list[Value] = []
    for number, answer in refused.items():
        rest += (number, msgspec.json.encode(answer))
    rest += (ask.number for ask in pending if ask.number not in refused)
    begin = script("asks_start")(
        tree=keys.tree.record,
        parent_record=keys.record,
        asks=keys.asks,
        queue=keys.asks_queue,
        attempt=handle.attempt,
        parent=handle.id,
        call=call_id,
        most_at_once=max(1, settings.at_once),
        lane_width=PER_LANE,
        seen_child=handle.highest_child,
        traceparent=traceparent(),
        price=price,
        server=msgspec.json.encode({k: v for k, v in asdict(settings.server).items() if v is not None}),
        error_words=_error_words(refused.values()),
        failures=len(refused),
        rest=rest,
    )
    [reply] = yield from run_with_ceilings(handle, [begin])
    lanes = tuple(map(text, outcome(reply, handle.id)))
    for lane in lanes:
        handle.see_child(lane)
    return lanes


def _too_large(handle: ProcessHandle, asks: list[Ask], limit: int) -> Operation[dict[int, AskAnswer]]:
    """Return the errors of those asks whose texts are known to be too long: whole texts and ranges of
    characters. No text is read; the length of other parts is checked when they are."""
    lengths: dict[str, int] = {}
    refused: dict[int, AskAnswer] = {}
    for ask in asks:
        size = 0
        for part in ask.parts:
            size += len(part) if isinstance(part, str) else (yield from _length(handle, part.ref, lengths))
        try:
            check_size(size, limit)
        except TooLarge as error:
            refused[ask.number] = failed(error)
    return refused


def _length(handle: ProcessHandle, ref: str, lengths: dict[str, int]) -> Operation[int]:
    """Return the length of a text in characters; 0 if it is not known without its index."""
    try:
        of = selector(ref)
        if isinstance(of.part, JsonValue) or (of.part is not None and of.part.mode != "char"):
            return 0
        if of.fd not in lengths:
            lengths[of.fd] = (yield from content_info(handle, of.fd)).descriptor.chars
    except FDStoreError:
        return 0  # reading it reports the problem
    if of.part is None:
        return lengths[of.fd]
    return max(0, min(of.part.last, lengths[of.fd]) - of.part.start + 1)


def _put(handle: ProcessHandle, call_id: str, asks: list[Ask], settings: AskSettings) -> Operation[None]:
    keys = handle.keys
    beginnings = Counter(beginning(ask) for ask in asks)
    fields: list[tuple[str, bytes]] = [(f"settings/{settings.id}", msgspec.json.encode(settings))]
    for ask in asks:
        stored = StoredAsk(
            ask.question, ask.parts, settings.id, is_shared=bool(ask.parts) and beginnings[beginning(ask)] > 1
        )
        fields.append((f"ask/{call_id}/{ask.number}", msgspec.json.encode(stored)))
    for piece in in_bounded_pieces(fields, NUMBERS_AT_ONCE, PUT_BYTES):
        put = script("asks_put")(process=keys.record, asks=keys.asks, attempt=handle.attempt, fields=piece)
        [reply] = yield [put]
        outcome(reply, keys.process)


def beginning(ask: Ask | StoredAsk) -> str:
    """Return what identifies the first text of an ask."""
    first = ask.parts[0] if ask.parts else ""
    return f"ref {first.ref}" if isinstance(first, AskPart) else f"text {first}"


def answers(handle: ProcessHandle, call_id: str, numbers: Sequence[int]) -> Operation[dict[int, AskAnswer]]:
    """Return the answers to those of these asks that have one. An ask that no lane will answer any more has
    an error from then on. Raises `Fenced`, `NotFound`, `DamagedRecord`."""
    keys = handle.keys
    found: dict[int, AskAnswer] = {}
    for some in in_pieces(numbers, NUMBERS_AT_ONCE):
        [reply] = yield [
            script("asks_answers")(
                tree=keys.tree.record,
                process=keys.record,
                asks=keys.asks,
                queue=keys.asks_queue,
                attempt=handle.attempt,
                call=call_id,
                numbers=some,
            )
        ]
        for number, stored in zip(some, outcome(reply, handle.id), strict=True):
            if stored:
                what = f"answer {number} of the asks of process {handle.id}"
                found[number] = decode_record(stored, AskAnswer, what)
    return found


# --- as a lane


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to store; `usage` is what the model counted, None if it gave none."""

    number: int
    answer: AskAnswer
    usage: TokenUsage | None = None


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """The next step of a lane: ask these `asks`; `wait`, because it may take none before other lanes get
    their answers; or nothing, because it has `ended`: then `woken` are the ancestors that need a wake-up.
    `limit`: the tree has reached this limit (its name, its value, how much is used), and takes none."""

    how: Literal["go", "wait", "ended", "limit"]
    asks: dict[int, StoredAsk] = {}
    woken: tuple[str, ...] = ()
    limit: tuple[str, int, int] = ("", 0, 0)


def take_next(
    lane: ProcessHandle,
    parent: ProcessHandle,
    call_id: str,
    *,
    width: int,
    running: Sequence[int],
    answered: Sequence[Answered],
) -> Operation[Next]:
    """Store the answers of a lane and take its next asks, as many as `width` allows beside those that are
    `running`. 0 takes none. One round trip. Raises `Fenced`, `NotFound`, `DamagedRecord`."""
    given: list[Value] = []
    for each in answered:
        counts = [0 if each.usage is None else getattr(each.usage, name) for name in TOKEN_COUNTS]
        is_error, is_model = int(bool(each.answer.error)), int(each.usage is not None)
        given += (each.number, msgspec.json.encode(each.answer), is_error, is_model, *counts)
    keys, of = lane.keys, parent.keys
    command = script("asks_next")(
        tree=keys.tree.record,
        lane_record=keys.record,
        asks=of.asks,
        queue=of.asks_queue,
        journal=keys.journal,
        attempt=lane.attempt,
        lane_id=lane.id,
        parent=parent.id,
        call=call_id,
        width=width,
        held=" ".join(map(str, running)),
        error_words=_error_words(each.answer for each in answered),
        given=given,
    )
    [reply] = yield [command]
    how, *rest = outcome(reply, lane.id)
    match how:
        case b"limit":
            name, limit, used = rest
            with decoding(f"the record of tree {lane.keys.tree.tree}"):
                return Next(how="limit", limit=(text(name), decode_count(limit), decode_count(used)))
        case b"ended":
            return Next(how="ended", woken=tuple(text(rest[0]).split()))
    _, *flat = rest
    what = f"the asks of process {parent.id}"
    with decoding(what):
        asks = {
            decode_count(number): decode_record(stored, StoredAsk, what)
            for number, stored in zip(flat[::2], flat[1::2], strict=True)
        }
    return Next(how="wait" if how == b"wait" else "go", asks=asks)


def read_settings(parent: ProcessHandle, settings: str) -> Operation[AskSettings]:
    """Return the settings of an ask. Raises `DamagedRecord`."""
    [stored] = yield [("HGET", parent.keys.asks, f"settings/{settings}")]
    return decode_record(stored, AskSettings, f"the asks of process {parent.id}")


def fail_rest(
    lane: ProcessHandle, parent: ProcessHandle, call_id: str, running: Sequence[int], reason: str
) -> Operation[None]:
    """Answer all asks of the call that are not `running` in a lane with this error. Raises `Fenced`,
    `NotFound`."""
    answer = msgspec.json.encode(AskAnswer(error=reason))
    while True:
        [reply] = yield [
            script("asks_fail")(
                tree=lane.keys.tree.record,
                process=lane.keys.record,
                asks=parent.keys.asks,
                queue=parent.keys.asks_queue,
                attempt=lane.attempt,
                lane_id=lane.id,
                parent=parent.id,
                call=call_id,
                begun=" ".join(map(str, running)),
                reply=answer,
                most=NUMBERS_AT_ONCE,
                error_words=joined_words(reason),
            )
        ]
        [count] = outcome(reply, lane.id)
        if not count:
            return


# --- for people

ERRORS_AT_ONCE = 300
"""About how many answers are searched for errors in one step."""


def errors_command(asks: str) -> Command:
    """Return the command that reads some answers to the asks of this key, for `errors_in`."""
    return ("HSCAN", asks, 0, "MATCH", "answer/*", "COUNT", ERRORS_AT_ONCE)


def errors_in(reply: object) -> list[str]:
    """Return the errors among the answers that `errors_command` has read, without those that are damaged."""
    match reply:
        case [_, [*flat]]:
            read = [decode_or_none(value, AskAnswer) for value in flat[1::2] if isinstance(value, bytes)]
            return [each.error for each in read if each is not None and each.error]
    return []


MAX_DIGITS = len(str(MAX_INTEGER))


class AskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An ask of a call and its answer, None if it has none yet."""

    call: str
    number: int
    ask: StoredAsk
    answer: AskAnswer | None


_COUNTS = Hash(AskCounts)


def read_counts(prefix: str, calls: Sequence[tuple[str, str]]) -> Operation[list[AskCounts | None]]:
    """Return the counts of these calls, each a process and a call; None for one without asks. One round
    trip."""
    replies = yield from replies_or_damage(
        [("HGET", process_keys(prefix, process).asks, f"counts/{call}") for process, call in calls]
    )
    return [_counts(reply) if isinstance(reply, bytes) else None for reply in replies]


def _counts(stored: bytes) -> AskCounts | None:
    with suppress(*UNREADABLE):
        return _COUNTS.decode_values(stored.split(b" "))
    return None


def list_asks(prefix: str, process: str) -> Operation[list[tuple[str, int]]]:
    """Return all asks of a process, by call and number. Raises `DamagedRecord`."""
    [names] = yield [("HKEYS", process_keys(prefix, process).asks)]
    found = []
    with decoding(f"the asks of process {process}"):
        for name in names:
            if name.startswith(b"ask/"):
                call, _, number = text(name)[len("ask/") :].rpartition("/")
                found.append((call, decode_count(number)))
    return sorted(found)


def read_answers(
    prefix: str, process: str, call: str, known: Container[int], most: int
) -> Operation[list[tuple[int, AskAnswer | None]]]:
    """Return answers to asks of a call whose numbers are not `known`, at most `most` of them, each with its
    number; None for a damaged one. Two round trips."""
    key, start = process_keys(prefix, process).asks, f"answer/{call}/".encode()
    [names] = yield from replies_or_damage([("HKEYS", key)])
    if isinstance(names, DamagedRecord):
        return []
    ends = [name[len(start) :] for name in names if name.startswith(start)]
    numbers = [int(end) for end in ends if end.isdigit() and len(end) <= MAX_DIGITS]
    wanted = sorted(number for number in numbers if number not in known)[:most]
    if not wanted:
        return []
    [values] = yield [("HMGET", key, *(start + b"%d" % number for number in wanted))]
    return [
        (number, None if value is None else decode_or_none(value, AskAnswer))
        for number, value in zip(wanted, values, strict=True)
    ]


def read_asks(prefix: str, process: str, which: Sequence[tuple[str, int]]) -> Operation[list[AskRecord]]:
    """Return these asks of a process, each a call and a number, without those that are gone. One round trip.
    Raises `DamagedRecord`."""
    if not which:
        return []
    fields = [f"{kind}/{call}/{number}" for call, number in which for kind in ("ask", "answer")]
    [values] = yield [("HMGET", process_keys(prefix, process).asks, *fields)]
    what = f"the asks of process {process}"
    return [
        AskRecord(
            call=call,
            number=number,
            ask=decode_record(ask, StoredAsk, what),
            answer=None if answer is None else decode_record(answer, AskAnswer, what),
        )
        for (call, number), ask, answer in zip(which, values[::2], values[1::2], strict=True)
        if ask is not None
    ]
