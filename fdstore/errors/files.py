"""Errors about files: import, export and permitted paths."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, NotAllowed, given, quoted

SHOWN_PATH = 300
"""The most characters of a path that are shown."""


class TargetExists(FDStoreError):
    """The file exists, and the caller requires that it does not."""

    type = "file_exists"
    remedy = "Use another name, or `exist_ok=True`."
    sample = given("out.txt")

    path: str

    def __str__(self) -> str:
        return f"the file {quoted(self.path, SHOWN_PATH)} exists; use exist_ok=true or another name"


class TargetMissing(FDStoreError):
    """The file does not exist, and the caller reads it or does not allow creating it."""

    type = "file_not_found"
    remedy = "Use a file that exists, or `create=True`."
    sample = given("out.txt")

    path: str
    advice: str = "use create=true to make it"

    def __str__(self) -> str:
        return f"the file {quoted(self.path, SHOWN_PATH)} does not exist; {self.advice}"


class PathRefused(NotAllowed):
    """The path may not be used: outside the root, hidden, through a link, or not a regular file."""

    sample = given("../secret", "it leaves the export root")

    path: str
    problem: str

    def __init__(self, path: str, problem: str) -> None:
        FDStoreError.__init__(self, path, problem)

    def __str__(self) -> str:
        return f"the path {quoted(self.path, SHOWN_PATH)} cannot be used: {self.problem}"


class WriteFailed(FDStoreError):
    """The write failed; the old file is unchanged."""

    type = "write_error"
    says = "writing {what} failed and changed nothing: {problem}"
    remedy = "Make room, or mend the directory, and repeat. The old file is unchanged."
    sample = given("out.txt", "No space left on device")

    what: str
    problem: str
