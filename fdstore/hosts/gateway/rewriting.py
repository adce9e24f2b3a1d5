"""The treatment of a message: decisions without I/O.

One `Rewriter` serves one connection of a host. It remembers the requests of the host until they are answered,
because an answer has only an id. Requests of the server have ids of their own and are not confused with them:
an answer has no method. `acting` carries the decisions out.

A long result becomes a descriptor only for a host that has been shown the tools that read one. What passes
unchanged although it is long, or because it cannot be read, is told the operator.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from fdstore.elements.parse import split_message
from fdstore.hosts.gateway.json_parts import (
    Json,
    Parts,
    dumps,
    is_null,
    is_string,
    map_strings,
    object_at,
    string_of,
    text_at,
    value_of,
)
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.json_texts import Text, chars_up_to
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.options import USUAL
from fdstore.hosts.gateway.tool_list import ToolOffer, rename, tool_names, with_our_tools
from fdstore.hosts.gateway.tool_results import ResultPlan, plan_result, why_unchanged
from fdstore.text.ref_tags import placeholders

K = TypeVar("K")
V = TypeVar("V")

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
        return dumps({"jsonrpc": "2.0", "id": self.id, "result": result})


class CancelOurTool(msgspec.Struct, frozen=True):
    """End a call of one of our tools, which is not answered then."""

    key: RequestKey


class TakenBack(msgspec.Struct, frozen=True):
    """Do nothing: the message takes back a request that was held back."""


class Expand(msgspec.Struct, frozen=True):
    """Replace the arguments `texts`, which hold `{{fd:3}}`, by texts with the stored content. The request is
    held back until `Rewriter.release`."""

    call: CallOurTool
    fields: Parts
    params: Parts
    texts: list[str]

    def with_texts(self, texts: Sequence[str]) -> bytes:
        """Return the request with the texts in place of the arguments."""
        new = dict(zip(self.texts, texts, strict=True))
        arguments = map_strings(self.params["arguments"], lambda text: new.get(text, text), _BRACES)
        params: dict[str, Any] = {**self.params, "arguments": arguments}
        return dumps({**self.fields, "params": params})


class StoreTexts(msgspec.Struct, frozen=True):
    """Store the texts of a tool's result, or of its error, and show descriptors."""

    source: str
    fields: Parts
    plan: ResultPlan | None
    error: Parts
    names: Mapping[str, str]

    @property
    def contents(self) -> list[Text]:
        """The texts, where they stand."""
        if self.plan is not None:
            return [long.content for long in self.plan.long_texts]
        return [Text((self.error["message"],))]

    @property
    def texts(self) -> list[str]:
        return [content.read() for content in self.contents]

    def with_shown(self, shown: Sequence[str | None]) -> bytes:
        """Return the answer with what is shown for each text; None leaves a text as it was."""
        renamed = [None if text is None else _renamed_text(text, self.names) for text in shown]
        if self.plan is not None:
            return dumps({**self.fields, "result": self.plan.with_shown(renamed)})
        [message] = renamed
        error = self.error if message is None else {**self.error, "message": message}
        return dumps({**self.fields, "error": error})


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
        return None if result is None else dumps({**self.fields, "result": result})


class Batch(msgspec.Struct, frozen=True):
    """Decide about each message of a batch, and pass them on together."""

    messages: list[Message]
    decisions: list[Forward | StoreTexts | AddTools]


OutgoingOne: TypeAlias = Forward | CallOurTool | CancelOurTool | TakenBack | Expand


class Separate(msgspec.Struct, frozen=True):
    """Treat each message of a batch as if it had come alone."""

    messages: list[Message]
    decisions: list[OutgoingOne]


Outgoing: TypeAlias = OutgoingOne | Separate
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


_BRACES = re.compile(rb"\{\{|\\u007[bB]")


def _tell_nobody(_: str) -> None: ...


