"""`Toolset`: an agent's descriptors in any loop, in three lines.

    tools = fdstore.Toolset(proc, enabled=["read_fd", "fd_to_file"], python=[search_code], export_root="out")
    reply = client.messages.create(tools=tools.definitions, system=tools.instructions, ...)
    result = tools.call(block.name, block.input, call_id=block.id)      # .content, .is_error

The awaiting twin is `fdstore.aio.Toolset`. Both share `tools.toolbox.Toolbox`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdstore import settings
from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.files.paths import Root
from fdstore.loading import QUEUE, require
from fdstore.store.content_info import Namespace
from fdstore.tools import fork
from fdstore.tools.config import FD_TOOLS, PROCESS_TOOLS, FDConfig, ToolName
from fdstore.tools.tool import Context, Linked, ToolResult
from fdstore.tools.toolbox import Toolbox, check_enabled
from fdstore.tools.wrapping import flattened, taken_references, wrapped_input, wrapped_once

if TYPE_CHECKING:
    from fdstore.client import Process

DEFAULT_TOOLS: tuple[ToolName, ...] = ("read_fd", "list_fds")


def linked_programs(programs: Mapping[str, str | os.PathLike[str]]) -> dict[str, Linked]:
    """The programs that may be spawned, read from their files. Raises `InvalidProgram`."""
    if not programs:
        return {}
    from fdstore.agent.program import load

    found = {}
    for alias, path in programs.items():
        bundle = load(Path(path))
        root = bundle.programs[bundle.root]
        found[alias] = Linked(
            key=bundle.root,
            description=root.description,
            digest=bundle.digest(),
            bundle=bundle.to_json(),
            preload=root.preload,
        )
    return found


def context_for(
    space: Namespace,
    prefix: str,
    *,
    enabled: Sequence[str],
    config: FDConfig | None,
    linked: dict[str, Linked],
    wake: Callable[[str], None],
    export_root: str | os.PathLike[str] | None = None,
    preload_root: str | os.PathLike[str] | None = None,
    commands: Sequence[str] = (),
    wait_for_workers: bool = True,
) -> Context:
    """What the tools of one agent work with. Raises `InvalidArgument`."""
    names = check_enabled(enabled)
    if isinstance(commands, str):
        raise InvalidArgument("commands", 'a list of programs is needed, as ["grep"]')
    if "pipe" in names and not commands:
        raise InvalidArgument("commands", "pipe is enabled, so name the programs that it may run")
    if "fd_to_file" in names and export_root is None:
        raise InvalidArgument(
            "export_root", 'fd_to_file is enabled, so name the directory that it may write below, as "out"'
        )
    if "spawn" in names and not linked:
        raise InvalidArgument("programs", "spawn is enabled, so name the programs that it may start")
    if "fork" in names:
        raise InvalidArgument("enabled", fork.NO_CONVERSATION)
    chosen = config or FDConfig()
    if chosen.enabled and FD_TOOLS.isdisjoint(names):
        names |= {"read_fd"}  # descriptors that the model cannot read would be a dead end
    fds_on = chosen.enabled if chosen.enabled is not None else not FD_TOOLS.isdisjoint(names)
    return Context(
        space=space,
        prefix=prefix,
        config=chosen,
        enabled=names,
        fds_on=fds_on,
        export_root=None if export_root is None else Root(os.path.abspath(export_root), make=True),
        preload_root=None
        if preload_root is None
        else Root(os.path.abspath(preload_root), kind="preload root"),
        linked=linked,
        wake=wake,
        commands=tuple(commands),
        wait_for_workers=wait_for_workers,
    )


def waker(store_url: str, prefix: str, broker_url: str | None = None) -> Callable[[str], None]:
    """Sends wake-ups to the workers of a store, through `broker_url` or `$FDSTORE_BROKER_URL` if that is
    not in the store's Redis; the connection is made when the first is sent. One that cannot be sent is
    no error: the workers' sweep finds the process.

    Raises `InvalidArgument` for a URL that cannot be a queue's, as that of a Cluster, and `MissingExtra`."""
    require(QUEUE)
    from fdstore.runtime.queue import Dispatcher, find_broker

    broker = broker_url or settings.read().broker_url
    find_broker(store_url, broker)
    made: list[Dispatcher] = []

    def wake(process: str) -> None:
        if not made:
            made.append(Dispatcher(store_url, broker, prefix=prefix))
        try:
            made[0].wake(process)
        except FDStoreError:
            return

    return wake


def waker_for(enabled: Sequence[str], store_url: str, prefix: str) -> Callable[[str], None]:
    """What wakes the workers for an agent with these tools; one that needs no worker needs no queue.
    Raises `InvalidArgument`."""
    return nobody if PROCESS_TOOLS.isdisjoint(check_enabled(enabled)) else waker(store_url, prefix)


def nobody(process: str) -> None:
    """Wakes nobody."""


