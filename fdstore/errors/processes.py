"""Errors about processes and programs: limits, fencing, cancelling, calls whose outcome is unknown."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, InvalidArgument, UnknownOutcome, quoted


class InvalidProgram(InvalidArgument):
    """A program file that cannot be used: `argument` is "file: key"."""


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


class CallInterrupted(UnknownOutcome):
    """An earlier attempt at a tool call began what must not be done twice, and left no result."""

    def __str__(self) -> str:
        return (
            f"outcome unknown: {self.what} was begun by an earlier attempt, which left no result; it was not "
            "done again. Look whether it took effect before you call it again"
        )


class NoWorker(FDStoreError):
    """No worker lives that could run what was asked for, and the caller does not want to wait for one."""

    type = "no_worker"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem
