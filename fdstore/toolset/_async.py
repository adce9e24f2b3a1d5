"""`Toolset`: the tools of one process, for your own loop."""

from __future__ import annotations

import asyncio  # awaiting only
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Literal, overload

from fdstore.client._async.process import Process
from fdstore.errors import InvalidArgument, quoted
from fdstore.files.source import open_source
from fdstore.results.config import FDConfig
from fdstore.results.context import Progress
from fdstore.results.offload_file import offload_file
from fdstore.results.offloading import offload, offload_parts, wrap
from fdstore.results.python_config import AskConfig
from fdstore.results.tool_outcome import Offloaded, ToolResult
from fdstore.results.wrapping import store_references, wrap_input
from fdstore.setup.optional_packages import require
from fdstore.tools.clear_messages import clear_messages
from fdstore.tools.clearing import ClearingConfig
from fdstore.tools.definition_shapes import DefinitionShape, in_shape
from fdstore.tools.tool_names import ToolName
from fdstore.tools.toolbox import Toolbox
from fdstore.tools.turn_calls import calls_in, following
from fdstore.toolset.approver import Approve, Approver
from fdstore.toolset.build import DEFAULT_TOOLS, context_for, linked_programs, waker_for
from fdstore.toolset.offering import UNTIL_NOW, HoldBack, Offering


class Toolset:
    r"""The tools of one process, for your own loop.

    enabled      names of built-in tools, as in `ToolName` (default: read_fd and list_fds)
    config       sizes and switches (`FDConfig`)
    python       functions offered as tools, with typed parameters and a docstring, or made with the SDK's
                 `beta_tool`. They may be coroutine functions; each call runs to its end, or in a thread
    programs     {"name": "file.toml"} that `spawn` may start on the workers
    commands     programs that `pipe` may run on the workers, by their bare names
    export_root  directory below which `fd_to_file` writes (required by it); created if missing
    preload_root directory from which `spawn` and `put_fd` may read files, if any
    wait_for_workers  False: `spawn`, `pipe` and the questions of code raise `NoWorker` if no live worker
                 could run the new process. True: it waits for a worker, and a warning is logged after 3 s
    meter        name of a session: under it is counted, in Redis, what is kept out of the context and what is
                 read back, for `fdstore saved`. Each costs one round trip more. None: nothing is counted
    ask          the model that code of `run_python` may ask on the workers (`AskConfig`)
    code_may_create  False: code of `run_python` stores no texts with `create`
    outside      names of tools that something else runs, whose results are given to `wrap` and `offload` with
                 the name as `source`: `config` may have policies for them
    approve      a function that is asked before each call that changes something: of your functions, and of
                 built-in tools that do not only read. It takes a `Question` with `tool` and `arguments`, and
                 returns whether the call may run, or a `PersonAnswer` with a reason or other arguments; it
                 may be a coroutine function. What it approves is run at most once for each `call_id`
    hold_back    False: the tools are offered from the start. True: reading tools and instructions are
                 offered from the first descriptor on, so ask for `definitions` and `instructions` for each
                 request. "deferred": of the Messages API, where the first result that is a descriptor loads
                 them and the list of tools never changes, so that a cached prompt stays cached. `call_all`
                 does all; of `offload` and `call` append `after` to the message, behind its results

    Raises `InvalidArgument` for an invalid tool or function, `InvalidProgram`, and `MissingExtra` for a tool
    that needs workers if the packages for sending to them are not installed.

    >>> tools = fdstore.aio.Toolset(proc, enabled=["read_fd"])
    >>> d = await proc.create("one\ntwo\n")
    >>> result = await tools.call("read_fd", {"fd": "fd:1#L2"})
    >>> print(result.content)
    <fd_content fd="fd:1" pages="1" lines="2-2" total_lines="2">
    two
    <BLANKLINE>
    </fd_content>
    """

    def __init__(
        self,
        process: Process,
        *,
        enabled: Sequence[ToolName] = DEFAULT_TOOLS,
        config: FDConfig | None = None,
        python: Sequence[Callable[..., Any]] = (),
        programs: Mapping[str, str | os.PathLike[str]] | None = None,
        commands: Sequence[str] = (),
        export_root: str | os.PathLike[str] | None = None,
        preload_root: str | os.PathLike[str] | None = None,
        wait_for_workers: bool = True,
        meter: str | None = None,
        outside: Sequence[str] = (),
        ask: AskConfig | None = None,
        code_may_create: bool = True,
        approve: Approve | None = None,
        hold_back: HoldBack = False,
    ) -> None:
        self._approver = None if approve is None else Approver(approve)
        self.process = process
        self._store = process.store
        context = context_for(
            process.handle,
            process.store.prefix,
            enabled=enabled,
            config=config,
            linked=linked_programs(programs or {}),
            export_root=export_root,
            preload_root=preload_root,
            wake=waker_for(
                enabled,
                process.store.url,
                process.store.prefix,
                code_starts=bool(ask or programs or commands),
            ),
            commands=commands,
            wait_for_workers=wait_for_workers,
            meter=meter,
            ask=ask,
            code_may_create=code_may_create,
            approve=self._approver,
        )
        self._toolbox = Toolbox(context, python)
        self._toolbox.require_tools(outside)
        self._offering = Offering(self._toolbox, hold_back)

    @property
    def definitions(self) -> list[Any]:
        """The tools for the Messages API: dicts with `name`, `description` and `input_schema`, typed `Any` so
        that they match the SDK's own type of a tool.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc)
        >>> [tool["name"] for tool in tools.definitions]
        ['read_fd', 'list_fds']
        """
        return self._offering.definitions

    def definitions_for(self, shape: DefinitionShape) -> list[Any]:
        """Return the tools as another API takes them.

        shape   "anthropic": as `definitions`. "openai": for Chat Completions. "openai-responses": for the
                Responses API. "mcp": `name`, `description` and `inputSchema`

        Raises `InvalidArgument` for another shape, and for one without deferred tools if they are.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc, enabled=["list_fds"])
        >>> [tool] = tools.definitions_for("openai")
        >>> tool["type"], tool["function"]["name"], tools.definitions_for("mcp")[0].keys()
        ('function', 'list_fds', dict_keys(['name', 'description', 'inputSchema']))
        """
        if self._offering.is_deferred and shape != "anthropic":
            raise InvalidArgument("shape", UNTIL_NOW)
        return in_shape(self._offering.definitions, shape)

    def runnable(self, client: Literal["anthropic"] = "anthropic") -> list[Any]:
        """Return the tools as the tool runner of the anthropic SDK takes them, your own functions too. Their
        long results are stored, and mistakes of the model are results with `is_error`.

        The runner hands on no id of a call, so calls are not keyed as with `call_id`: a function marked
        `repeatable=False` runs again if a call is repeated. The runner also turns errors of the store into
        results that the model sees.

        The runner takes its tools once, so nothing may be held back.

        Raises `InvalidArgument` for another client, and `MissingExtra` if the SDK is not installed.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc)
        >>> [tool.name for tool in tools.runnable()]  # for client.beta.messages.tool_runner(tools=...)
        ['read_fd', 'list_fds']
        """
        if client != "anthropic":
            raise InvalidArgument("client", f"there are no tools for {quoted(client)}; there are: anthropic")
        require(("anthropic",))
        from fdstore.toolset.runner_tools._async import runner_tools

        if self._offering.is_held_back or self._offering.is_deferred:
            raise InvalidArgument("hold_back", "the runner takes its tools once: leave it out")
        return list(runner_tools(self._offering.definitions, self.call))

    @property
    def instructions(self) -> str:
        """The section for the system prompt: only the enabled tools and options.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc, enabled=["read_fd"])
        >>> "read_fd" in tools.instructions, "search_fd" in tools.instructions
        (True, False)
        """
        return self._offering.instructions

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        call_id: str | None = None,
        progress: Progress | None = None,
    ) -> ToolResult:
        """Run a tool call and return its result for the model. A mistake of the model is a result with
        `is_error`. A repeated `call_id` returns the first result without running the call again; with another
        tool or other arguments it is `invalid_argument`, so use unique ids within a process. A spawn waits
        for the child to end. `progress` is called with the bytes done, and their total if it is known, during
        a search and while `put_fd` reads or `fd_to_file` writes a file; with the number of calls that the
        code of `run_python` has made.

        Raises `StoreUnavailable` and the like only if no result can be obtained at all.

        >>> d = await proc.create("one")
        >>> await tools.call("read_fd", {"fd": "fd:2"})
        ToolResult(content='<fd_error type="not_found" fd="fd:2">...', is_error=True, facts=...)
        """
        if self._approver is not None:  # awaiting only
            self._approver.loop = asyncio.get_running_loop()  # awaiting only
        operation = self._toolbox.call(name, arguments, call_id or None, progress)
        with self._toolbox.observed(name, call_id or None) as seen:
            return self._offering.load_tools(seen(await self._store.run(operation), arguments))

    async def call_all(self, blocks: Iterable[Any]) -> list[Any]:
        """Run the tool calls of one turn together, and return their `tool_result` blocks in the same order:
        the content of the next message. `blocks` is the content of the model's answer, blocks of the SDK or
        dicts; what is not a `tool_use` is skipped. The calls begin one after the other, then all are waited
        for: the agents of several spawns run at the same time.

        What the result that loads deferred tools shows stands behind the results.

        A repeated call with the same ids does nothing twice. Raises `InvalidArgument` for two calls of one
        id, and as `call` does: then call it again with the same blocks.

        >>> d = await proc.create("one")
        >>> answer = [{"type": "tool_use", "id": "toolu_1", "name": "read_fd", "input": {"fd": "fd:2"}}]
        >>> await tools.call_all(answer)
        [{'type': 'tool_result', 'tool_use_id': 'toolu_1', 'content': '<fd_error ...', 'is_error': True}]
        """
        if self._approver is not None:  # awaiting only
            self._approver.loop = asyncio.get_running_loop()  # awaiting only
        begun = []
        for call in calls_in(blocks):
            began = time.monotonic()
            with self._toolbox.observed(call.name, call.id) as seen:
                outcome = await self._store.run(self._toolbox.start(call.name, call.arguments, call.id))
                begun.append((call, seen(outcome, call.arguments), began))
        blocks, after = [], []
        for number, (call, outcome, began) in enumerate(begun, 1):
            ended = await self._store.run(self._toolbox.end(call, outcome, began))
            result = self._offering.load_tools(ended)
            blocks.append(call.result_block(result))
            if result.after:
                is_last = number == len(begun)
                after = following(result.after, number, call.name, is_clear=is_last and ended.is_text)
        return [*blocks, *after]

    @overload
    async def wrap(self, output: str, source: str = ..., call_id: str | None = ...) -> str: ...
    @overload
    async def wrap(self, output: Any, source: str = ..., call_id: str | None = ...) -> str | list[Any]: ...
    async def wrap(
        self, output: Any, source: str = "tool_result", call_id: str | None = None
    ) -> str | list[Any]:
        r"""Return the output of your own tool as the model should see it: unchanged if short, else stored as
        a descriptor and shown as its `fd_result`. A text gives a text, a JSON value its text, and a list of
        content blocks a list, of which each long text block is stored alone, see `offload`. All go into the
        `tool_result` block of the Messages API. For a failed tool, start the output with its exit code or
        error, which the model then sees first. Results of `call` need no wrapping. It cannot load
        deferred tools: use `offload` with them.

        Raises `InvalidArgument` for output that cannot be text, and for a `call_id` under which another
        output was stored; `QuotaExceeded`.

        >>> await tools.wrap("short")
        'short'
        >>> shown = await tools.wrap("a long line\n" * 1000, source="grep")
        >>> shown.startswith('<fd_result fd="fd:1" pages="4" ')
        True
        >>> await tools.wrap([{"type": "text", "text": "short"}])
        [{'type': 'text', 'text': 'short'}]
        """
        wrapped = await self._store.run(wrap(self._toolbox.context, output, source, call_id or None))
        self._offering.offer_with(wrapped.facts)
        return wrapped.content

    async def offload(
        self, value: Any, source: str = "tool_result", call_id: str | None = None, name: str | None = None
    ) -> Offloaded:
        r"""Return what a tool of your own returned or raised as the model is to see it, with its descriptor.

        value     a text, bytes, a JSON value, a list of content blocks, or an exception. Of blocks each long
                  text block is stored alone; short ones stay inline, unless they are long together: then
                  neighbours become one, or all of them. Others, such as images, stay, in the same order.
                  An exception gives `is_error` and its text, as an agent shows it
        source    where it comes from, as the model sees it
        call_id   a repeat with the same value returns the first result and stores nothing
        name      the key of the text that is stored (of blocks: the first one), which is then `name:KEY`
                  and replaces what the name meant, as with `put`. What stays inline changes no name

        Use it where another framework runs the tools. Raises `InvalidArgument` for a value that is neither
        text nor JSON, and for a `call_id` under which another value was stored; `QuotaExceeded`, and
        `StoreUnavailable` and the like: then show the model the value itself, or fail. Blocks stored before
        the error stay stored.

        >>> await tools.offload("short")
        Offloaded(content='short')
        >>> o = await tools.offload("a long line\n" * 1000, source="grep", call_id="toolu_1")
        >>> o.content.startswith('<fd_result fd="fd:1" pages="4" '), o.descriptor.lines
        (True, 1000)
        >>> (await tools.offload(ValueError("no such day"))).content
        'ValueError: no such day'
        """
        operation = offload(self._toolbox.context, value, source, call_id or None, name)
        return self._offering.load_tools(await self._store.run(operation))

    async def offload_parts(
        self,
        parts: Sequence[str | bytes | None],
        source: str = "tool_result",
        call_id: str | None = None,
        *,
        join_short: bool = True,
        is_input: bool = False,
    ) -> Offloaded:
        r"""Offload an output whose blocks have a shape of their own. Its `content` has an item for each part:
        for a text the text to show instead; for the bytes of an image or a PDF, which are stored too, the
        text to show before it; None for a part that stays as it is, such as None. Otherwise as `offload`.

        join_short  store texts that are short one by one and long together as one: it is shown in the place
                    of the first, and the items of the others are ""
        is_input    the parts are an input of the user, to which `max_input_chars` applies

        >>> o = await tools.offload_parts(["short", b"GIF89a...", None])
        >>> o.content[0], o.content[1].startswith('<fd_result fd="fd:1" '), o.content[2], o.descriptor.fd
        ('short', True, None, 'fd:1')
        """
        steps = offload_parts(
            self._toolbox.context,
            *(parts, source, call_id or None),
            join_short=join_short,
            is_input=is_input,
        )
        offloaded = await self._store.run(steps)
        self._offering.offer_with(offloaded.facts)
        return offloaded

    async def offload_file(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        source: str = "tool_result",
        call_id: str | None = None,
    ) -> Offloaded:
        r"""Store an output that a tool left in a file (a path, or a file open in binary mode), in bounded
        memory whatever its size, and return it as the model is to see it. A short one is stored as well.
        Bytes that are not UTF-8 are shown as `\xNN`. `call_id` as for `offload`; the files are not compared.

        Raises `TargetMissing`, `PathRefused`, `InvalidArgument` and `QuotaExceeded`.

        >>> o = await tools.offload_file("build.log", source="make")
        >>> o.descriptor.fd, o.descriptor.lines, o.content.startswith('<fd_result fd="fd:1" ')
        ('fd:1', 5000, True)
        """
        with open_source(file) as binary:
            operation = offload_file(self._toolbox.context, binary, source, call_id or None)
            return self._offering.load_tools(await self._store.run(operation))

    async def wrap_input(self, given: str | Sequence[Any]) -> str | list[Any]:
        """Return user input as the model should see it: a long text is stored as a descriptor and shown as
        its `fd_result`. Of a list of blocks the text blocks are stored as by `offload`. Raises
        `QuotaExceeded`.

        >>> await tools.wrap_input("Why did the build fail?")
        'Why did the build fail?'
        >>> shown = await tools.wrap_input(open("build.log").read())
        >>> [d.source for d in await proc.list()]
        ['user_input']
        """
        wrapped = await self._store.run(wrap_input(self._toolbox.context, given))
        self._offering.offer_with(wrapped.facts)
        return wrapped.content

    async def clear(
        self, messages: Sequence[Any], usage: object, *, config: ClearingConfig | None = None
    ) -> list[Any]:
        """Return the messages of a long conversation with old tool results cleared that can be read again:
        pages, searches, lists, and previews of stored texts become one line that says how. The messages given
        are not changed; pairs of calls and results stay whole.

        messages  those of the next request to the Messages API. Results are dicts
        usage     the `usage` of the last answer, or its tokens: nothing is cleared up to `clear_at_tokens`
        config    when to clear, and how much (`fdstore.ClearingConfig`)

        Use the result from then on: to clear the same messages again costs a miss of the prompt cache each
        time. At most one round trip. Raises `InvalidArgument`.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc)
        >>> await tools.clear([{"role": "user", "content": "Hello"}], {"input_tokens": 9, "output_tokens": 1})
        [{'role': 'user', 'content': 'Hello'}]
        """
        return await self._store.run(
            clear_messages(
                self._toolbox.context.handle,
                *(messages, usage, self._toolbox.definitions, config or ClearingConfig()),
            )
        )

    async def take_references(self, answer: str | Sequence[Any]) -> list[str]:
        """Store each `<ref id="NAME">...</ref>` passage of an answer (a text, or the blocks of a message) as
        `ref:NAME`, and return the ids. Raises `QuotaExceeded`.

        >>> await tools.take_references('It was <ref id="cause">a full disk</ref>.')
        ['ref:cause']
        >>> (await proc.read("ref:cause")).text
        'a full disk'
        """
        ids = await self._store.run(store_references(self._toolbox.context, answer))
        self._offering.offer_for_names(ids)
        return ids
