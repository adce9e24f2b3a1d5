"""The command line `fdstore`: the table of verbs, and the exit codes of all of them.

A verb's module is imported when the verb is called. `fdstore --help`, completion and the check of a verb's
name need only the table below, so they work without importing redis, which takes longer than most commands.

Exit codes: 1 for an error of the library, with one line on stderr; 2 for a usage error (from click; an
invalid store URL or prefix counts); 141 for a closed output pipe; 130 for Ctrl-C, and 128 + n for any other
interrupting signal n, as in a shell.
"""

from __future__ import annotations

import os
import shlex
import sys
from importlib import import_module
from typing import Any

import click

from fdstore import __version__
from fdstore.cli import output
from fdstore.cli.interrupts import Interrupted
from fdstore.cli.session import COMPLETE_VARIABLE, CliSession, common_options
from fdstore.errors import FDStoreError, PathRefused
from fdstore.setup.optional_packages import how_to_install
from fdstore.setup.url_arguments import exit_code_of

INTERRUPTED = 130
FAILED_COMPARISON = 2
"""As for grep and diff, whose exit code 1 means no match and a difference."""

VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "Start here": {
        "demo": ("fdstore.cli.demo:demo", "Show a complete example in a minute."),
        "ask": ("fdstore.cli.ask:ask", "Answer a question about files and folders of any size."),
        "init": ("fdstore.cli.check:init", "Write a commented program file to begin with."),
        "run": ("fdstore.cli.run:run", "Run an agent program."),
        "up": ("fdstore.cli.services:up", "Start a worker, and the embedded server."),
        "ui": ("fdstore.cli.ui:ui", "Serve an inspector for the browser."),
    },
    "Content": {
        "put": ("fdstore.cli.put:put", "Store files, folders, archives or standard input."),
        "mv": ("fdstore.cli.names:mv", "Rename a named content."),
        "ls": ("fdstore.cli.contents:ls", "List the descriptors of a process."),
        "stat": ("fdstore.cli.contents:stat", "Show state, sizes, origin and holders of a descriptor."),
        "read": ("fdstore.cli.reading:read", "Print pages, lines or characters of a content."),
        "cat": ("fdstore.cli.reading:cat", "Print a content of any size, text or bytes."),
        "search": ("fdstore.cli.search:search", "Print the lines that match a pattern."),
        "sql": ("fdstore.cli.sql:sql", "Run SQL over stored tables."),
        "diff": ("fdstore.cli.diff:diff", "Print what differs between two texts."),
        "tail": ("fdstore.cli.tail:tail", "Print the end of a content; -f follows it as it grows."),
        "export": ("fdstore.cli.export:export", "Write a content to a file, atomically."),
        "rm": ("fdstore.cli.space:rm", "Drop descriptors, or remove a whole tree."),
        "find": ("fdstore.cli.find:find", "Find runs by words of tasks and answers, texts by name."),
    },
    "Processes": {
        "ps": ("fdstore.cli.processes:ps", "Show processes as trees; -a ended ones, too."),
        "check": ("fdstore.cli.check:check", "Check program files and all that they link to."),
        "pipe": ("fdstore.cli.pipes:pipe", "Run commands over a content, on a worker."),
        "top": ("fdstore.cli.top:top", "Show live trees, processes, streams and workers on a screen."),
        "log": ("fdstore.cli.log:log", "Print what a process has said and done; -f goes on."),
        "export-run": (
            "fdstore.cli.export_run:export_run",
            "Write a run as one HTML page that opens anywhere.",
        ),
        "attach": ("fdstore.cli.control:attach", "Watch a running agent in short, then print its answer."),
        "questions": ("fdstore.cli.questions:questions", "Show what agents ask a person; -f goes on."),
        "answer": ("fdstore.cli.questions:answer", "Answer a question of an agent, or approve its call."),
        "python": ("fdstore.cli.python:python", "Run Python over the texts of a process, or at a prompt."),
        "resume": ("fdstore.cli.control:resume", "Run an agent on here that no worker continues."),
        "kill": ("fdstore.cli.control:kill", "Cancel a process and its descendants."),
        "worker": ("fdstore.cli.worker:worker", "Run a worker for agents and pipelines."),
    },
    "Hosts": {
        "mcp": ("fdstore.cli.mcp:mcp", "Serve a process to an MCP host."),
        "gateway": ("fdstore.cli.gateway:gateway", "Put descriptors between a host and any MCP server."),
        "token": ("fdstore.cli.token:token", "Add, list or remove tokens of callers on the network."),
        "claude-plugin": ("fdstore.cli.claude_plugin:claude_plugin", "Print the plugin for Claude Code."),
        "hook": ("fdstore.cli.hook:hook", "Set up hooks of coding hosts: `fdstore hook install HOST`."),
    },
    "Store": {
        "down": ("fdstore.cli.services:down", "Stop the worker and the embedded server; the data stays."),
        "status": ("fdstore.cli.services:status", "Show the services and the stored data."),
        "limits": ("fdstore.cli.limits:limits", "Show or set the ceilings of all trees."),
        "du": ("fdstore.cli.space:du", "Show stored bytes by tree, process or descriptor."),
        "saved": ("fdstore.cli.saved:saved", "Show what was kept out of contexts, and read back."),
        "redis-cli": ("fdstore.cli.redis_cli:redis_cli", "Run redis-cli on the store."),
        "doctor": ("fdstore.cli.upkeep:doctor", "Check this installation and its store."),
    },
    "More": {
        "gc": ("fdstore.cli.upkeep:gc", "Remove trees past their retention."),
        "redis-server": ("fdstore.cli.redis_cli:redis_server", "Run the installed redis-server."),
        "bench": ("fdstore.cli.bench:bench", "Measure fdstore against plain Redis commands."),
        "completion": ("fdstore.cli.completion:completion", "Print the completion script for a shell."),
    },
}
"""Section of the help -> verb -> ("module:attribute", line of help)."""

