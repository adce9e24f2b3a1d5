"""The verb demo: a complete example with real text, a real Redis and a real worker.

In its second act a program asks a model about 40 parts of a text on a worker, whose working process is killed
meanwhile.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from fdstore.agents.runtime.periodic import run_periodically
from fdstore.cli import output
from fdstore.cli.control import load_runner
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import CliSession, verb
from fdstore.errors import FDStoreError
from fdstore.model.providers import PROVIDERS, SPEAKERS
from fdstore.setup.optional_packages import is_installed, require
from fdstore.setup.settings import DEMO_PREFIX
from fdstore.text.quantities import format_count, format_size

if TYPE_CHECKING:
    from fdstore.agents.loop.models.base import Model
    from fdstore.cli.watch import TreeWatcher
    from fdstore.client import Store
    from fdstore.model.records import AskCounts
    from fdstore.testing import Request

COMMANDS = ("grep", "sort", "uniq", "head", "cut")
"""The commands that the demo's programs run and its worker allows."""

KILL_AFTER = 10
"""The working process is killed when this many questions are answered."""

COUNT_EVERY_S = 0.02


@verb
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--live", is_flag=True, help="Ask a real model (needs ANTHROPIC_API_KEY).")
@click.option(
    "--provider",
    type=click.Choice(list(SPEAKERS.values())),
    default="anthropic",
    show_default=True,
    help="The API that the scripted model is asked by.",
)
@click.option(
    "-o", "--out", metavar="DIR", default="fdstore-demo", show_default=True, help="Directory for the report."
)
def demo(session: CliSession, file: str | None, live: bool, provider: str, out: str) -> None:
    """Show a complete example: a large tool result becomes a descriptor, child agents read it by reference;
    then a program asks a model about 40 parts of it, while a process of the worker is killed.

    Without FILE the text is the result of a search through Python's standard library. Unless --live is given,
    the model is a scripted server on this machine; Redis and the worker are real. With --live there is no
    second act: its questions would cost some dollars.
    """
    require()
    if live and not os.environ.get("ANTHROPIC_API_KEY"):
        raise click.UsageError("--live asks a real model: set ANTHROPIC_API_KEY")
    if live and provider != "anthropic":
        raise click.UsageError("--live asks Claude; leave --provider out")
    require(PROVIDERS[provider].packages, PROVIDERS[provider].extra)
    out_dir = Path(out)
    out_dir.mkdir(parents=True, exist_ok=True)
    session.prefix = session.prefix or DEMO_PREFIX
    with as_interrupts(), ExitStack() as held, session.store() as store:
        if live:
            environment: Mapping[str, str] = {}
            output.line("The model is real. Redis and the worker are too.")
        else:
            from fdstore.demo.scripted_answers import script_for
            from fdstore.testing import ScriptedModel

            model = held.enter_context(ScriptedModel(script_for(file and os.path.abspath(file))))
            environment = model.environ
            output.line("The model is a scripted server on this machine. Redis and the worker are real.")
        output.line(f"Redis: {store.where}\n")
        worker_pid = held.enter_context(demo_worker(store, environment, out_dir / "worker.log"))
        output.line(f"A worker is running (pid {worker_pid}).\n")

        def run(
            program: str, query: str, during: Callable[[str], AbstractContextManager[object]] = nullcontext
        ) -> tuple[str, TreeWatcher]:
            return _play(store, environment, out_dir, program, query, during, provider)

        process, watcher = run("triage.toml", prompt_about(file))
        _account(store, process, watcher, out_dir)
        if not live and is_installed("pydantic_monty"):
            question = f"How many functions does {_about(file)} define?"
            _play_asks(store, lambda *given: run(*given)[0], lambda: model.requests, worker_pid, question)
        _inspect(store, process)


