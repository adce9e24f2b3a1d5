"""Texts of errors at the command line. The library's errors name parameters of functions; here they are
replaced by the options and arguments of a verb."""

from __future__ import annotations

from fdstore.errors import (
    Conflict,
    FDStoreError,
    InvalidArgument,
    NotText,
    TargetExists,
    TargetMissing,
    quoted,
)
from fdstore.text.quantities import format_size

OPTIONS = {
    "fd": "FD",
    "file_path": "FILE",
    "page_size": "--page-size",
    "pattern": "PATTERN",
    "process": "PROC",
    "source": "--source",
    "tee": "--tee",
}
"""Parameter of the library -> its name in the help of a verb."""

PATH_CHARS = 300


def error_text(error: FDStoreError) -> str:
    """Return the text of an error for the command line.

    >>> error_text(InvalidArgument("page_size", "a whole number is needed"))
    '--page-size: a whole number is needed'
    >>> error_text(TargetExists("out.txt"))
    "the file 'out.txt' exists"
    >>> error_text(Conflict("name:plan.md", "taken"))
    'name:plan.md exists; nothing was changed'
    >>> error_text(NotText("fd:1", "application/zstd", 99)).partition("; this ")[2]
    'makes text of it: zstd -dc FILE'
    """
    match error:
        case TargetExists():
            return f"the file {quoted(error.path, PATH_CHARS)} exists"
        case TargetMissing() if "=" in error.advice:
            return f"the file {quoted(error.path, PATH_CHARS)} does not exist"
        case Conflict(found="taken"):
            return f"{error.fd} exists; nothing was changed"
        case NotText() if type(error) is NotText:
            size = format_size(error.size_bytes)
            if error.advice != NotText.advice:
                return f"{error.fd} is {error.media_type} ({size}), not text; {error.advice}"
            ways = "write it to a file with fdstore export, or pass it to a command with fdstore cat or "
            ways += f"fdstore pipe{_remedy(error.media_type)}"
            return f"{error.fd} is {error.media_type} ({size}), not text; {ways}"
        case InvalidArgument() if type(error) is InvalidArgument and error.argument in OPTIONS:
            return f"{OPTIONS[error.argument]}: {error.problem}"
    return str(error)


def _remedy(media_type: str) -> str:
    """Return the command that makes text of bytes of this kind, as the end of a sentence."""
    from fdstore.text.remedies import remedy_of_type

    remedy = remedy_of_type(media_type)
    return "" if remedy is None else f"; this makes text of it: {remedy.on('-')}"
