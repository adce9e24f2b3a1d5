"""`fdstore gateway --wrap` and `--unwrap`: change a host's configuration file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fdstore.cli import output
from fdstore.errors import InvalidArgument, TargetMissing, WriteFailed
from fdstore.integrations.gateway.wrap import unwrap_config, wrap_config
from fdstore.integrations.gateway.wrap_code import unwrap_for_code, wrap_for_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fdstore.cli.session import CliSession
    from fdstore.integrations.gateway.wrap import WrapChange


def change_file(
    session: CliSession,
    file: Path,
    out: str | None,
    options: Sequence[str],
    *,
    tools: str | None = None,
    unwrap: bool,
    as_one: bool = False,
) -> None:
    """Wrap or unwrap the servers of a configuration, each or with `as_one` together, and print what was done
    to each. Raises `InvalidArgument`, `TargetMissing`, `WriteFailed`."""
    if file.exists() and not file.is_file():
        raise InvalidArgument(str(file), "it is not a regular file")
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise TargetMissing(str(file), "name the configuration of a host, as .mcp.json") from error
    except (OSError, ValueError) as error:
        raise InvalidArgument(str(file), f"it cannot be read as JSON: {error}") from error
    try:
        if unwrap:
            new, changes = unwrap_for_code(text)
            if not changes:
                new, changes = unwrap_config(text)
        elif as_one:
            own = [] if tools is None else ["--tools", tools]
            new, changes = wrap_for_code(text, launcher(), [*options, *own])
        else:
            new, changes = wrap_config(text, launcher(), options, tools=tools)
    except InvalidArgument as error:
        raise InvalidArgument(str(file), error.problem) from error
    if out == "-":
        output.content(new.encode("utf-8"))
        _print(session, changes, to_stderr=True)
        return
    target = Path(out) if out is not None else file
    if out is not None or new != text:
        _write(target, new, like=file)
    _print(session, changes)


def launcher() -> list[str]:
    """Return the words that start this command wherever the host starts it: this Python, which imports no
    module of the current directory (`-P`)."""
    return [sys.executable, "-P", "-m", "fdstore"]


def _print(session: CliSession, changes: Sequence[WrapChange], *, to_stderr: bool = False) -> None:
    for change in changes:
        if to_stderr:
            output.say(f"{change.action:9}  {change.server}: {change.detail}")
        elif session.as_json:
            output.document(change)
        else:
            output.line(f"{change.action:9}  {change.server}: {change.detail}")


def _write(target: Path, text: str, like: Path) -> None:
    """Replace a file in one step, with the permissions of `like`: it may hold passwords."""
    target = target.resolve()  # a link stays a link
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode("utf-8"))
        os.chmod(fresh, like.stat().st_mode & 0o777)
        os.replace(fresh, target)
    except (OSError, UnicodeEncodeError) as error:
        fresh.unlink(missing_ok=True)
        raise WriteFailed(str(target), getattr(error, "strerror", None) or str(error)) from error
