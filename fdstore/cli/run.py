"""The verb run: an agent program, with its root in this process and spawned agents on workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.control import interrupt_option, load_runner, quiet_option, run_here
from fdstore.cli.session import CliSession, verb
from fdstore.setup.optional_packages import require

if TYPE_CHECKING:
    from fdstore.agents.loop.program_loader import Bundle
    from fdstore.client import Store
    from fdstore.model.records import TreeLimits


@verb
@click.argument("program", metavar="PROGRAM.toml", type=click.Path(path_type=Path))
@click.option("-p", "--prompt", metavar="TEXT", help="The task of the agent.")
@click.option("-f", "--file", metavar="FILE", help="Read the task from a file; - is standard input.")
@click.option("--name", metavar="NAME", help="Name of the new process. [default: PROGRAM-xxxxxx]")
@click.option("--detach", is_flag=True, help="Let workers run it, and return immediately.")
@interrupt_option("cancel")
@quiet_option
def run(
    session: CliSession,
    program: Path,
    prompt: str | None,
    file: str | None,
    name: str | None,
    detach: bool,
    quiet: bool,
    on_interrupt: str,
) -> None:
    """Run an agent program and print its answer.

    The answer goes to standard output; events, and what its functions print, go to standard error. The exit
    code is 0 if the agent succeeded, else 1. Needs the key of the model's provider, as ANTHROPIC_API_KEY.
    """
    from fdstore.agents.loop.launch import launch_root
    from fdstore.agents.loop.program_loader import load
    from fdstore.agents.runtime.waker import waker
    from fdstore.files.permissions import Permissions
    from fdstore.local.redis_server import is_embedded
    from fdstore.tools.catalogue import BUILT_IN

    require()
    if prompt is not None and file is not None:
        raise click.UsageError("give the task with -p or with -f, not both")
    query = read_text(file) if file is not None else prompt
    bundle = load(program)
    for warning in bundle.warnings:
        output.say(f"fdstore: warning: {warning}")
    with session.store() as store:
        if is_embedded(store.url):
            bundle = bundle.exporting_below(os.getcwd())
        wake = waker(store.url, store.prefix)
        root_program = bundle.programs[bundle.root]
        on_workers = detach or on_interrupt == "leave"
        tools = [BUILT_IN[name] for name in root_program.tools]
        starts = {tool.starts for tool in tools if tool.works_with(root_program)}
        # code of run_python asks models, on workers
        agents = on_workers or "agents" in starts or "run_python" in root_program.tools
        if agents or "commands" in starts:
            workers_for(session, store, bundle, agents=agents)
        if not detach:
            load_runner(root_program.server)
        root = launch_root(store, bundle, query, name)
        for warning in lowered_limits(root_program.tree_limits, root.handle.limits):
            output.say(f"fdstore: warning: {warning}")
        if detach:
            wake(root.id)
            session.show({"process": root.id}, root.id)
            return
        # the user's own program: it may use everything it names
        run_here(
            session,
            store,
            root.id,
            permissions=Permissions(),
            own=bundle,
            quiet=quiet,
            on_interrupt=on_interrupt,
        )


def lowered_limits(asked: TreeLimits, held: TreeLimits) -> list[str]:
    """Return warnings about limits that a program names and the operator's ceilings lower. Other limits are
    lowered silently."""
    from fdstore.cli.limits import format_value
    from fdstore.store.trees.ceilings import CEILINGS

    return [
        f"[limits] {name} {format_value(getattr(asked, name), ceiling.unit)} is more than this store allows: "
        f"{format_value(getattr(held, name), ceiling.unit)} holds (fdstore limits)"
        for name, ceiling in CEILINGS.items()
        if name in asked.__struct_fields__
        and getattr(asked, name) != getattr(type(asked)(), name)
        and getattr(held, name) < getattr(asked, name)
    ]


def read_text(file: str) -> str:
    """Return the text of a file, or of standard input for -; what is not UTF-8 in it as backslash escapes.
    Raises `TargetMissing`, `PathRefused`, `InvalidArgument`."""
    from fdstore.cli.members import open_stdin
    from fdstore.files.source import next_block, open_source

    with open_stdin() if file == "-" else open_source(file) as binary:
        return next_block(binary, -1).decode("utf-8", "backslashreplace")


def workers_for(session: CliSession, store: Store, *bundles: Bundle, agents: bool) -> None:
    """Provide a worker for agents, or for pipelines alone: on the embedded store, start one with this
    command's environment. Warn if no worker runs them."""
    from fdstore.agents.runtime.local_worker import background_worker, renew_if_idle, warn_of_misfits
    from fdstore.store.views import worker_check

    background = background_worker(store.url, store.prefix)
    programs = [program for bundle in bundles for program in bundle.programs.values()]
    functions = any(program.python for program in programs)
    servers = {each for program in programs for each in program.servers} if agents else set()
    variables = tuple(each.api_key_env for each in servers if each.api_key_env)
    if session.chosen_url is None:
        renew_if_idle(store, background, for_functions=functions, say=output.say_of_us, variables=variables)
        background.ensure()
    asked = sorted(servers, key=repr)
    if problem := store.run(worker_check.no_worker(store.prefix, for_agents=agents, servers=asked)):
        waiting = "Agents" if agents else "Pipelines"
        output.say(f"fdstore: {store.where}: {problem}. {waiting} wait for one")
    elif session.chosen_url is not None:
        warn_of_misfits(background, for_functions=functions, say=output.say_of_us, variables=variables)
