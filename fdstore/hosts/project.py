"""The process of a project: each directory that a host of tools works in has a process of its own.

The project is the nearest directory, from the working directory upwards, that has a `fdstore.toml` or a
`.git`, else the working directory itself. Its process has the name of that directory, made valid (`My
Shop`: `my-shop`), so checkouts of one project on several machines share it on a common store. Other
projects whose directories have the same name do too, unless their `fdstore.toml` names another process:

    process = "shop"
    max_direct_output_chars = 20000      # outputs up to this size stay as they are; default 8000
"""

from __future__ import annotations

import os
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.model.msgspec_types import prepare
from fdstore.results.config import FDConfig
from fdstore.store.keys import check_root
from fdstore.store.process_names import process_name_of

FILE = "fdstore.toml"

MAX_FILE_BYTES = 65536

CONFIG = FDConfig(json_pretty_print=True)
"""The sizes of a project without others. JSON of tools is often one line, which nobody finds anything in."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project: the name of its process, and the sizes of its descriptors."""

    process: str
    config: FDConfig = CONFIG


class _File(msgspec.Struct, forbid_unknown_fields=True):
    process: str | None = None
    max_direct_output_chars: int | None = None


prepare(_File)


def project_of(cwd: str | Path) -> Project:
    """Return the project of a working directory. Raises `InvalidArgument` for an invalid `fdstore.toml`."""
    try:
        directory = Path(cwd).resolve()
    except (OSError, ValueError):  # it was removed, or the path is invalid
        return Project(process=process_name_of(""))
    for found in (directory, *directory.parents):
        if os.path.isfile(found / FILE):
            return _read(found)
        if os.path.exists(found / ".git"):
            directory = found
            break
    return Project(process=process_name_of(str(directory)))


def current_project() -> Project:
    """Return the project of the current directory. Raises as `project_of`."""
    try:
        return project_of(os.getcwd())
    except FileNotFoundError:  # it was removed
        return project_of("")


def session_name(door: str) -> str:
    """Return the name under which `fdstore saved` shows a server of this program: its start, and its process
    of the system."""
    return f"{door} {datetime.now(UTC):%Y-%m-%d %H:%M} ({os.getpid()})"


def _read(directory: Path) -> Project:
    path = directory / FILE
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InvalidArgument(FILE, f"it is longer than {MAX_FILE_BYTES} bytes")
        found = msgspec.convert(tomllib.loads(data.decode("utf-8")), _File)
    except RecursionError as error:
        raise InvalidArgument(FILE, f"{path} is nested too deeply") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidArgument(FILE, f"{path} cannot be used: {error}") from error
    return Project(
        process=process_name_of(str(directory)) if found.process is None else check_root(found.process),
        config=msgspec.structs.replace(CONFIG, max_direct_output_chars=found.max_direct_output_chars),
    )
