"""The root class of all errors, and the errors raised by every part of fdstore."""

from __future__ import annotations

from typing import ClassVar

SHOWN_IDS = 40
"""Maximum number of existing ids that a `not_found` lists."""

SHOWN_ID_CHARS = 2000
"""Maximum length of the list, or of its first id."""


def quoted(value: object, limit: int = 80) -> str:
    """Return `value` quoted for a message: control characters escaped, cut to `limit` characters."""
    text = value if isinstance(value, str) else type(value).__name__
    shown = text[:limit].encode("unicode_escape", "backslashreplace").decode("ascii")
    if text.isprintable():
        shown = text[:limit]
    return repr(shown).replace("\\\\", "\\") + ("..." if len(text) > limit else "")


class FDStoreError(Exception):
    """Base class of all errors of fdstore."""

    type: ClassVar[str] = "error"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class NotFound(FDStoreError):
    """The descriptor, process or tree does not exist. `removed_at`: when the tree that had this descriptor
    was removed, in seconds since the epoch; a later tree has its name. `not_of`: the process that was asked,
    whose numbers begin above this one, because an earlier conversation had it."""

    type = "not_found"

    def __init__(
        self,
        what: str,
        known: tuple[str, ...] = (),
        removed_at: int | None = None,
        not_of: str | None = None,
    ) -> None:
        super().__init__(what, known, removed_at, not_of)
        self.what, self.known, self.removed_at, self.not_of = what, tuple(known), removed_at, not_of

    def __str__(self) -> str:
        missing = f"{self.what} does not exist"
        if self.removed_at is not None:
            from datetime import UTC, datetime  # errors are imported by programs that must start fast

            removed = datetime.fromtimestamp(self.removed_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            missing = f"{self.what} no longer exists: its tree was removed at {removed}"
        elif self.not_of is not None:
            missing = f"{self.what} was given by another process, not by {self.not_of}, which cannot read it"
        if not self.known:
            return f"{missing}; nothing exists here yet"
        shown = self.known[:SHOWN_IDS]
        while len(shown) > 1 and sum(map(len, shown)) + 2 * len(shown) > SHOWN_ID_CHARS:
            shown = shown[:-1]
        more = len(self.known) - len(shown)
        rest = f" and {more} more" if more > 0 else ""
        return f"{missing}; there are: {', '.join(shown)}{rest}"


class InvalidArgument(FDStoreError):
    """An argument has the wrong type, form or size."""

    type = "invalid_argument"

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.argument, self.problem = argument, problem

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}" if self.argument else self.problem


class NotAllowed(FDStoreError):
    """A program uses something that the operator of this worker does not allow."""

    type = "permission_error"

    def __init__(self, what: str, option: str) -> None:
        super().__init__(what, option)
        self.what, self.option = what, option

    def __str__(self) -> str:
        return f"{self.what} is not allowed on this worker; its operator allows it with {self.option}"


class UnknownOutcome(FDStoreError):
    """The store became unreachable after a write was sent, which may or may not have happened."""

    type = "unknown_outcome"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"whether {self.what} happened is unknown: the store is out of reach; look before repeating"


class MissingExtra(FDStoreError, ImportError):
    """A Python package of an extra is required and not installed. Nothing was started. It is an `ImportError`
    too, for callers that do without the package."""

    type = "missing_extra"

    def __init__(self, package: str, how: str) -> None:
        super().__init__(package, how)
        self.package, self.how = package, how
        self.name = package

    def __str__(self) -> str:
        return f"this needs the Python package {self.package!r}; install it with: {self.how}"