@contextmanager
def demo_worker(store: Store, environment: Mapping[str, str], log: Path) -> Iterator[int]:
    """Run a worker for a scripted model as a child process. Yields its id."""
    from fdstore.errors import StartFailed
    from fdstore.local.server_process import wait_until
    from fdstore.local.worker import READY_S, worker_command, worker_environment
    from fdstore.store.views import worker_registry

    allowed = [word for name in COMMANDS for word in ("--allow-command", name)]
    command = worker_command("-c", "2", "--allow-python", "fdstore.demo.tools:*", *allowed)
    environment = {**worker_environment(store.url, store.prefix), **environment}
    with log.open("wb") as file:
        worker = subprocess.Popen(command, env=environment, stdout=file, stderr=file)

    def registered() -> bool:
        names = store.run(worker_registry.workers(store.prefix))
        return any(f":{worker.pid}-" in name for name in names)

    try:
        if not wait_until(lambda: registered() or worker.poll() is not None, READY_S) or worker.poll():
            last_lines = log.read_text("utf-8", "replace").strip().splitlines()[-2:] or ["no output"]
            raise StartFailed(store.where, f"the demo's worker did not start: {' / '.join(last_lines)}")
        yield worker.pid
    finally:
        worker.terminate()
        worker.wait()


def _play(
    store: Store,
    environment: Mapping[str, str],
    out_dir: Path,
    program: str,
    query: str,
    during: Callable[[str], AbstractContextManager[object]],
    provider: str,
) -> tuple[str, TreeWatcher]:
    from fdstore.agents.loop.launch import launch_root
    from fdstore.agents.loop.program_loader import load
    from fdstore.agents.runtime.waker import waker
    from fdstore.cli.watch import TreeWatcher
    from fdstore.files.permissions import Permissions
    from fdstore.model.model_servers import ModelServer
    from fdstore.store.processes import leases

    row = PROVIDERS[provider]
    load_runner(ModelServer(provider=provider))
    from fdstore.agents.loop.models.providers import open_class
    from fdstore.agents.runtime.run_process import run_process

    def model(_: ModelServer) -> Model:
        key = next(map(environment.get, row.keys), None)
        return open_class(provider)(api_key=key, base_url=environment.get(row.url))

    programs = resources.files("fdstore.demo") / "programs"
    with resources.as_file(programs / program) as path:
        bundle = load(path)
    asked = {name: replace(each, provider=provider) for name, each in bundle.programs.items()}
    bundle = replace(bundle, programs=asked)
    root = launch_root(store, bundle, query)
    watcher = TreeWatcher(store, root.id, partial(output.happening, to_stderr=False))
    with watcher.kept(), during(root.id):
        run_process(
            store,
            root.id,
            worker=leases.holder_name("demo"),
            model=model,
            wake=waker(store.url, store.prefix),
            permissions=Permissions(export_root=os.path.abspath(out_dir)),
            own=bundle,
            wait_here=True,
        )
    return root.id, watcher


def _about(file: str | None) -> str:
    return f"the file {os.path.abspath(file)}" if file else "the source of Python's standard library"


def prompt_about(file: str | None) -> str:
    """Return a long user input of the kind people paste: a question, then pages of rules."""
    about = _about(file)
    rules = "".join(
        f"Rule {number}: in part {number} of the report, name the line before you name the reason.\n"
        for number in range(1, 321)
    )
    return f"Tell me what {about} is made of, with quotations. The rules of this house follow.\n{rules}"


def _account(store: Store, process: str, watcher: TreeWatcher, out_dir: Path) -> None:
    from fdstore.store.processes.process_records import answer_of

    tree = store.tree(process)
    ended = store.run(answer_of(store.prefix, process))
    output.line(f"\n{process} {ended.record.state} with code {ended.record.exit_code}: {ended.text}")
    if ended.record.state != "exited":
        output.line(f"reason: {ended.record.reason}")
        sys.exit(1)
    output.line(
        f"\nStored once in Redis   {format_size(tree.bytes)} in {tree.fds} contents,"
        f" read by {tree.processes} processes"
        f"\nShown to the models    {format_size(watcher.chars_shown)} in all"
        f"\nThe report             {out_dir / 'report.txt'}"
    )


