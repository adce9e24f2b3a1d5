"""Questions of agents for the person at a host, by elicitation: a form that the host shows, not its model.

A host that offers forms is shown the open questions of its process's tree, one at a time, while it is
connected, if the operator permits (`--allow answer`). No tool shows or answers one. A form that is declined
or closed is no answer: the question stays open for the other doors, and is not shown again on this
connection. One that is answered elsewhere is taken back.

A server may send requests of its own on connections with a handshake (2025) alone. In the protocol of 2026 a
call of a tool is answered with one form first (`before_call`), and the host makes the call again with what
its person said; each question is shown to one call.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from fdstore.errors import FDStoreError, InvalidArgument, MissingExtra
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.model.people import MAX_NAME_CHARS, GivenAnswer, Question
from fdstore.store.clock import redis_now
from fdstore.store.processes import people
from fdstore.text.layout import show_controls

if TYPE_CHECKING:
    from fdstore.client._async.store import Store

log = logging.getLogger("fdstore.mcp")

EVERY_S = 2.0
"""How often the questions of a tree are looked for, and whether one that is shown is still open."""

MAX_SHOWN_CHARS = 8_000
"""A question that is longer, or whose arguments are, is left to the other doors: a person must see it all."""

DOOR = "mcp"

PERMISSION = "answer"


class Elicitations:
    """The connections whose person is shown questions. `close` ends them."""

    def __init__(self, toolsets: Toolsets) -> None:
        self._toolsets = toolsets
        self._watches: dict[int, asyncio.Task[None]] = {}
        self._shown: set[str] = set()
        """The questions that calls were answered with."""

    def begin(self, access: Access, session: ServerSession) -> None:
        """Show questions on the connection of a request from now on, if it permits that and offers forms."""
        connection = session._connection  # what outlives a request
        key = id(connection)
        if PERMISSION not in access.permissions or key in self._watches or not offers_forms(connection):
            return
        task = asyncio.create_task(self._watch(access, connection), name="fdstore questions")
        task.add_done_callback(lambda _: self._watches.pop(key, None))
        self._watches[key] = task
        connection.exit_stack.callback(task.cancel)

    async def before_call(
        self, access: Access, session: ServerSession, responses: types.InputResponses | None
    ) -> types.InputRequiredResult | None:
        """Return the form that a call is answered with first; None to run the call. `responses` are those to
        an earlier form: an answer in them is stored."""
        connection = session._connection
        if PERMISSION not in access.permissions or not takes_forms_before_calls(connection):
            return None
        tree = access.process.partition(".")[0]
        with suppress(FDStoreError):  # the call says what is wrong with the store
            store = await self._toolsets.store()
            found = (await store.run(people.open_questions(store.prefix, tree))).questions
            for question in found:
                if responses is not None:
                    response = responses.get(_key(question))
                    if isinstance(response, types.ElicitResult) and response.action == "accept":
                        given = answer_in(question, response.content)
                        if given is not None:
                            await self._answer(store, connection, question, given)
                    continue
                message = message_of(question)
                if _key(question) in self._shown or len(message) > MAX_SHOWN_CHARS:
                    continue
                self._shown.add(_key(question))
                form = types.ElicitRequestFormParams(message=message, requested_schema=schema_of(question))
                return types.InputRequiredResult(
                    input_requests={_key(question): types.ElicitRequest(params=form)}
                )
        return None

    async def close(self) -> None:
        """End all."""
        tasks = list(self._watches.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _watch(self, access: Access, connection: Connection) -> None:
        """Show the questions of a tree, one after the other, until the client leaves or takes no requests. An
        outage of the store is waited out."""
        tree, shown = access.process.partition(".")[0], set[tuple[str, int]]()
        await connection.initialized.wait()
        is_there = True
        while is_there:
            question = None
            with suppress(FDStoreError):
                store = await self._toolsets.store()
                found = await store.run(people.open_questions(store.prefix, tree))
                question = next(
                    (each for each in found.questions if (each.process, each.number) not in shown), None
                )
            if question is None:
                await asyncio.sleep(EVERY_S)
                continue
            shown.add((question.process, question.number))
            message = message_of(question)
            if len(message) <= MAX_SHOWN_CHARS:
                is_there = await self._show(store, connection, question, message)

    async def _show(self, store: Store, connection: Connection, question: Question, message: str) -> bool:
        """Show one question, and store its answer. Return whether the client is still there."""
        result: types.ElicitResult | None = None
        is_there = True

        async def take_back(scope: anyio.CancelScope) -> None:
            while await _is_open(store, question):
                await asyncio.sleep(EVERY_S)
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(take_back, group.cancel_scope)
            try:
                form = types.ElicitRequestFormParams(message=message, requested_schema=schema_of(question))
                result = await connection.send_request(types.ElicitRequest(params=form))
            except (MCPError, ValidationError) as error:
                log.warning("the host did not show a question: %s", error)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                is_there = False
            group.cancel_scope.cancel()
        given = None if result is None or result.action != "accept" else answer_in(question, result.content)
        if given is not None:
            await self._answer(store, connection, question, given)
        return is_there

    async def _answer(
        self, store: Store, connection: Connection, question: Question, given: dict[str, Any]
    ) -> None:
        info = connection.client_params.client_info.name if connection.client_params else ""
        who = show_controls(f"a person at {info or 'a host'}", keep="")[:MAX_NAME_CHARS]
        said = GivenAnswer(
            question=question.number,
            by=who if who.isprintable() else "a person at a host",
            door=DOOR,
            **given,
        )
        try:
            taken = await store.run(people.answer(store.prefix, question.process, said))
        except FDStoreError as error:
            log.warning("an answer was not taken: %s", error)
            return
        if taken.wakes:
            with suppress(InvalidArgument, MissingExtra):  # the sweep of the workers finds it
                await asyncio.to_thread(_wake, store, question.process)


def offers_forms(connection: Connection) -> bool:
    """Return whether a client shows forms that a server asks for on its own."""
    offered = None if connection.client_capabilities is None else connection.client_capabilities.elicitation
    if offered is None or not connection.has_standalone_channel:
        return False
    if connection.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return False
    return offered.form is not None or offered.url is None


def takes_forms_before_calls(connection: Connection) -> bool:
    """Return whether a client shows forms with which its calls are answered."""
    offered = None if connection.client_capabilities is None else connection.client_capabilities.elicitation
    if offered is None or connection.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    return offered.form is not None or offered.url is None


def _key(question: Question) -> str:
    return f"{question.process}/{question.number}"


async def _is_open(store: Store, question: Question) -> bool:
    try:
        now = await store.run(people.asked_question(store.prefix, question.process, question.number))
        return now.answer is None and not now.ended and await store.run(redis_now()) < question.until
    except FDStoreError as error:
        return error.stops  # an outage says nothing about the question


def message_of(question: Question) -> str:
    """Return what the form says. The words of an agent are quoted, and cannot pass for ours.

    >>> asked = Question(process="triage.1", number=2, kind="question", text="Why?", asked_at=0.0, until=1.0)
    >>> print(message_of(asked))
    The agent triage.1 asks (fdstore, question 2):
    > Why?
    """
    if question.kind == "question":
        words = show_controls(question.text, keep="\n\t")
        head = f"The agent {question.process} asks (fdstore, question {question.number}):"
        about = f"\nIt names the stored text {show_controls(question.fd, keep='')}." if question.fd else ""
    else:
        words = show_controls(json.dumps(question.arguments, indent=2, ensure_ascii=False))
        tool = show_controls(question.tool, keep="")
        head = f"May the agent {question.process} run {tool} (fdstore, question {question.number}) with:"
        about = ""
    quoted = "\n".join(f"> {line}" for line in words.split("\n"))
    return f"{head}\n{quoted}{about}"


def schema_of(question: Question) -> dict[str, Any]:
    """Return the form: flat, as elicitation has it."""
    text = {"type": "string", "title": "Answer"}
    if question.kind == "approval":
        properties: dict[str, Any] = {
            "approve": {"type": "boolean", "title": "Run it"},
            "reason": {"type": "string", "title": "Why not"},
        }
        return {"type": "object", "properties": properties, "required": ["approve"]}
    if not question.choices:
        return {"type": "object", "properties": {"text": text}, "required": ["text"]}
    choice = {"type": "string", "title": "Answer", "enum": choices_of(question)}
    return {"type": "object", "properties": {"choice": choice, "text": text | {"title": "Another answer"}}}


def choices_of(question: Question) -> list[str]:
    """Return the choices, with their numbers."""
    return [f"{n}. {show_controls(each, keep='')}" for n, each in enumerate(question.choices, 1)]


def answer_in(question: Question, content: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the answer in a form, as arguments of `people.answer`; None for one that does not fit, which
    is none."""
    fields = content or {}
    if question.kind == "approval":
        approve, reason = fields.get("approve"), fields.get("reason")
        if type(approve) is not bool:
            return None
        return {"approve": approve, "reason": reason if isinstance(reason, str) and not approve else ""}
    text = fields.get("text")
    if isinstance(text, str) and text.strip():
        return {"text": text}
    known = choices_of(question)
    return {"choice": known.index(choice) + 1} if (choice := fields.get("choice")) in known else None


def _wake(store: Store, process: str) -> None:
    from fdstore.agents.runtime.waker import waker

    waker(store.url, store.prefix)(process)