class Rewriter:
    """The decisions about the messages of one connection.

    limit   texts of more characters are stored
    offer   our tools beside those of the server; connections of one host share it
    tell    called with what the operator is to know, which may be the same often
    """

    def __init__(
        self,
        limit: int,
        offer: ToolOffer | None = None,
        *,
        tell: Callable[[str], None] = _tell_nobody,
    ) -> None:
        self._limit, self._tell = limit, tell
        self._known: dict[RequestKey, Known] = {}
        self._ours: set[RequestKey] = set()
        self._held: set[RequestKey] = set()
        self.offer = offer or ToolOffer(USUAL)

    def to_server(self, whole: Buffer) -> Outgoing:
        """Decide about a message of the host. One that is not understood passes."""
        try:
            return self._to_server(Message(whole))
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

    def _to_server(self, message: Message) -> Outgoing:
        fields = message.fields
        if fields is not None:
            return self._one_to_server(message, fields)
        if message.problem:
            self._tell(f"a message of the host passes as it came: {message.problem}")
        parts = [Message(memoryview(each)) for each in message.items or ()]
        decisions = [
            FORWARD if (each := part.fields) is None else self._one_to_server(part, each) for part in parts
        ]
        return FORWARD if all(isinstance(each, Forward) for each in decisions) else Separate(parts, decisions)

    def _one_to_server(self, message: Message, fields: Parts) -> OutgoingOne:
        method = text_at(fields, "method")
        if method is None:
            return FORWARD
        params = object_at(fields, "params")
        key = key_of(fields["id"]) if "id" in fields else None
        if key is None:
            return self._cancel(params) if method == "notifications/cancelled" else FORWARD
        id = fields["id"]
        tool = _tool_of(method, params)
        names = self.offer.names if method == "tools/call" else {}
        if tool in names:
            self._ours.add(key)
            self.offer.host_has_tools = True  # as after a restart of the gateway
            meta = object_at(params, "_meta")
            return CallOurTool(id, key, names[tool], _arguments(params), names, meta)
        remember(self._known, key, Known(id, method, tool, _cursor_of(params)))
        if method == "tools/call" and _BRACES.search(message.whole) is not None:
            texts = _texts_with_placeholders(params)
            if texts:
                self._held.add(key)
                return Expand(CallOurTool(id, key, tool, {}, names), fields, params, texts)
        return FORWARD

    def _from_server(self, message: Message) -> Incoming:
        fields = message.fields
        if not message.is_utf8:
            self._tell("a message of the server is not UTF-8; what is no text in it passes as it came")
        if fields is None:
            if message.problem:
                self._tell(f"a message of the server passes as it came: {message.problem}")
            return self._each_from_server(message)
        key = key_of(fields["id"]) if "id" in fields and "method" not in fields else None
        known = self._known.pop(key, None) if key is not None else None
        if known is None:
            if key is not None and len(message.whole) > self._limit and "result" in fields:
                self._tell("a long answer passes unchanged: it has the id of no request that is open")
            return FORWARD
        if known.method == "tools/list" and "result" in fields:
            return self._with_our_tools(known, fields)
        # a text is never longer than its JSON
        if known.method not in OF_TOOLS or len(message.whole) <= self._limit:
            return FORWARD
        if not self.offer.host_has_tools:
            self._tell(
                "a long result passes unchanged: the host has not asked for tools/list, where the tools "
                "that read descriptors are"
            )
            return FORWARD
        if "result" in fields:
            plan = plan_result(fields["result"], self._limit)
            if plan is not None:
                return StoreTexts(known.tool, fields, plan, {}, self.offer.names)
            self._tell(f"a long result passes unchanged: {why_unchanged(fields['result'])}")
        elif "error" in fields:
            error = object_at(fields, "error")
            said = error.get("message")
            if said is not None and is_string(said) and chars_up_to(said, self._limit) > self._limit:
                return StoreTexts(known.tool, fields, None, error, self.offer.names)
            self._tell("a long error passes unchanged: its message is not what is long")
        return FORWARD

    def _with_our_tools(self, known: Known, fields: Parts) -> Incoming:
        names = tool_names(fields["result"])
        if names is None:
            self._tell("an answer to tools/list passes unchanged: it has no list of tools")
            return FORWARD
        # "" is a page that a server may name, and what some hosts begin with
        is_first = known.cursor is None or (known.cursor == "" and not self.offer.host_has_tools)
        self.offer.note_page(names, is_first=is_first)
        return AddTools(fields, self.offer.names, self.offer.ours_only, is_first)

    @property
    def owes_answers(self) -> bool:
        """Return whether the server has not answered each request of the host."""
        return any(not known.is_cancelled for known in list(self._known.values()))

    @property
    def first_unanswered(self) -> Raw | None:
        """The id of the oldest request without an answer."""
        return next((known.id for known in self._known.values()), None)

    def unanswered(self) -> list[Known]:
        """Return the requests that the server owes an answer, and forget them."""
        known, self._known = self._known, {}
        return [each for each in known.values() if not each.is_cancelled]

    def forget_answered(self, message: Message) -> None:
        """Forget the request that a message answers, if it is an answer: it came another way."""
        fields = message.fields
        if fields is not None and "method" not in fields and "id" in fields:
            self._known.pop(key_of(fields["id"]) or (False, None), None)

    def release(self, key: RequestKey) -> bool:
        """Return whether a request that was held back is to be sent: not if the host has taken it back."""
        is_held = key in self._held
        self._held.discard(key)
        return is_held

    def forget(self, key: RequestKey) -> None:
        """Forget a request that is answered without the server."""
        self._known.pop(key, None)
        self._ours.discard(key)

    def _each_from_server(self, batch: Message) -> Incoming:
        messages = [Message(memoryview(each)) for each in batch.items or ()]
        decisions = [self.from_server(each) for each in messages if each.fields is not None]
        plain = [each for each in decisions if not isinstance(each, Batch)]
        if len(plain) != len(messages) or all(isinstance(each, Forward) for each in plain):
            return FORWARD
        return Batch(messages, plain)

    def _cancel(self, params: Parts) -> OutgoingOne:
        key = key_of(params.get("requestId", b"null"))
        if key is not None and key in self._ours:
            return CancelOurTool(key)
        if key is not None and self.release(key):
            self.forget(key)
            return TakenBack()
        if key in self._known:
            self._known[key] = msgspec.structs.replace(self._known[key], is_cancelled=True)
        return FORWARD


def remember(known: dict[K, V], key: K, value: V, most: int = MAX_KNOWN) -> None:
    """Note a fact; of too many the oldest is forgotten."""
    known.pop(key, None)
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


def key_of(id: Json) -> RequestKey | None:
    """Return the key of an id; None if it cannot be one."""
    try:
        value = value_of(id)
    except ValueError:
        return None
    is_id = type(value) in (str, int) or (type(value) is float and isfinite(value))
    return (isinstance(value, str), value) if is_id else None


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


def _texts_with_placeholders(params: Parts) -> list[str]:
    found: dict[str, None] = {}

    def note(text: str) -> str:
        if placeholders(text):
            found[text] = None
        return text

    if "arguments" in params:
        map_strings(params["arguments"], note, _BRACES)
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
