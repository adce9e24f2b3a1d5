"""The verb hook: answer the hook of a coding host, and change the host's configuration."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.session import Session, common_options, pass_session
from fdstore.errors import FDStoreError, InvalidArgument

if TYPE_CHECKING:
    from fdstore.client import Store

MAX_EVENT_BYTES = 128 << 20

HOSTS = ("claude", "codex", "gemini")


class HookCommand(click.Command):
    """A command whose usage errors are no exit code 2 when a host runs it: hosts take what was said then for
    the output of the tool."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        by_host = args[:1] != ["install"] and not output.stdin_is_terminal()
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if not by_host:
                raise
            raise click.ClickException(f"{error.format_message()}; the output stays as it was") from error


@click.command(cls=HookCommand)
@click.argument("action", type=click.Choice([*HOSTS, "install"]), metavar="[claude|codex|gemini|install]")
@click.argument("host", type=click.Choice(HOSTS), metavar="[HOST]", required=False)
@click.option("--undo", is_flag=True, help="With install: take it back.")
@click.option("-y", "--yes", is_flag=True, help="With install: do not ask for confirmation.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="With install: the configuration of this user, or of the working directory.",
)
@pass_session
def hook(session: Session, action: str, host: str | None, undo: bool, yes: bool, scope: str) -> None:
    """Replace long outputs of a coding host's tools by descriptors, before the model sees them.

    `install HOST` shows what it changes in the host's configuration, asks, and writes it; --undo restores
    what was there. For Claude Code the plugin is better: `fdstore claude-plugin`.

    The host then runs `fdstore hook HOST` after calls of its tools, with the event as JSON on standard
    input. An output of more than 8000 characters is stored in the project's process, and the answer
    replaces it by its first page, its end and its id. Shorter ones, those of fdstore's own tools, and what
    is not understood stay as they are; so do all if the store cannot be reached, which is said on standard
    error. The exit code is 0.

    The project is the nearest directory, from the working directory upwards, that has a fdstore.toml or a
    .git, else the working directory. Its process has its name, or the one in its
    fdstore.toml; `fdstore mcp` serves the same:

    \b
    process = "shop"
    max_direct_output_chars = 20000

    \b
    fdstore hook install codex
    fdstore hook install codex --undo
    """
    if action != "install":
        if host or undo or yes:
            raise click.UsageError("HOST, --undo and --yes belong to install")
        _answer(session, action)
        return
    if host is None:
        raise click.UsageError("name the host: fdstore hook install claude|codex|gemini")
    from fdstore.cli.hook_install import install

    session.check_url()
    install(session, host, undo=undo, yes=yes, scope=scope)


def _answer(session: Session, host: str) -> None:
    # never exit code 2: hosts show the model what was said instead of the output then
    try:
        data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
        if len(data) > MAX_EVENT_BYTES:
            while sys.stdin.buffer.read(1 << 20):  # a host that cannot write it all may fail
                pass
            raise InvalidArgument("event", f"it is longer than {MAX_EVENT_BYTES >> 20} MB")
        answer = _answer_to(session, host, data)
    except FDStoreError as error:
        output.say(f"fdstore: {error.type}: {error}; the output stays as it was")
        return
    except Exception as error:  # noqa: BLE001  not even a defect may harm the host
        output.say(f"fdstore: {type(error).__name__}: {error}; the output stays as it was")
        return
    if answer is not None:
        output.document(answer)


def _answer_to(session: Session, host: str, data: bytes) -> dict[str, Any] | None:
    from fdstore.integrations.hooks.hosts import HOSTS, read_event

    event = read_event(data)
    if HOSTS[host](event, 0) is None:
        return None
    from fdstore.integrations.project import project_of

    cwd = event.get("cwd")
    project = project_of(cwd if isinstance(cwd, str) and cwd else ".")
    found = HOSTS[host](event, project.config.direct_chars)
    if found is None:
        return None
    # these take most of the time, so they are imported for long outputs only
    from fdstore import settings
    from fdstore.client import connect
    from fdstore.integrations.hooks.outage import leave_alone_if_away
    from fdstore.integrations.hooks.replace import replaced

    known = settings.read()

    def store() -> Store:
        return connect(session.url, session.prefix, patience=settings.HOST_PATIENCE_S)

    with leave_alone_if_away(known.data_dir, session.url or known.url):
        return replaced(found, project, store, known.claude_dir)


hook.params += common_options()
