"""Build the context of a `Toolset`'s tools: validated arguments, linked programs, the waker of workers.

What starts agents is imported where it is needed: a host describes our tools before it does anything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fdstore.errors import InvalidArgument, quoted
from fdstore.files.paths import Root
from fdstore.model.flags import check_flag
from fdstore.model.people import PersonAnswer, Question
from fdstore.model.records import TreeLimits
from fdstore.results.config import FDConfig
from fdstore.results.context import Context, Linked
from fdstore.results.python_config import AskConfig
from fdstore.results.token_counter import TokenCounter
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.commands import name_problem
from fdstore.tools.catalogue import BUILT_IN, FD_TOOLS, PROCESS_TOOLS, check_enabled, has_descriptors
from fdstore.tools.tool_names import ToolName

DEFAULT_TOOLS: tuple[ToolName, ...] = ("read_fd", "list_fds")


def linked_programs(programs: Mapping[str, str | os.PathLike[str]]) -> dict[str, Linked]:
    """Load the programs that may be spawned from their files. Raises `InvalidProgram`."""
    if not programs:
        return {}
    from fdstore.agents.loop.program_loader import load

    found = {}
    for alias, path in programs.items():
        bundle = load(Path(path))
        root = bundle.programs[bundle.root]
        found[alias] = Linked(
            key=bundle.root,
            description=root.description,
            digest=bundle.digest,
            bundle=bundle.json,
            preload=root.preload,
            price=root.price,
            server=root.server,
        )
    return found


def context_for(
    handle: ProcessHandle,
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
    meter: str | None = None,
    ask: AskConfig | None = None,
    code_may_create: bool = True,
    approve: Callable[[Question], PersonAnswer] | None = None,
) -> Context:
    """Build the context for a process and its enabled tools. Raises `InvalidArgument`."""
    if meter is not None and not isinstance(meter, str):
        raise InvalidArgument("meter", "must be the name of a session, a text")
    check_flag("code_may_create", code_may_create)
    check_flag("wait_for_workers", wait_for_workers)
    names = check_enabled(enabled)
    if isinstance(commands, str):
        raise InvalidArgument("commands", 'a list of programs is needed, as ["grep"]')
    for name in commands:
        if problem := name_problem(name):
            raise InvalidArgument("commands", f"{quoted(name)} {problem}")
    chosen = config or FDConfig()
    if chosen.enabled and FD_TOOLS.isdisjoint(names):
        names |= {"read_fd"}  # descriptors that the model cannot read would be useless
    settings = None
    if ask is not None:
        from fdstore.agents.loop.models.prices import priced_settings

        settings = priced_settings(ask.settings)
    context = Context(
        handle=handle,
        prefix=prefix,
        config=chosen,
        enabled=names,
        fds_on=has_descriptors(chosen, names),
        export_root=None if export_root is None else Root(os.path.abspath(export_root), make=True),
        preload_root=None
        if preload_root is None
        else Root(os.path.abspath(preload_root), kind="preload root"),
        linked=linked,
        wake=wake,
        commands=tuple(commands),
        count_tokens=TokenCounter(chosen.count_tokens),
        wait_for_workers=wait_for_workers,
        meter=meter,
        ask=settings,
        code_may_create=code_may_create,
        approve=approve,
    )
    for tool in (BUILT_IN[name] for name in enabled):
        if tool.agents_only:
            raise InvalidArgument("enabled", tool.agents_only)
        if tool.needs is not None and not tool.needs.is_met(context):
            raise InvalidArgument(tool.needs.argument, f"{tool.name} is enabled, so {tool.needs.remedy}")
    return context


def described_context(
    *,
    enabled: Sequence[str],
    config: FDConfig | None,
    export_root: str | os.PathLike[str] | None = None,
    preload_root: str | os.PathLike[str] | None = None,
    commands: Sequence[str] = (),
    meter: str | None = None,
    code_may_create: bool = True,
) -> Context:
    """Build a context without a store: to describe its tools, and to find out whether an operation needs a
    store. Raises as `context_for`."""
    return context_for(
        ProcessHandle(process_keys("fdstore", "described"), TreeLimits()),
        "fdstore",
        enabled=enabled,
        config=config,
        linked={},
        wake=do_nothing,
        export_root=export_root,
        preload_root=preload_root,
        commands=commands,
        meter=meter,
        code_may_create=code_may_create,
    )


def waker_for(
    enabled: Sequence[str], store_url: str, prefix: str, *, code_starts: bool
) -> Callable[[str], None]:
    """Return the function that wakes the workers, and first starts one for an embedded store without any; a
    no-op if none of the enabled tools needs a worker.
    `code_starts`: code of run_python may ask models or start processes. Raises `InvalidArgument`."""
    names = check_enabled(enabled)
    if PROCESS_TOOLS.isdisjoint(names) and not (code_starts and "run_python" in names):
        return do_nothing
    from fdstore.agents.runtime.local_worker import after_ensuring_worker
    from fdstore.agents.runtime.waker import waker

    return after_ensuring_worker(store_url, prefix, waker(store_url, prefix))


def do_nothing(process: str) -> None:
    """Do nothing."""
