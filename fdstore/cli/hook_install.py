"""`fdstore hook install`: show the change of a host's configuration, ask, and write it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import Session
from fdstore.settings import DEFAULT_PREFIX

if TYPE_CHECKING:
    from fdstore.integrations.hooks.install.launch import Launch
    from fdstore.settings import Settings

NEXT = {
    "claude": "Next: claude mcp add fdstore -- {mcp}",
    "codex": "Codex asks once, when it starts, whether it may run the hook.",
    "gemini": "Gemini CLI asks once, when it starts in a project, whether it may run the hook.",
}


def install(session: Session, host: str, *, undo: bool, yes: bool, scope: str) -> None:
    """Install the hook of a host, or undo that."""
    from fdstore import settings
    from fdstore.integrations.hooks.install import change
    from fdstore.local.data_directory import check_owner

    chosen = settings.read()
    check_owner(chosen.data_dir)
    records = chosen.data_dir / "hooks"
    path = _path(host, scope, chosen)
    launch = _launch(session, chosen)
    add, remove = _edits(host, launch)
    planned = change.undone(path, records, remove) if undo else change.installed(path, add)
    diff = planned.diff()
    if not session.as_json:
        output.line(diff.rstrip("\n") or f"{path}: there is nothing to change")
    written = bool(diff) and (yes or _agreed(path))
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
    from fdstore.integrations.hooks.install import json_settings, toml_config

    if host == "codex":
        return lambda text: toml_config.with_hook(text, launch), toml_config.without_hook
    return (
        lambda text: json_settings.with_hook(text, host, launch),
        lambda text: json_settings.without_hook(text, host),
    )


def _has_other_server(host: str, text: str) -> bool:
    from fdstore.integrations.hooks.install import json_settings, toml_config

    if host == "codex":
        return toml_config.has_other_server(text)
    return host == "gemini" and json_settings.has_other_server(text)


def _launch(session: Session, chosen: Settings) -> Launch:
    from fdstore.integrations.hooks.install.launch import Launch

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


def _keep_url(session: Session, chosen: Settings) -> None:
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


def _agreed(path: Path) -> bool:
    agreed = output.confirm(f"Write {path}?")
    if agreed is None:
        raise click.UsageError("nothing was written: this is not a terminal; --yes writes without asking")
    return agreed
