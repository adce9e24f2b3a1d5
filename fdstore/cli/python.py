"""The verb python: the interpreter of `run_python` over the texts of a process, at a prompt or once."""

from __future__ import annotations

import ast
import codeop
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click
import msgspec

from fdstore.cli import output
from fdstore.cli.interrupts import calling_at_ctrl_c
from fdstore.cli.person_prompt import asking_here
from fdstore.cli.session import CliSession, verb
from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.model.lifecycle import BUSY, ENDED
from fdstore.setup.optional_packages import QUEUE, is_installed, require
from fdstore.setup.signal_waits import SIGNALS_SEEN_S

if TYPE_CHECKING:
    from fdstore.client import Process, Store
    from fdstore.programs.console import Console, Ran
    from fdstore.programs.host import Starters
    from fdstore.results.context import Context, Linked
    from fdstore.wire.operation import Operation

HISTORY_LINES = 1000

HELP = """\
fd("fd:1") is a text, fds() lists all; print(text.total_lines), text.search("ERROR"), text.lines(1, 20).
A block ends with an empty line. Ctrl-C ends what runs, Ctrl-D or exit() leaves."""


@verb
@click.argument("process", metavar="PROC")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@click.option("-c", "--code", metavar="CODE", help="Run this code, and leave.")
@click.option(
    "--ask-model", metavar="NAME", help="The model that `ask` asks, on workers. [env: FDSTORE_ASK_MODEL]"
)
@click.option(
    "--link",
    "links",
    metavar="NAME=FILE.toml",
    multiple=True,
    help="An agent program that `spawn` may start on workers, and its name in code; may be repeated.",
)
def python(
    session: CliSession,
    process: str,
    file: str | None,
    code: str | None,
    ask_model: str | None,
    links: tuple[str, ...],
) -> None:
    """Run Python over the texts of a process: the code in FILE (- is standard input), -c CODE, or a prompt.

    It is the interpreter that agents have with run_python: fd("fd:1") is a text, fds() lists them all,
    create() stores one, and there are no files, no network and no packages. What it leaves is the session of
    the process: an agent that continues there has its variables, and you have those of the agent. While the
    process runs, and after its end, they can be looked at, and what you assign is not kept.

    \b
    fdstore python ask-k3v9qd
    fdstore python triage -c 'print(fd("fd:1").total_lines)'
    fdstore python triage count.py --ask-model claude-haiku-4-5
    fdstore python triage --link reader=reader.toml -c 'r = await spawn("reader", "Why?", fd(1)); r.answer'
    fdstore python triage -c 'r = await pipe([["sort"], ["uniq", "-c"]], fd(1)); print(r.fd.text())'

    What code asks with `ask`, and starts with `spawn` and `pipe`, runs on workers: on the embedded store one
    is started if none runs, of another store they must be there. `pipe` runs the commands that they allow.
    An agent of --link that asks a person is answered at this terminal, or by `fdstore answer`.

    The value of the last expression is printed, too. The exit code is 1 if the code raises an error.
    """
    from fdstore.client import Process
    from fdstore.programs.console import Console
    from fdstore.programs.interpreter.pool import EXTRA, PACKAGE
    from fdstore.setup import settings
    from fdstore.store.processes.process_records import record
    from fdstore.store.processes.processes import open_child
    from fdstore.toolset.build import linked_programs

    if code is not None and file is not None:
        raise click.UsageError("give the code with -c or in a file, not both")
    if code is None and file is None and not output.stdin_is_terminal():
        file = "-"
    if session.as_json and code is None and file is None:
        raise click.UsageError("--json needs code: -c CODE, or a file")
    require((PACKAGE,), EXTRA)
    linked = linked_programs(_named(links))
    if file is not None:
        from fdstore.cli.run import read_text

        code = read_text(file)
    with session.store() as store:
        opened = Process(store, store.run(open_child(store.prefix, process)))
        context = _context(session, store, opened, ask_model or settings.read().ask_model, linked)
        state = store.run(record(store.prefix, process)).state
        if state in BUSY or state in ENDED:
            output.note(
                f"fdstore: {process} is {state}: its variables are there, what you assign is not kept"
            )
        console = Console(context, _starters(context), keeps=state == "open")
        if code is not None:
            _run_once(session, store, process, console, code)
        else:
            _prompt(store, process, console)


def _named(links: Sequence[str]) -> dict[str, str]:
    """Return the files of linked programs by their names in code."""
    found = {}
    for link in links:
        name, equals, path = link.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"{link!r} is not NAME=FILE.toml", param_hint="--link")
        if name in found:
            raise click.BadParameter(f"{name!r} names two programs", param_hint="--link")
        found[name] = path
    return found


