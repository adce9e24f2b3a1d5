"""Every error fdstore raises: one root, one class for each thing that can be wrong.

A class has a stable `type` (what a model, a log or a `--json` reader sees) and takes facts as
arguments. `args` always equals the constructor's arguments, so an error crosses pickling and
process borders whole. The text says what is so and what to do; it never repeats a large argument.

Errors of libraries (redis, os) are translated once, where they enter, with `raise ... from`.
"""

from __future__ import annotations

from typing import ClassVar

SHOWN_IDS = 40
"""How many existing ids a `not_found` lists."""


def quoted(value: object, limit: int = 80) -> str:
    """`value` as text for a message: control characters escaped, cut to `limit` characters."""
    text = value if isinstance(value, str) else type(value).__name__
    shown = text[:limit].encode("unicode_escape", "backslashreplace").decode("ascii")
    if text.isprintable():
        shown = text[:limit]
    return repr(shown).replace("\\\\", "\\") + ("..." if len(text) > limit else "")


class FDStoreError(Exception):
    """The root of all errors of fdstore."""

    type: ClassVar[str] = "error"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class NotFound(FDStoreError):
    """An id that names nothing: a descriptor, a process, a tree."""

    type = "not_found"

    def __init__(self, what: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(what, known)
        self.what, self.known = what, tuple(known)

    def __str__(self) -> str:
        if not self.known:
            return f"{self.what} does not exist; nothing exists here yet"
        shown = ", ".join(self.known[:SHOWN_IDS])
        more = len(self.known) - SHOWN_IDS
        rest = f" and {more} more" if more > 0 else ""
        return f"{self.what} does not exist; there are: {shown}{rest}"


class PageOutOfRange(FDStoreError):
    """The page number is past the last page of the content."""

    type = "invalid_page"

    def __init__(self, fd: str, number: int, pages: int) -> None:
        super().__init__(fd, number, pages)
        self.fd, self.number, self.pages = fd, number, pages

    def __str__(self) -> str:
        valid = f"pages 1-{self.pages}" if self.pages > 1 else "only page 1"
        return f"{self.fd} has {valid}; there is no page {self.number}"


class PositionOutOfRange(FDStoreError):
    """The first line or character asked for is past the end of the content."""

    type = "invalid_range"

    def __init__(self, fd: str, unit: str, start: int, total: int) -> None:
        super().__init__(fd, unit, start, total)
        self.fd, self.unit, self.start, self.total = fd, unit, start, total

    def __str__(self) -> str:
        valid = f"{self.unit}s 1-{self.total}" if self.total else f"no {self.unit}s: it is empty"
        return f"{self.fd} has {valid}; there is no {self.unit} {self.start}"


class InvalidArgument(FDStoreError):
    """An argument of the wrong type, form or size."""

    type = "invalid_argument"

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.argument, self.problem = argument, problem

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}" if self.argument else self.problem


class NotEncoded(InvalidArgument):
    """Bytes that are not text in the encoding that they are said to have. `position` is 1-based."""

    def __init__(self, encoding: str, position: int, reason: str) -> None:
        FDStoreError.__init__(self, encoding, position, reason)
        self.encoding, self.position, self.reason = encoding, position, reason
        self.argument, self.problem = "text", f"byte {position} is not {encoding.upper()} ({reason})"

    def __str__(self) -> str:
        return f'text: {self.problem}; errors="backslashreplace" keeps such bytes as \\xNN'


class InvalidProgram(InvalidArgument):
    """A program file that cannot be used: `argument` is "file: key"."""


class TooLarge(FDStoreError):
    """The answer would be longer than the limit; nothing was read out."""

    type = "too_large"

    def __init__(self, what: str, size: int, limit: int, advice: str = "") -> None:
        super().__init__(what, size, limit, advice)
        self.what, self.size, self.limit, self.advice = what, size, limit, advice

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.what} has {self.size} characters, more than the limit of {self.limit}{advice}"


class TargetExists(FDStoreError):
    """The file is there and the caller said it must not be."""

    type = "file_exists"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"the file {quoted(self.path, 300)} exists; use exist_ok=true or another name"