class Toolset:
    r"""The tools of one process, for a loop of your own.

    enabled      names of built-in tools (default: read_fd and list_fds): read_fd search_fd list_fds
                 write_fd fd_to_file close_fd spawn pipe wait kill; a loop of your own has no fork
    config       sizes and switches (`FDConfig`)
    python       functions of yours, offered as tools: typed parameters, a docstring. They may be coroutine
                 functions, each run to its end in a thread
    programs     {"name": "file.toml"} that `spawn` may start on the workers
    commands     programs that `pipe` may run on the workers, by their bare names
    export_root  the directory that `fd_to_file` writes below, made if it is not there; needed for it
    preload_root the directory that `spawn` may take files from, if any
    wait_for_workers  without it `spawn` and `pipe` raise `NoWorker` when no worker lives that could run
                 what they start; with it that waits for one, and a warning is logged after 3 s

    Raises `InvalidArgument` for a tool or function that cannot be, `InvalidProgram`, and `MissingExtra` for
    a tool that needs workers where the packages that reach them are not installed.

    >>> tools = fdstore.Toolset(proc, enabled=["read_fd"])
    >>> d = proc.create("one\ntwo\n")
    >>> result = tools.call("read_fd", {"fd": "fd:1#L2"})
    >>> print(result.content)
    <fd_content fd="fd:1" pages="1" ... mode="line" start="2" count="1">
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
    ) -> None:
        self._store = process.store
        context = context_for(
            process.space,
            process.store.prefix,
            enabled=enabled,
            config=config,
            linked=linked_programs(programs or {}),
            export_root=export_root,
            preload_root=preload_root,
            wake=waker_for(enabled, process.store.url, process.store.prefix),
            commands=commands,
            wait_for_workers=wait_for_workers,
        )
        self._toolbox = Toolbox(context, python)

    @property
    def definitions(self) -> list[Any]:
        """The tools as the Messages API takes them: dicts with `name`, `description` and `input_schema`,
        typed `Any` so that they fit the SDK's own type of a tool.

        >>> proc = store.process("triage")
        >>> tools = fdstore.Toolset(proc)
        >>> [tool["name"] for tool in tools.definitions]
        ['read_fd', 'list_fds']
        """
        return self._toolbox.definitions

    @property
    def instructions(self) -> str:
        """What to put into the system prompt: just the tools and switches that are on.

        >>> proc = store.process("triage")
        >>> tools = fdstore.Toolset(proc, enabled=["read_fd"])
        >>> "read_fd" in tools.instructions, "search_fd" in tools.instructions
        (True, False)
        """
        return self._toolbox.instructions

    def call(self, name: str, arguments: dict[str, Any], call_id: str | None = None) -> ToolResult:
        """Run a call of the model and return what it is to see. What the model got wrong is a result with
        `is_error`. The same `call_id` twice does the work once; with another tool or other arguments it is
        `invalid_argument`, so number the calls of a process throughout. A spawn waits for the child to end.

        Raises `StoreUnavailable` and the like only when no result can be had at all.

        >>> d = proc.create("one")
        >>> tools.call("read_fd", {"fd": "fd:2"})
        ToolResult(content='<fd_error type="not_found" fd="fd:2">...', is_error=True)
        """
        return self._store.run(self._toolbox.call(name, arguments, call_id or None))

    def wrap(self, output: Any, source: str = "tool_result", call_id: str | None = None) -> str:
        r"""Return the output of a tool of your own as the model is to see it: itself when short, else the
        `fd_result` of a descriptor made of it. What is no text (content blocks, JSON values) becomes
        one. For a tool that failed, begin with its exit code or error: that is what the model is
        shown first. What `call` returned is finished and needs no wrapping.

        Raises `InvalidArgument` for what cannot be text, and for a `call_id` under which another output
        was stored; `QuotaExceeded`.

        >>> tools.wrap("short")
        'short'
        >>> shown = tools.wrap("a long line\n" * 1000, source="grep")
        >>> shown.startswith('<fd_result fd="fd:1" pages="4" ')
        True
        """
        return self._store.run(
            wrapped_once(self._toolbox.context, flattened(output), source, call_id or None)
        )

    def wrap_input(self, given: str | Sequence[Any]) -> str | list[Any]:
        """Return user input as the model is to see it: a long text, or each long text block of a list, as
        the `fd_result` of a descriptor made of it. Raises `QuotaExceeded`.

        >>> tools.wrap_input("Why did the build fail?")
        'Why did the build fail?'
        >>> shown = tools.wrap_input(open("build.log").read())
        >>> [d.source for d in proc.list()]
        ['user_input']
        """
        return self._store.run(wrapped_input(self._toolbox.context, given))

    def take_references(self, answer: str | Sequence[Any]) -> list[str]:
        """Store each `<ref id="NAME">...</ref>` passage of an answer (a text, or the blocks of a
        message) as `ref:NAME`, and return these ids. Raises `QuotaExceeded`.

        >>> tools.take_references('It was <ref id="cause">a full disk</ref>.')
        ['ref:cause']
        >>> proc.read("ref:cause").text
        'a full disk'
        """
        return self._store.run(taken_references(self._toolbox.context, answer))