def _inspect(store: Store, process: str) -> None:
    from fdstore.local.redis_server import is_embedded
    from fdstore.setup import settings
    from fdstore.setup.url_options import hide_password

    largest = max(store.process(process).list(), key=lambda each: each.bytes)
    output.line("\nInspect it yourself:")
    record = f"'{store.prefix}:{{{process}}}"
    fdstore = "fdstore" if shutil.which("fdstore") else sys.argv[0]
    is_default = is_embedded(store.url) or store.url == settings.read().url
    url = "" if is_default else f" --url {hide_password(store.url)}"
    cli = cli_for(store.url) or f"{fdstore} redis-cli{url}"
    for arguments in (
        f"HGETALL {record}'",
        f"ZRANGE {record}:processes' 0 -1",
        f"HGETALL {record}:{process}:fds'",
        f"HGETALL {record}:{process}:fd:{largest.fd[3:]}'",
        f"--raw HGET {record}:{process}:fd:{largest.fd[3:]}:pages' 2",
        f"HGET {record}:{process}:fd:{largest.fd[3:]}:index' 1",
        f"LRANGE {record}:{process}:journal' 0 -1",
    ):
        output.line(f"  {cli} {arguments}")
    output.line(f"  {fdstore} --help; {fdstore} ls {process} --prefix {store.prefix}")
    output.line(
        "\nSee it in a browser; this prints the address of a page with all that has just happened:"
        f"\n  {fdstore} ui {process} --prefix {store.prefix}{url}"
    )


def cli_for(url: str) -> str | None:
    """Return the redis-cli command for the store at `url`; None without a redis-cli."""
    from fdstore.local.redis_conf import find_cli
    from fdstore.setup.url_options import hide_password

    program = find_cli()
    if program is None:
        return None
    if url.startswith("unix://"):
        return f"{program} -s {url.removeprefix('unix://')}"
    return f"{program} -u {hide_password(url)}"


def _killing(store: Store, process: str, worker_pid: int) -> AbstractContextManager[None]:
    """Kill a child of the worker while the block runs, when some questions of a process are answered."""

    def look() -> bool:
        with suppress(FDStoreError):
            done = _counts_in(store, process).done
            if done < KILL_AFTER:
                return True
            for child in _children_of(worker_pid)[:1]:
                os.kill(child, signal.SIGKILL)
                output.line(f"\n  The worker's process {child} is killed, after {done} answers.\n")
        return False

    return run_periodically(COUNT_EVERY_S, look, "demo kill")


def _counts_in(store: Store, process: str) -> AskCounts:
    """Return how many questions the code of a process has asked, and how many are answered."""
    from fdstore.model.records import AskCounts
    from fdstore.store.views.shown_processes import shown_tree

    members = store.run(shown_tree(store.prefix, process)).members
    return next((each.asks for each in members if each.asks is not None), AskCounts())


def _children_of(pid: int) -> list[int]:
    """Return the ids of the child processes of a process, oldest first; empty if they cannot be found out."""
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        listed = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True, check=True)
        pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        return sorted(child for parent, child in pairs if parent == pid)
    return []


def _play_asks(
    store: Store,
    run: Callable[[str, str, Callable[[str], AbstractContextManager[object]]], str],
    requests: Callable[[], Sequence[Request]],
    worker_pid: int,
    query: str,
) -> None:
    """Play the second act: `run` launches a program of the demo with a query and returns its process when
    that has ended; while it runs, it is in the context that its last argument makes. `requests` returns those
    to the model so far."""
    from fdstore.demo.scripted_answers import ASKS
    from fdstore.store.processes.process_records import answer_of

    output.line(f"\nAct 2: a program asks a model about {ASKS} parts of the text, and a process is killed.\n")
    before = len(requests())
    process = run("counter.toml", query, lambda process: _killing(store, process, worker_pid))
    ended = store.run(answer_of(store.prefix, process))
    counts = _counts_in(store, process)
    sent = sum(not request.tools for request in requests()[before:])
    output.line(f"\n{process} {ended.record.state} with code {ended.record.exit_code}: {ended.text}")
    if ended.record.state != "exited" or not counts.total:
        output.line(f"reason: {ended.record.reason or 'its program asked nothing'}")
        sys.exit(1)
    again = sent - counts.total
    repeated = (
        f"{format_count(again, 'request')} had no answer yet and {'was' if again == 1 else 'were'} sent again"
    )
    output.line(
        f"\nAsked                  {counts.total} questions, each answered once: {counts.done} answers"
        f"\nSent to the model      {format_count(sent, 'request')}" + (f"; {repeated}" if again else "")
    )
