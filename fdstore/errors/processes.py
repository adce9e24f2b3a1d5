"""Errors about processes and programs: limits, fencing, cancellation, calls with an unknown outcome."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, InvalidArgument, UnknownOutcome, quoted


class InvalidProgram(InvalidArgument):
    """A program file is invalid; `argument` is "file: key"."""


class UnknownProgram(FDStoreError):
    """The program name is not linked, or the command is not allowed."""

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
    """A write under a lost lease: the process has ended, or a newer attempt runs it."""

    type = "fenced"

    def __init__(self, process: str, problem: str) -> None:
        super().__init__(process, problem)
        self.process, self.problem = process, problem

    def __str__(self) -> str:
        said = f"process {self.process} takes no write from here: {self.problem}"
        if self.problem.startswith("it has ended") and "." not in self.process:
            said += (
                f"; it can be read. Write to another one, or free the name: fdstore rm --tree {self.process}"
            )
        return said


class TreeInUse(FDStoreError):
    """The tree was not dropped, because one of its agents or pipelines runs or waits."""

    type = "conflict"

    def __init__(self, tree: str, process: str, state: str) -> None:
        super().__init__(tree, process, state)
        self.tree, self.process, self.state = tree, process, state

    def __str__(self) -> str:
        return (
            f"the tree {self.tree} is in use: {self.process} is {self.state}; end it first with "
            f"`fdstore kill {self.tree}`, or kill and drop it in one call (kill=True, --kill)"
        )


class TimedOut(FDStoreError):
    """The time-out passed before the event happened."""

    type = "timeout"

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what, seconds)
        self.what, self.seconds = what, seconds

    def __str__(self) -> str:
        return f"{self.what} did not happen within {self.seconds:g} s"


class SpawnLimit(FDStoreError):
    """The tree has reached its limit of processes."""

    type = "spawn_limit"

    def __init__(self, limit: str, allowed: int) -> None:
        super().__init__(limit, allowed)
        self.limit, self.allowed = limit, allowed

    def __str__(self) -> str:
        if self.limit in ("tree_token_budget", "tree_model_calls"):
            return f"this tree has used its {self.limit} of {self.allowed}; no new agent can begin"
        return f"the limit {self.limit} of this tree is {self.allowed}; end processes or raise it"


class QuotaExceeded(FDStoreError):
    """The tree, or for a `limit` without "tree_" the whole store, has reached a quota."""

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
    """An earlier attempt started a tool call that must not run twice, and left no result."""

    def __str__(self) -> str:
        return (
            f"outcome unknown: {self.what} was begun by an earlier attempt, which left no result; it was not "
            "done again. Look whether it took effect before you call it again"
        )


class NoWorker(FDStoreError):
    """No live worker can run the process, and the caller does not wait for one."""

    type = "no_worker"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem
