"""Errors about processes and programs: limits, fencing, cancellation, calls with an unknown outcome."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, InvalidArgument, UnknownOutcome, given, quoted


class InvalidProgram(InvalidArgument):
    """A program file is invalid; `argument` is "file: key"."""

    sample = given("agent.toml: limits.max_turns", "must be an integer >= 1")


class UnknownProgram(FDStoreError):
    """The program name is not linked, or the command is not allowed."""

    type = "unknown_program"
    remedy = "Use a program that it names, or add it to `[linked_programs]` or `[commands]`."
    sample = given("expret", ("expert", "reader"))

    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        if "/" in self.name:
            return f"{quoted(self.name)} is a path; give the name of the program alone"
        names = ", ".join(self.known) if self.known else "none"
        return f"there is no program {quoted(self.name)}; there are: {names}"


class Fenced(FDStoreError):
    """A write under a lost lease: the process has ended, or a newer attempt runs it."""

    type = "fenced"
    remedy = "Stop working for the process: it has ended, or another worker has it."
    sample = given("triage.1", "attempt 2 runs it")
    http = 409
    stops = True
    reply = "fenced"

    process: str
    problem: str

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
    says = (
        "the tree {tree} is in use: {process} is {state}; end it first with `fdstore kill {tree}`, or kill "
        "and drop it in one call (kill=True, --kill)"
    )
    remedy = "Of a tree: end what runs in it first."
    sample = given("triage", "triage.1", "running")
    http = 409
    reply = "in_use"

    tree: str
    process: str
    state: str


class QuestionClosed(FDStoreError):
    """The question to a person takes no answer any more: it has one, its time is over, or it was withdrawn.
    Nothing was changed."""

    type = "conflict"
    says = "question {number} of {process} takes no answer: {problem}; nothing was changed"
    remedy = "Of a question: see what is still asked with `fdstore questions`, and what was done with `log`."
    sample = given("triage.1", 2, "ann answered it already")
    http = 409

    process: str
    number: int
    problem: str


class TimedOut(FDStoreError):
    """The time-out passed before the event happened."""

    type = "timeout"
    says = "{what} did not happen within {seconds:g} s"
    remedy = "Wait longer, or find out why it did not happen: `fdstore ps`, `fdstore log PROC`."
    sample = given("the end of triage.1", 30.0)

    what: str
    seconds: float


class NobodyAnswered(TimedOut):
    """Nobody answered a question to a person in time, and the agent is to fail then."""

    says = "nobody answered question {number} within {seconds:g} s"
    remedy = "Of a question: answer sooner, or set `[people]` `timeout` and `on_timeout`."
    sample = given("an answer", 86_400.0, 2)
    stops = True

    number: int = 0


class SpawnLimit(FDStoreError):
    """The tree has reached its limit of processes."""

    type = "spawn_limit"
    remedy = "End processes, or raise the limit in `[limits]` of the program."
    sample = given("tree_live", 64)
    reply = "spawn_limit"

    limit: str
    allowed: int

    def __str__(self) -> str:
        if self.limit in ("tree_token_budget", "tree_model_calls"):
            return f"this tree has used its {self.limit} of {self.allowed}; no new agent can begin"
        advice = "end processes or raise it" if self.limit == "tree_live" else "raise it"
        return f"the limit {self.limit} of this tree is {self.allowed}; {advice}"


class QuotaExceeded(FDStoreError):
    """The tree, or for a `limit` without "tree_" the whole store, has reached a quota. `used` and `asked` are
    what the tree has and what was to be added, where that is known beforehand."""

    type = "quota_exceeded"
    remedy = "Drop what is not needed, or raise the limit: `[limits]` of the program, or `fdstore limits`."
    sample = given("tree_bytes", 4_294_967_296)
    http = 503
    reply = "quota_exceeded"

    limit: str
    allowed: int
    used: int = 0
    asked: int = 0

    def __str__(self) -> str:
        if not self.limit.startswith("tree_"):
            return (
                f"the operator's ceiling {self.limit} of this store is {self.allowed}; remove trees that are "
                "not needed (`fdstore gc`), or have it raised (`fdstore limits`)"
            )
        advice = "raise it" if self.limit == "tree_export_bytes" else "close descriptors or raise it"
        figures = f": it has {self.used}, and these are {self.asked} more" if self.asked else ""
        return f"the limit {self.limit} of this tree is {self.allowed}{figures}; {advice}"


class Cancelled(FDStoreError):
    """The process was cancelled."""

    type = "cancelled"
    says = "process {process} was cancelled"
    remedy = "Nothing: the process was ended on purpose."
    sample = given("triage.1")
    stops = True

    process: str


class CallInterrupted(UnknownOutcome):
    """An earlier attempt started a tool call that must not run twice, and left no result."""

    says = (
        "outcome unknown: {what} was begun by an earlier attempt, which left no result; it was not done "
        "again. Look whether it took effect before you call it again"
    )
    sample = given("this call of send_mail")
    stops = False


class NoWorker(FDStoreError):
    """No live worker can run the process, and the caller does not wait for one."""

    type = "no_worker"
    says = "{problem}"
    remedy = "Start a worker: `fdstore up` on this machine, `fdstore worker` for a store by URL."
    sample = given("no live worker runs agents; start one with `fdstore worker`")
    stops = True

    problem: str