def _context(
    session: CliSession, store: Store, process: Process, ask_model: str | None, linked: dict[str, Linked]
) -> Context:
    from fdstore.agents.loop.bundle import Bundle
    from fdstore.local.redis_server import is_embedded
    from fdstore.results.python_config import AskConfig
    from fdstore.toolset.build import context_for, do_nothing, waker_for

    wake: Callable[[str], None] = do_nothing
    ask = AskConfig(model=ask_model) if ask_model else None
    bundles = [Bundle.from_json(each.bundle) for each in linked.values()]
    if ask_model:
        from fdstore.agents.loop.questions import question_bundle

        bundles.append(question_bundle(ask_model))
    if bundles:
        from fdstore.cli.run import workers_for

        require()
        workers_for(session, store, *bundles, agents=True)
    if all(map(is_installed, QUEUE)):
        wake = waker_for(["run_python"], store.url, store.prefix, code_starts=True)
    return context_for(
        process.handle,
        store.prefix,
        enabled=["run_python"],
        config=None,
        linked=linked,
        wake=wake,
        ask=ask,
        wait_for_workers=is_embedded(store.url),  # there the first process starts one
    )


def _starters(context: Context) -> Starters:
    """Return the functions that start agents of the linked programs, and pipelines of any commands: the
    workers decide which they run."""
    from fdstore.programs.host import Starters
    from fdstore.text.commands import programs_in
    from fdstore.tools.built_in.run_python import starters_for

    def start_agent(program: str, query: str, refs: list[str], slot: str) -> Operation[str]:
        if not context.linked:
            raise InvalidArgument("spawn", "no programs are linked; start with --link NAME=FILE.toml")
        return (yield from starters_for(context).spawn(program, query, refs, slot))

    def start_commands(commands: list[str], ref: str | None, slot: str) -> Operation[str]:
        require(QUEUE)
        allowing = msgspec.structs.replace(context, commands=programs_in(commands))
        return (yield from starters_for(allowing).pipe(commands, ref, slot))

    return Starters(spawn=start_agent, pipe=start_commands)


def _run(store: Store, process: str, console: Console, code: str) -> Ran:
    """Run code in another thread, so that Ctrl-C can end it. What agents that it starts ask a person is asked
    here meanwhile. Raises what the run raises, and
    `KeyboardInterrupt` when an interrupted run has ended."""
    found: list[Ran | BaseException] = []
    operation = console.run(code)

    def work() -> None:
        try:
            found.append(store.run(operation))
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            found.append(error)

    thread = threading.Thread(target=work, name="python", daemon=True)
    with calling_at_ctrl_c(console.interrupt) as is_interrupted, asking_here(store, process):
        thread.start()
        while thread.is_alive():
            thread.join(SIGNALS_SEEN_S)
    if is_interrupted():
        raise KeyboardInterrupt
    [ended] = found
    if isinstance(ended, BaseException):
        raise ended
    return ended


def _run_once(session: CliSession, store: Store, process: str, console: Console, code: str) -> None:
    ran = _run(store, process, console, code)
    if session.as_json:
        output.document(ran)
    else:
        _show(ran)
    _leave_on_error(ran)


def _leave_on_error(ran: Ran) -> None:
    if ran.error is not None:
        output.finish()
        sys.exit(1)


def _show(ran: Ran) -> None:
    if ran.note:
        output.say(f"fdstore: {ran.note.rstrip()}")
    if ran.printed:
        output.content(ran.printed.encode("utf-8", "backslashreplace"))
        if output.stdout_is_terminal() and not ran.printed.endswith("\n"):
            output.line()
    if ran.value is not None:
        output.line(ran.value)
    if ran.error is not None:
        output.errors(f"{ran.error}\n")


def _prompt(store: Store, process: str, console: Console) -> None:
    """Read and run code until Ctrl-D, or until the code ends itself, as by `exit()`."""
    output.note(HELP.splitlines()[0])
    output.note(HELP.splitlines()[1])
    with _history():
        lines: list[str] = []
        while True:
            try:
                lines.append(input("... " if lines else ">>> "))
                code = "\n".join(lines)
                if not is_complete(code):
                    continue
                lines = []
                if not code.strip():
                    continue
                ran = _run(store, process, console, code)
                _show(ran)
                if ran.exited:
                    _leave_on_error(ran)
                    return
            except EOFError:
                output.line()
                return
            except KeyboardInterrupt:
                lines = []
                output.line()
                output.say("KeyboardInterrupt")
            except FDStoreError as error:
                output.report(error, as_json=False)


def is_complete(code: str) -> bool:
    r"""Return whether typed lines can be run: a block is complete after an empty line. What Python cannot
    parse is complete as well: the interpreter says what is wrong.

    >>> is_complete("x = 1"), is_complete("for x in y:"), is_complete("for x in y:\n    await x")
    (True, False, False)
    >>> is_complete("for x in y:\n    await x\n"), is_complete("x = )"), is_complete("print(")
    (True, True, False)
    >>> is_complete("-" * 3000 + "1"), is_complete("-" * 9999 + "1")
    (True, True)
    """
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        return compiler(code, "<input>", "single") is not None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return True  # the last two are of code that is nested too deeply


@contextmanager
def _history() -> Iterator[None]:
    """Keep the lines that are typed in the block for later prompts, with the editing of lines if this Python
    has it."""
    from fdstore.setup import settings

    file = settings.read().data_dir / "python_history"
    with suppress(ImportError, OSError):
        import readline

        readline.set_history_length(HISTORY_LINES)
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(ImportError, OSError):
            import readline

            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
