"""Errors about files: import, export and permitted paths."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, NotAllowed, quoted


class TargetExists(FDStoreError):
    """The file exists, and the caller requires that it does not."""

    type = "file_exists"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"the file {quoted(self.path, 300)} exists; use exist_ok=true or another name"


class TargetMissing(FDStoreError):
    """The file does not exist, and the caller reads it or does not allow creating it."""

    type = "file_not_found"

    def __init__(self, path: str, advice: str = "use create=true to make it") -> None:
        super().__init__(path, advice)
        self.path, self.advice = path, advice

    def __str__(self) -> str:
        return f"the file {quoted(self.path, 300)} does not exist; {self.advice}"


class PathRefused(NotAllowed):
    """The path may not be used: outside the root, hidden, through a link, or not a regular file."""

    def __init__(self, path: str, problem: str) -> None:
        FDStoreError.__init__(self, path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"the path {quoted(self.path, 300)} cannot be used: {self.problem}"


class WriteFailed(FDStoreError):
    """The write failed; the old file is unchanged."""

    type = "write_error"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"writing {self.what} failed and changed nothing: {self.problem}"