HIDDEN = {"holders": ("fdstore.cli.contents:holders", "Show which processes hold a content.")}
"""Verbs that work and are not listed, as in `VERBS`: `stat` shows what they show."""

MEANT = {
    "grep": "search",
    "list": "ls",
    "show": "read",
    "get": "read",
    "add": "put",
    "store": "put",
    "mcp-server": "mcp",
    "delete": "rm",
    "remove": "rm",
    "start": "up",
    "stop": "down",
    "logs": "log",
    "inspect": "ui",
    "watch": "attach",
    "cancel": "kill",
    "workers": "status",
    "repl": "python",
    "config": "init",
    "install": "hook install",
}
"""Words of other programs -> the verb that does it here."""


class Verbs(click.Group):
    """The group of all verbs. It loads the module of a verb when the verb is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for section in VERBS.values():
            for name, (_, line) in section.items():
                self.add_command(click.Command(name, help=line))
        for name, (_, line) in HIDDEN.items():
            self.add_command(click.Command(name, help=line, hidden=True))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in VERBS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in section.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        elif args == ["version"]:
            args = ["--version"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in MEANT and not ctx.resilient_parsing:
            ctx.fail(f"there is no `fdstore {args[0]}`; use `fdstore {MEANT[args[0]]}`")
        name, known, rest = super().resolve_command(ctx, args)
        if name is None or known is None:
            return name, known, rest
        if ctx.resilient_parsing:
            return name, _completing(name, known, rest), rest
        return name, load_verb(name), rest

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.ensure_object(CliSession)
        try:
            result = super().invoke(ctx)
            output.finish()
            return result
        except click.MissingParameter as error:
            raise (without_process(error) or error) from error
        except FDStoreError as error:
            output.report(error, as_json=session.as_json)
            ctx.exit(
                FAILED_COMPARISON if ctx.invoked_subcommand in ("search", "diff") else exit_code_of(error)
            )
        except BrokenPipeError:
            output.abandon()
            ctx.exit(output.READER_GONE)
        except OSError as error:
            if error.filename is None:
                raise
            refused = PathRefused(
                os.fsdecode(error.filename), (error.strerror or type(error).__name__).lower()
            )
            output.report(refused, as_json=session.as_json)
            ctx.exit(exit_code_of(refused))
        except KeyboardInterrupt as error:
            output.abandon()
            ctx.exit(128 + error.number if isinstance(error, Interrupted) else INTERRUPTED)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("fdstore", "fdstore_workers"):
                raise
            raise missing_package(ctx.invoked_subcommand or "this", error) from error


def load_verb(name: str) -> click.Command:
    """Return the verb of this name. Raises `ClickException` if this installation cannot load it."""
    home, _ = next(section[name] for section in (*VERBS.values(), HIDDEN) if name in section)
    module, _, attribute = home.partition(":")
    try:
        verb = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise click.ClickException(f"this installation has no `fdstore {name}`") from error
        raise missing_package(name, error) from error
    assert isinstance(verb, click.Command)
    return verb


def _completing(name: str, known: click.Command, words: list[str]) -> click.Command:
    """Return the verb for completion of its arguments; a stub if it cannot be loaded."""
    from fdstore.cli.completion import complete_names

    try:
        return complete_names(load_verb(name), words)
    except click.ClickException:
        return known


def without_process(error: click.MissingParameter) -> click.UsageError | None:
    """Return the error for words of which the process is missing; None for others.

    >>> from fdstore.cli.reading import read
    >>> try: read.make_context("read", ["fd:1"])
    ... except click.MissingParameter as error: print(without_process(error))
    PROC is missing before fd:1: fdstore read PROC fd:1. `fdstore ps` lists the processes.
    """
    from fdstore.store.keys import is_process

    ctx = error.ctx
    if ctx is None or not any(
        isinstance(param, click.Argument) and param.name == "process" for param in ctx.command.params
    ):
        return None
    word = ctx.params.get("process") or ""
    if word and is_process(word) and not os.path.exists(word):
        return None
    where = f" before {shlex.quote(word)}" if word else ""
    line = " ".join(filter(None, ["fdstore", ctx.info_name, "PROC", shlex.quote(word) if word else ""]))
    return click.UsageError(f"PROC is missing{where}: {line}. `fdstore ps` lists the processes.", ctx)


def missing_package(name: str, error: ModuleNotFoundError) -> click.ClickException:
    return click.ClickException(
        f"`fdstore {name}` needs the Python package {error.name!r}; "
        f"install it with: {how_to_install('agents')}"
    )


EPILOG = """\b
PROC is a process: triage, or triage.1 for its first child.
FD is a descriptor: fd:3 (or just 3), name:KEY for a named content,
  or ref:NAME for a passage that a model named.
SELECTOR is an FD or a part of one:
  fd:3#P2-4 (pages), fd:3#L10-20 (lines), name:KEY#C1-99 (characters),
  fd:3#J/key/0 (a value of JSON, by its pointer).

\b
Without --url and $FDSTORE_URL the store is an embedded Redis, which the first
command starts. `fdstore VERB --help` describes a verb."""


@click.group(
    cls=Verbs,
    params=common_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(__version__, "-V", "--version", prog_name="fdstore", message="%(prog)s %(version)s")
def cli() -> None:
    """File descriptors for LLM agents: large text lives once in Redis and is read by reference."""


def main() -> None:
    """Run the command line: the entry point."""
    if COMPLETE_VARIABLE in os.environ:
        from fdstore.cli.completion import register

        register()
    sys.exit(cli.main(prog_name="fdstore", complete_var=COMPLETE_VARIABLE))
