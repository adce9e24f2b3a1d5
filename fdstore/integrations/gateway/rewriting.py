"""The treatment of a message: decisions without I/O.

One `Rewriter` serves one connection of a host. It remembers the requests of the host until they are answered,
because an answer has only an id. Requests of the server have ids of their own and are not confused with them:
an answer has no method. `acting` carries the decisions out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from fdstore.elements.read import split_message
from fdstore.integrations.gateway.json_parts import (
    Json,
    Parts,
    encode,
    is_null,
    items_of,
    map_strings,
    object_at,
    parts_of,
    string_of,
    text_at,
    value_of,
)
from fdstore.integrations.gateway.long_values import Buffer, Message
from fdstore.integrations.gateway.tool_list import ToolOffer, rename, tool_names, with_our_tools
from fdstore.integrations.gateway.tool_results import ResultPlan, plan_result
from fdstore.text.ref_tags import placeholders
from fdstore.text.surrogates import show_lone_surrogates

log = logging.getLogger("fdstore.gateway")

RequestKey: TypeAlias = tuple[bool, Any]
"""The id of a request: whether it is a string, and its value. 1 and "1" are two ids."""

MAX_KNOWN = 10_000
"""The most requests without an answer that are remembered; then the oldest is forgotten."""


OF_TOOLS = ("tools/call", "tasks/result")
"""Requests that are answered with the result of a tool: a call, and what fetches the result of a call that
was made a task (2025-11-25)."""


class Forward(msgspec.Struct, frozen=True):
    """Pass the message on as it is."""


class CallOurTool(msgspec.Struct, frozen=True):
    """Answer a call of one of our tools; the server does not see it. `meta`: what the request says of
    itself."""

    id: Raw
    key: RequestKey
    tool: str
    arguments: dict[str, Any]
    names: Mapping[str, str]
    meta: Parts = {}

    def answer(self, content: Sequence[Mapping[str, Any]], *, is_error: bool) -> bytes:
        """Return the message that answers the call. Older hosts ignore `resultType`."""
        shown = [_renamed(block, self.names) for block in content]
        result = {"content": shown, "isError": is_error, "resultType": "complete"}
        return bytes(encode({"jsonrpc": "2.0", "id": self.id, "result": result}))


class CancelOurTool(msgspec.Struct, frozen=True):
    """End a call of one of our tools, which is not answered then."""

    key: RequestKey


class Expand(msgspec.Struct, frozen=True):
    """Replace the arguments `texts`, which hold `{{fd:3}}`, by texts with the stored content."""

    call: CallOurTool
    fields: Parts
    params: Parts
    texts: list[str]

    def with_texts(self, texts: Sequence[str]) -> bytes:
        """Return the request with the texts in place of the arguments."""
        new = dict(zip(self.texts, texts, strict=True))
        arguments = map_strings(self.params["arguments"], lambda text: new.get(text, text))
        params = encode({**self.params, "arguments": arguments})
        return bytes(encode({**self.fields, "params": params}))


class StoreTexts(msgspec.Struct, frozen=True):
    """Store the texts of a tool's result, or of its error, and show descriptors; to a host that has no tools
    to read them the message as it is."""

    source: str
    fields: Parts
    plan: ResultPlan | None
    error: Parts
    names: Mapping[str, str]
    host_has_tools: bool = True

    @property
    def texts(self) -> list[str]:
        if self.plan is not None:
            return [long.text for long in self.plan.long_texts]
        return [text_at(self.error, "message") or ""]

    def with_shown(self, shown: Sequence[str | None]) -> bytes:
        """Return the answer with what is shown for each text; None leaves a text as it was."""
        renamed = [None if text is None else _renamed_text(text, self.names) for text in shown]
        if self.plan is not None:
            return bytes(encode({**self.fields, "result": self.plan.with_shown(renamed)}))
        [message] = renamed
        error = self.error if message is None else {**self.error, "message": encode(message)}
        return bytes(encode({**self.fields, "error": error}))


class AddTools(msgspec.Struct, frozen=True):
    """Add our tools to a tool list, or put them in its place."""

    fields: Parts
    names: Mapping[str, str]
    ours_only: bool = False
    is_first: bool = True

    def with_definitions(self, definitions: Sequence[Mapping[str, Any]]) -> bytes | None:
        """Return the answer with our tools, or with `ours_only`; None if it is not a tool list."""
        result = with_our_tools(
            self.fields["result"],
            definitions,
            self.names,
            is_first=self.is_first,
            ours_only=self.ours_only,
        )
        return None if result is None else bytes(encode({**self.fields, "result": result}))


class Batch(msgspec.Struct, frozen=True):
    """Decide about each message of a batch, and pass them on together."""

    messages: list[Message]
    decisions: list[Forward | StoreTexts | AddTools]


Outgoing: TypeAlias = Forward | CallOurTool | CancelOurTool | Expand
Incoming: TypeAlias = Forward | StoreTexts | AddTools | Batch

FORWARD = Forward()


class Known(msgspec.Struct, frozen=True):
    """A request of the host that was passed on and not answered yet. `tool`: where its result comes from;
    `cursor`: the page of a list that it asks for, the first without one."""

    id: Raw
    method: str
    tool: str = ""
    cursor: str | None = None
    is_cancelled: bool = False


class _Message(msgspec.Struct):
    """The fields of any JSON-RPC message."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_message = msgspec.json.Decoder(_Message)

_HIGH_OR_LOW = re.compile(rb"\\u[dD]")
_BRACES = re.compile(rb"\{\{|\\u007[bB]")


class Rewriter:
    """The decisions about the messages of one connection; texts of more than `limit` characters are stored.
    Connections of the same host share an `offer`."""

    def __init__(self, limit: int, offer: ToolOffer | None = None) -> None:
        self._limit = limit
        self._known: dict[RequestKey, Known] = {}
        self._ours: set[RequestKey] = set()
        self.offer = offer or ToolOffer()

    def to_server(self, message: Buffer) -> Outgoing:
        """Decide about a message of the host. One that is not understood passes."""
        try:
            return self._to_server(message)
        except Exception:
            log.exception("a message of the host passes unchanged")
            return FORWARD

    def from_server(self, message: Message) -> Incoming:
        """Decide about a message of the server. One that is not understood passes."""
        try:
            return self._from_server(message)
        except Exception:
            log.exception("a message of the server passes unchanged")
            return FORWARD

    def _to_server(self, whole: Buffer) -> Outgoing:
        found, message = _read(whole)
        if found is None:
            for each in items_of(message) or ():
                self._remember_each(bytes(each))
            return FORWARD
        if found.method is UNSET:
            return FORWARD
        params = parts_of(found.params) if found.params is not UNSET else None
        params = params or {}
        key = key_of(found.id) if found.id is not UNSET else None
        if found.id is UNSET or key is None:
            return self._cancel(params) if found.method == "notifications/cancelled" else FORWARD
        tool = _tool_of(found.method, params)
        names = self.offer.names
        if tool in names:
            self._ours.add(key)
            self.offer.host_has_tools = True  # as after a restart of the gateway
            meta = object_at(params, "_meta")
            return CallOurTool(found.id, key, names[tool], _arguments(params), names, meta)
        self._remember(key, Known(found.id, found.method, tool, _cursor_of(params)))
        if found.method == "tools/call" and _may_hold_placeholders(message):
            texts = _texts_with_placeholders(params)
            if texts:
                return Expand(
                    CallOurTool(found.id, key, tool, {}, names), parts_of(message) or {}, params, texts
                )
        return FORWARD

    def _from_server(self, whole: Message) -> Incoming:
        found, message = _read(whole.text)
        if found is None:
            return self._each_from_server(whole.whole)
        key = key_of(found.id) if found.id is not UNSET and found.method is UNSET else None
        known = self._known.pop(key, None) if key is not None else None
        if known is None:
            return FORWARD
        if known.method == "tools/list" and found.result is not UNSET:
            if (listed := tool_names(found.result)) is None:
                return FORWARD
            # "" is a page that a server may name, and what some hosts begin with
            is_first = known.cursor is None or (known.cursor == "" and not self.offer.host_has_tools)
            self.offer.note_page(listed, is_first=is_first)
            return AddTools(parts_of(message) or {}, self.offer.names, self.offer.ours_only, is_first)
        # a text is never longer than its JSON
        if known.method not in OF_TOOLS or len(whole.whole) <= self._limit:
            return FORWARD
        if found.result is not UNSET:
            plan = plan_result(found.result, self._limit, whole.long_values)
            if plan is not None:
                return self._store(known, message, plan, {})
        elif found.error is not UNSET:
            error = parts_of(found.error) or {}
            text = text_at(error, "message") or ""
            if len(text) > self._limit or text in whole.long_values:
                return self._store(known, message, None, error)
        return FORWARD

    def _store(self, known: Known, message: Buffer, plan: ResultPlan | None, error: Parts) -> StoreTexts:
        fields, offer = parts_of(message) or {}, self.offer
        return StoreTexts(known.tool, fields, plan, error, offer.names, offer.host_has_tools)

    @property
    def owes_answers(self) -> bool:
        """Return whether the server has not answered each request of the host."""
        return any(not known.is_cancelled for known in list(self._known.values()))

    def unanswered(self) -> list[Known]:
        """Return the requests that the server owes an answer, and forget them."""
        known, self._known = self._known, {}
        return [each for each in known.values() if not each.is_cancelled]

    def forget_answered(self, message: Message) -> None:
        """Forget the request that a message answers, if it is an answer: it came another way."""
        found = _parsed(message.text)
        if found is not None and found.method is UNSET and found.id is not UNSET:
            self._known.pop(key_of(found.id) or (False, None), None)

    def forget(self, key: RequestKey) -> None:
        """Forget a request that is answered without the server."""
        self._known.pop(key, None)
        self._ours.discard(key)

    def _each_from_server(self, whole: Buffer) -> Incoming:
        messages = [Message.of(bytes(each)) for each in items_of(whole) or ()]
        decisions = [self.from_server(each) for each in messages if _parsed(each.text) is not None]
        plain = [each for each in decisions if not isinstance(each, Batch)]
        if len(plain) != len(messages) or all(isinstance(each, Forward) for each in plain):
            return FORWARD
        return Batch(messages, plain)

    def _remember_each(self, message: bytes) -> None:
        """Remember a request of a batch, which is passed on as it is."""
        found = _parsed(message)
        if found is None or found.id is UNSET or found.method is UNSET:
            return
        params = parts_of(found.params) if found.params is not UNSET else None
        if (key := key_of(found.id)) is not None:
            params = params or {}
            tool = _tool_of(found.method, params)
            self._remember(key, Known(found.id, found.method, tool, _cursor_of(params)))

    def _remember(self, key: RequestKey, known: Known) -> None:
        self._known.pop(key, None)
        self._known[key] = known
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def _cancel(self, params: Parts) -> Outgoing:
        key = key_of(params.get("requestId", b"null"))
        if key is not None and key in self._ours:
            return CancelOurTool(key)
        if key in self._known:
            self._known[key] = msgspec.structs.replace(self._known[key], is_cancelled=True)
        return FORWARD


