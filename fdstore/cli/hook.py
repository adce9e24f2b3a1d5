"""The verb hook: answer the hook of a coding host, and change the host's configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, common_options, pass_session, warn_without_server
from fdstore.errors import FDStoreError, InvalidArgument, joined
from fdstore.errors.description import describe_error
from fdstore.setup import settings
from fdstore.setup.settings import DEFAULT_PREFIX

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.hosts.hooks.install.launch import Launch
    from fdstore.setup.settings import Settings

MAX_EVENT_BYTES = 128 << 20

HOSTS = ("claude", "codex", "gemini")

NEXT = {
    "claude": "Next: claude mcp add fdstore -- {mcp}",
    "codex": "Codex asks once, when it starts, whether it may run the hook.",
    "gemini": "Gemini CLI asks once, when it starts in a project, whether it may run the hook.",
}
"""The steps of a person after the installation."""


UNCHANGED = "the output stays as it was"


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
            raise click.ClickException(joined(error.format_message(), UNCHANGED)) from error


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
def hook(session: CliSession, action: str, host: str | None, undo: bool, yes: bool, scope: str) -> None:
    """Replace long outputs of a coding host's tools by descriptors, before the model sees them.

    You need only `fdstore hook install HOST`; the host runs the rest. It shows what it changes in the host's
    configuration, asks, and writes it; --undo restores what was there. For Claude Code the plugin is
    better: `fdstore claude-plugin`.

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
    session.check_url()
    _install(session, host, undo=undo, yes=yes, scope=scope)


def _answer(session: CliSession, host: str) -> None:
    # never exit code 2: hosts show the model what was said instead of the output then
    try:
        if sys.stdin is None:
            raise InvalidArgument("event", "standard input is closed, where the host writes it")
        data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
        if len(data) > MAX_EVENT_BYTES:
            while sys.stdin.buffer.read(1 << 20):  # a host that cannot write it all may fail
                pass
            raise InvalidArgument("event", f"it is longer than {MAX_EVENT_BYTES >> 20} MB")
        answer = _answer_to(session, host, data)
        if answer is not None:
            output.document(answer)
    except FDStoreError as error:
        _say(f"{error.type}: {joined(str(error), UNCHANGED)}")
    except Exception as error:  # noqa: BLE001  not even a defect may harm the host
        _say(joined(describe_error(error), UNCHANGED))


def _say(text: str) -> None:
    output.drop_unwritable()
    try:
        output.say_of_us(text)
    except OSError:  # it may be as full as standard output
        output.abandon(sys.stderr)


def _answer_to(session: CliSession, host: str, data: bytes) -> dict[str, Any] | None:
    from fdstore.hosts.hooks.hosts import HOSTS, read_event

    event = read_event(data)
    if HOSTS[host](event, 0) is None:
        return None
    from fdstore.hosts.project import project_of

    cwd = event.get("cwd")
    project = project_of(cwd if isinstance(cwd, str) and cwd else ".")
    found = HOSTS[host](event, project.config.direct_chars)
    if found is None:
        return None
    output.check_open()  # nothing is stored that the model would not hear of
    # these take most of the time, so they are imported for long outputs only
    from fdstore.client import connect
    from fdstore.hosts.hooks.outage import leave_alone_if_away
    from fdstore.hosts.hooks.replace import replaced

    known = settings.read()

    def store() -> Store:
        return connect(session.url, session.prefix, patience=settings.HOST_PATIENCE_S)

    with leave_alone_if_away(known.data_dir, session.url or known.url):
        return replaced(found, project, store, known.claude_dir)


def _install(session: CliSession, host: str, *, undo: bool, yes: bool, scope: str) -> None:
    """Install the hook of a host, or undo that."""
    from fdstore.hosts.hooks.install import change
    from fdstore.local.data_directory import check_owner

    chosen = settings.read()
    check_owner(chosen.data_dir)
    if not undo:
        warn_without_server(session.chosen_url)
    records = chosen.data_dir / "hooks"
    path = _path(host, scope, chosen)
    launch = _launch(session, chosen)
    add, remove = _edits(host, launch)
    planned = change.undone(path, records, remove) if undo else change.installed(path, add)
    diff = planned.diff()
    if not session.as_json:
        output.line(diff.rstrip("\n") or f"{path}: there is nothing to change")
    unasked = "nothing was written: this is not a terminal; --yes writes without asking"
    written = bool(diff) and (yes or output.confirm(f"Write {path}?", without_terminal=unasked))
    if written:
        if not undo:
            _keep_url(session, chosen)
        change.write(planned, records, undo=undo)
        if undo and not any(records.glob("*.json")):
            _url_file(chosen).unlink(missing_ok=True)
    if session.as_json:
        output.document({"path": str(path), "diff": diff, "written": written})
    elif written:
        output.line(f"{path} is written.")
        if not undo:
            if _has_other_server(host, planned.before or ""):
                output.line("Your own MCP server fdstore stays as it is; it must serve the same store.")
            output.line(NEXT[host].format(mcp=launch.line("mcp")))


def _path(host: str, scope: str, chosen: Settings) -> Path:
    directories = {"claude": chosen.claude_dir, "codex": chosen.codex_dir, "gemini": chosen.gemini_dir}
    directory = directories[host] if scope == "user" else Path.cwd() / f".{host}"
    return directory / ("config.toml" if host == "codex" else "settings.json")


def _edits(host: str, launch: Launch) -> tuple[Callable[[str], str], Callable[[str], str]]:
    from fdstore.hosts.hooks.install import json_settings, toml_config

    if host == "codex":
        return lambda text: toml_config.with_hook(text, launch), toml_config.without_hook
    return (
        lambda text: json_settings.with_hook(text, host, launch),
        lambda text: json_settings.without_hook(text, host),
    )


def _has_other_server(host: str, text: str) -> bool:
    from fdstore.hosts.hooks.install import json_settings, toml_config

    if host == "codex":
        return toml_config.has_other_server(text)
    return host == "gemini" and json_settings.has_other_server(text)


def _launch(session: CliSession, chosen: Settings) -> Launch:
    from fdstore.hosts.hooks.install.launch import Launch

    options: list[str] = []
    environment = {}
    if session.chosen_url is None:
        environment = {"FDSTORE_DATA_DIR": str(chosen.data_dir.absolute())}
    else:
        options += ["--url-file", str(_url_file(chosen))]
    if session.chosen_prefix != DEFAULT_PREFIX:
        options += ["--prefix", session.chosen_prefix]
    return Launch(options=tuple(options), environment=environment)


def _url_file(chosen: Settings) -> Path:
    return chosen.data_dir.absolute() / "hooks" / "store-url"


def _keep_url(session: CliSession, chosen: Settings) -> None:
    """Write the URL of the store to a file that only this user can read."""
    from fdstore.files.target import Target

    if session.chosen_url is None:
        return
    path = _url_file(chosen)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    os.chmod(path, 0o600)
    with Target(path) as target:
        target.write(f"{session.chosen_url}\n".encode())
        target.commit()


hook.params += common_options()