class TargetMissing(FDStoreError):
    """The file is not there and the caller said not to create it, or it was to be read."""

    type = "file_not_found"

    def __init__(self, path: str, advice: str = "use create=true to make it") -> None:
        super().__init__(path, advice)
        self.path, self.advice = path, advice

    def __str__(self) -> str:
        return f"the file {quoted(self.path, 300)} does not exist; {self.advice}"


class NotAllowed(FDStoreError):
    """What a program names and the operator of this worker does not allow."""

    type = "permission_error"

    def __init__(self, what: str, option: str) -> None:
        super().__init__(what, option)
        self.what, self.option = what, option

    def __str__(self) -> str:
        return f"{self.what} is not allowed on this worker; its operator allows it with {self.option}"


class PathRefused(NotAllowed):
    """A path that may not be used: outside the root, hidden, through a link, not a regular file."""

    def __init__(self, path: str, problem: str) -> None:
        FDStoreError.__init__(self, path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"the path {quoted(self.path, 300)} cannot be used: {self.problem}"


class WriteFailed(FDStoreError):
    """The write did not happen; what was there before is unchanged."""

    type = "write_error"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"writing {self.what} failed and changed nothing: {self.problem}"


class StreamClosed(FDStoreError):
    """A write to a content that takes no more text."""

    type = "stream_closed"

    def __init__(self, fd: str, state: str) -> None:
        super().__init__(fd, state)
        self.fd, self.state = fd, state

    def __str__(self) -> str:
        return f"{self.fd} is {self.state} and takes no more text; make a new descriptor instead"


class StreamBroken(FDStoreError):
    """A stream whose writer failed; what it stored can still be read."""

    type = "stream_broken"

    def __init__(self, fd: str, reason: str) -> None:
        super().__init__(fd, reason)
        self.fd, self.reason = fd, reason

    def __str__(self) -> str:
        return f"{self.fd} broke off ({self.reason}); what was stored before can be read"


class Fenced(FDStoreError):
    """A write by somebody who no longer owns the process: it ended, or a newer attempt runs it."""

    type = "fenced"

    def __init__(self, process: str, problem: str) -> None:
        super().__init__(process, problem)
        self.process, self.problem = process, problem

    def __str__(self) -> str:
        return f"process {self.process} takes no write from here: {self.problem}"


class TreeInUse(FDStoreError):
    """A tree that is not dropped while one of its agents or pipelines runs or waits; nothing was changed."""

    type = "conflict"

    def __init__(self, tree: str, process: str, state: str) -> None:
        super().__init__(tree, process, state)
        self.tree, self.process, self.state = tree, process, state

    def __str__(self) -> str:
        return (
            f"the tree {self.tree} is in use: {self.process} is {self.state}; end it first with "
            f"`fdstore kill {self.tree}`, or kill and drop it at once (kill=True, --kill)"
        )


class TimedOut(FDStoreError):
    """The time given was over before the thing happened."""

    type = "timeout"

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what, seconds)
        self.what, self.seconds = what, seconds

    def __str__(self) -> str:
        return f"{self.what} did not happen within {self.seconds:g} s"


class UnknownProgram(FDStoreError):
    """A program name that is not linked, or a command that is not allowed."""

    type = "unknown_program"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, tuple(known)

    def __str__(self) -> str:
        if "/" in self.name:
            return f"{quoted(self.name)} is a path; give the name of the program alone"
        names = ", ".join(self.known) if self.known else "none"
        return f"there is no program {quoted(self.name)}; there are: {names}"


class SpawnLimit(FDStoreError):
    """The tree may not have more processes."""

    type = "spawn_limit"

    def __init__(self, limit: str, allowed: int) -> None:
        super().__init__(limit, allowed)
        self.limit, self.allowed = limit, allowed

    def __str__(self) -> str:
        return f"the limit {self.limit} of this tree is {self.allowed}; end processes or raise it"


class QuotaExceeded(FDStoreError):
    """The tree, or for a `limit` that is not of a tree the whole store, may not hold or write more."""

    type = "quota_exceeded"

    def __init__(self, limit: str, allowed: int) -> None:
        super().__init__(limit, allowed)
        self.limit, self.allowed = limit, allowed

    def __str__(self) -> str:
        if not self.limit.startswith("tree_"):
            return (
                f"the operator's ceiling {self.limit} of this store is {self.allowed}; remove trees that are "
                "not needed (`fdstore gc`), or have it raised (`fdstore limits`)"
            )
        advice = "raise it" if self.limit == "tree_export_bytes" else "close descriptors or raise it"
        return f"the limit {self.limit} of this tree is {self.allowed}; {advice}"


class Cancelled(FDStoreError):
    """The process was cancelled."""

    type = "cancelled"

    def __init__(self, process: str) -> None:
        super().__init__(process)
        self.process = process

    def __str__(self) -> str:
        return f"process {self.process} was cancelled"


class UnknownOutcome(FDStoreError):
    """The store went out of reach after a write was sent: it may or may not have happened."""

    type = "unknown_outcome"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"whether {self.what} happened is unknown: the store is out of reach; look before repeating"


class CallInterrupted(UnknownOutcome):
    """An earlier attempt at a tool call began what must not be done twice, and left no result."""

    def __str__(self) -> str:
        return (
            f"outcome unknown: {self.what} was begun by an earlier attempt, which left no result; it was not "
            "done again. Look whether it took effect before you call it again"
        )


class StoreFull(FDStoreError):
    """Redis is at its memory limit and refused a write."""

    type = "store_full"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"Redis is full ({self.problem}): `fdstore du` shows what takes room; drop it, or raise maxmemory"
        )


class StoreReadOnly(FDStoreError):
    """Redis takes no writes now: a replica, or its disk failed."""

    type = "store_readonly"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"Redis takes no writes ({self.problem}); point FDSTORE_URL at a primary with a working disk"


class StoreUnavailable(FDStoreError):
    """Redis cannot be reached."""

    type = "store_unavailable"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"Redis at {self.where}: {self.problem}; check FDSTORE_URL, or `fdstore up` starts one"


class StoreRefused(FDStoreError):
    """Redis answers, and refuses this user: no or a wrong password, a command or key that it may not use."""

    type = "permission_error"

    def __init__(self, where: str, problem: str, advice: str) -> None:
        super().__init__(where, problem, advice)
        self.where, self.problem, self.advice = where, problem, advice

    def __str__(self) -> str:
        return f"Redis at {self.where} refuses: {self.problem}; {self.advice}"


class NoWorker(FDStoreError):
    """No worker lives that could run what was asked for, and the caller does not want to wait for one."""

    type = "no_worker"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


class MissingExtra(FDStoreError):
    """A Python package of an extra is not installed: what was asked for needs it, and nothing was started."""

    type = "missing_extra"

    def __init__(self, package: str, how: str) -> None:
        super().__init__(package, how)
        self.package, self.how = package, how

    def __str__(self) -> str:
        return f"this needs the Python package {self.package!r}; install it with: {self.how}"


class StartFailed(StoreUnavailable):
    """The embedded server, or a worker beside it, cannot be started: no URL is wrong, and `fdstore up`
    would meet the same."""

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class StoreLostData(FDStoreError):
    """Redis no longer has what it had stored: its log lost its tail, or it was emptied."""

    type = "store_lost_data"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"the store lost {self.what}: {self.problem}; run `fdstore doctor --deep`, or restore a backup"


class DamagedRecord(StoreLostData):
    """A record in Redis is not what was written there: of another type, cut, or with impossible numbers.

    `what` names the key, or the tree that it belongs to. Other trees are not affected.
    """

    def __str__(self) -> str:
        return f"{self.what} cannot be read: {self.problem}; the record is damaged"


class UnsafeStore(FDStoreError):
    """A Redis that would lose content by design: too old, or evicting."""

    type = "unsafe_store"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"the Redis at {self.where} is not safe to keep content in: {self.problem}"


class LookingOnly(UnsafeStore):
    """A write through a store that was connected with `looking=True`. It was not sent."""

    def __str__(self) -> str:
        return f"the Redis at {self.where} is only looked at (looking=True): {self.problem} was not sent"


class NewerFormat(UnsafeStore):
    """A tree or a program that a newer fdstore wrote, in a way that this one does not know.

    `where` names it, `problem` says what is newer. A worker leaves such a process to newer workers.
    """

    def __str__(self) -> str:
        return f"{self.where} was written by a newer fdstore ({self.problem}): upgrade this one"