def error_answer(id: Raw, message: str) -> bytes:
    """Return the message that answers a request with an error of the gateway."""
    error = {"code": -32000, "message": message}
    return bytes(encode({"jsonrpc": "2.0", "id": id, "error": error}))


def key_of(id: Json) -> RequestKey | None:
    """Return the key of an id; None if it cannot be one."""
    try:
        value = value_of(id)
    except ValueError:
        return None
    return (isinstance(value, str), value) if type(value) in (str, int, float) else None


def _parsed(message: Buffer) -> _Message | None:
    try:
        return _message.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _read(message: Buffer) -> tuple[_Message | None, Buffer]:
    """Return the fields of a message, and the message with halves of characters shown as text."""
    found = _parsed(message)
    if found is None and _HIGH_OR_LOW.search(message):
        message = show_lone_surrogates(bytes(message))
        found = _parsed(message)
    return found, message


def _tool_of(method: str, params: Parts) -> str:
    """Return the tool that a request calls, or the task whose result it fetches; "" for other requests."""
    match method:
        case "tools/call":
            return text_at(params, "name") or ""
        case "tasks/result":
            return f"task {text_at(params, 'taskId') or ''}".rstrip()
        case _:
            return ""


def _cursor_of(params: Parts) -> str | None:
    """Return the page of a list that a request asks for; None for the first."""
    cursor = params.get("cursor")
    if cursor is None or is_null(cursor):
        return None
    known = string_of(cursor)
    return bytes(cursor).decode("utf-8", "replace") if known is None else known


def _arguments(params: Parts) -> dict[str, Any]:
    """Return the arguments of a call. Anything but an object becomes one argument, which our tools refuse."""
    raw = params.get("arguments", b"null")
    try:
        found = {} if is_null(raw) else value_of(raw)
    except ValueError:
        found = bytes(raw).decode("utf-8", "replace")
    return found if isinstance(found, dict) else {"arguments": found}


def _may_hold_placeholders(message: Buffer) -> bool:
    return _BRACES.search(message) is not None


def _texts_with_placeholders(params: Parts) -> list[str]:
    found: dict[str, None] = {}

    def note(text: str) -> str:
        if placeholders(text):
            found[text] = None
        return text

    if "arguments" in params:
        map_strings(params["arguments"], note)
    return list(found)


def _renamed(block: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    text = block.get("text")
    return {**block, "text": _renamed_text(text, names)} if isinstance(text, str) else block


def _renamed_text(text: str, names: Mapping[str, str]) -> str:
    """Return an element of ours whose message calls our tools by the names that they are offered under. What
    is stored is never changed: the message precedes it."""
    if all(name == tool for name, tool in names.items()):
        return text
    before, message, rest = split_message(text)  # `source`, before it, may name a tool of the server
    return before + rename(message.encode(), names).decode() + rest
