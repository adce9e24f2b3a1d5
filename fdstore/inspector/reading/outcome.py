"""What came of a process or a run: its task, its answer, and its failures by reason, shown first."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import msgspec

from fdstore.errors import DamagedRecord, FDStoreError
from fdstore.inspector.reading.conversation import MAX_RECORDS, conversation
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.ends import advice_of, in_words, remedy_of
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record, TreeLimits
from fdstore.store.contents import reading
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import answer_of
from fdstore.store.processes.task_words import task_text
from fdstore.store.record_format import replies_or_damage
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_costs
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation

ASK = "ask"
"""The program of the agents of `fdstore ask`."""

ANSWER_CHARS = 6_000
"""The characters of an answer that are shown."""

GROUPS = 8
"""Reasons of failures that are shown."""

CALL_PAGES = 4
"""Pages of a conversation that are searched for a call that did not fail."""

REASON_CHARS = 300
TASK_CHARS = 300
"""A command has a task that is not longer. Of another one it says where it is."""

LAST_RECORDS = 20
"""Records at the end of a journal that are searched for a call that did not end."""

NAMED_TOOLS = 3
"""Tools that are named, of those whose every call failed."""

ERRORS = 3
"""Pipelines whose standard error is read."""


class FailureGroup(Record, frozen=True, kw_only=True):
    """Processes that failed for the same reason: how many, and the first of them."""

    reason: str
    count: int
    first: str


class FailedCalls(Record, frozen=True, kw_only=True):
    """All tool calls of a process, each of which failed: how many, and why."""

    count: int
    failures: tuple[FailureGroup, ...]

    @property
    def said(self) -> str:
        """What is said of them.

        >>> FailedCalls(count=5, failures=()).said, FailedCalls(count=1, failures=()).said
        ('each of its 5 tool calls failed', 'its only tool call failed')
        """
        return (
            f"each of its {self.count} tool calls failed" if self.count > 1 else "its only tool call failed"
        )

    @property
    def repair(self) -> str:
        """What is to be done about them.

        >>> failed = FailureGroup(reason="search_tickets: no such host", count=2, first="t")
        >>> FailedCalls(count=2, failures=(failed,)).repair
        'make search_tickets work'
        """
        tools = dict.fromkeys(each.reason.partition(":")[0] for each in self.failures)
        return f"make {' and '.join(tools)} work" if len(tools) <= NAMED_TOOLS else "make its tools work"


class Outcome(Record, frozen=True, kw_only=True):
    """What came of `process`. `answer` is its beginning, of `answer_chars` characters; `answer_fd` is the
    descriptor of a long one, held by `answer_of`. `took_s` is None before it began. `more_reasons` are those
    of further failures. `failed_calls`: it exited, and none of its tool calls did what it should. `codes` are
    the first pipelines that ended with another exit code than 0, `errors` the beginnings of the standard
    error of the first of them. `cut_call` is the call that its end cut off. `whole_task` is the whole task if
    that is one short line; `is_of_client`: a client holds the root of its tree. Both are known if there is
    something to do."""

    process: ProcessRecord
    task: str
    answer: str = ""
    answer_chars: int = 0
    answer_fd: str = ""
    answer_of: str = ""
    failures: tuple[FailureGroup, ...] = ()
    more_reasons: int = 0
    failed_calls: FailedCalls | None = None
    codes: tuple[ProcessRecord, ...] = ()
    errors: tuple[str, ...] = ()
    cut_call: ConversationEntry | None = None
    whole_task: str = ""
    is_of_client: bool = False
    took_s: float | None = None
    cost: str = ""

    @property
    def has_ended(self) -> bool:
        return self.process.state in ENDED

    @property
    def remedy(self) -> str:
        """What can be done about a run that failed or was cancelled, or in which something failed, with the
        command for it in backquotes; "" for any other.

        >>> failed = ProcessRecord(id="t", state="failed", program="triage", reason="max_turns: 8 ...")
        >>> print(Outcome(process=failed, task="Why?", whole_task="Why?").remedy)
        raise max_turns in [limits] of triage.toml; run it again: `fdstore run triage.toml -p 'Why?'`
        """
        process = self.process
        tree = process.id.partition(".")[0]
        first = self._first_to_do
        if not self.is_to_do:
            return ""
        if process.program == ASK and process.parent == tree:  # its program is not a file
            return f'ask on over the same texts: `fdstore ask --continue {tree} "..."`'
        if not first and process.state == "failed":
            first = "remove the cause"
        if process.parent:
            if not self.has_failed:
                return first
            then = "its client can start it again" if self.is_of_client else f"run {tree} again"
            return f"{first}; then {then}"
        if not process.program:
            return first
        run = f"fdstore run {shlex.quote(process.program + '.toml')}"
        if self.whole_task:
            command = f"run it again: `{run} -p {shlex.quote(self.whole_task)}`"
        else:
            whole = f"`fdstore log {process.id} --full`"
            command = f"run it again: `{run} -f FILE`, with its task in the file ({whole} has all of it)"
        if not first:
            return f"if it is still needed, {command}"  # it was cancelled
        return f"{first}; {command}"

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or is a pipeline that ended with another exit code than 0."""
        return self.process.state == "failed" or self.process in self.codes

    @property
    def is_to_do(self) -> bool:
        """Whether there is something to do."""
        return bool(self._first_to_do) or self.process.state in ("failed", "cancelled")

    @property
    def _first_to_do(self) -> str:
        """What is to be done before it is run again."""
        process = self.process
        others = [each for each in self.failures if each.first != process.id]
        below = [each.first for each in others]
        cause = next((advice for each in others if (advice := advice_of(each.reason))), "remove the cause")
        if process.state in ("failed", "cancelled"):
            names = {"file": f"{process.program}.toml", "process": process.id}
            return remedy_of(process.reason, **names, tree=process.id.partition(".")[0])
        if process in self.codes:
            return "correct the command" + (f", which {process.parent} started" if process.parent else "")
        if self.failed_calls is not None:
            return f"do not rely on the answer; {self.failed_calls.repair}"
        if below and not process.program:
            return f"{cause}; then its client can start {below[0]} again"
        if below and process.state == "exited":
            return f"if the answer lacks what {below[0]} was to do, {cause}"
        if self.codes and process.state == "exited":
            return f"if the answer lacks the output of {self.codes[0].id}, read its standard error"
        return ""


def run_of(root: ProcessRecord, others: Iterable[ProcessRecord]) -> ProcessRecord | None:
    """Return the process whose task is that of the run: the root, or its child that has the root's task, as
    the agent of a question of `fdstore ask` has; None if a client does the work of the root itself.

    >>> root = ProcessRecord(id="ask-1", state="open", task="Why?")
    >>> told = {"state": "exited", "program": "ask", "parent": "ask-1", "task": "Why?"}
    >>> asked = [ProcessRecord(id=f"ask-1.{number}", **told) for number in (9, 10)]
    >>> run_of(root, asked).id, run_of(root, [])
    ('ask-1.10', None)
    """
    if root.program:
        return root
    told = [each for each in others if each.parent == root.id and each.program and each.task == root.task]
    return max(told, key=lambda each: int(each.id.rpartition(".")[2]), default=None) if root.task else None


def outcome_of(
    prefix: str,
    process: ProcessRecord,
    others: Iterable[ProcessRecord],
    now_s: float,
    max_chars: int = ANSWER_CHARS,
) -> Operation[Outcome]:
    """Return what came of a process, and of `others` below it, with at most `max_chars` of the answer. At
    most three round trips, those of up to `CALL_PAGES` pages of its conversation and of `ERRORS` texts, and
    one if there is something to do. What cannot be read is left out: the rest of a page says why."""
    answer, chars, fd, holder = "", 0, "", ""
    failed_calls = cut_call = None
    # an export redacts a reason before it is cut
    reason_chars = REASON_CHARS if max_chars <= ANSWER_CHARS else max_chars
    if process.state == "failed" and process.kind is None:
        cut_call = yield from _cut_call(prefix, process.id, reason_chars)
    if process.state == "exited" and process.kind is None:
        failed_calls = yield from _failed_calls(prefix, process.id, reason_chars)
        try:
            found = yield from answer_of(prefix, process.id)
            answer, chars, fd = found.text, len(found.text), found.fd or ""
            if fd:
                holder = process.parent or process.id
                handle = ProcessHandle(process_keys(prefix, holder), TreeLimits())
                part = yield from reading.read(handle, fd, Part("char", 1, max_chars))
                answer, chars = part.text, part.total_chars
        except FDStoreError as error:
            if error.stops:
                raise
    everyone = [process, *(each for each in others if each.id != process.id)]
    groups = group_failures(everyone)
    codes = tuple(
        each for each in everyone if each.kind == "pipeline" and each.state == "exited" and each.exit_code
    )[:GROUPS]
    errors: list[str] = []
    for each in codes[:ERRORS]:
        errors.append((yield from _standard_error(prefix, each, reason_chars)))
    until_s = now_s if process.ended_at is None else process.ended_at
    came = Outcome(
        process=process,
        task=process.task or "",
        answer=answer[:max_chars],
        answer_chars=chars,
        answer_fd=fd,
        answer_of=holder,
        failures=groups[:GROUPS],
        more_reasons=max(0, len(groups) - GROUPS),
        failed_calls=failed_calls,
        codes=codes,
        errors=tuple(errors),
        cut_call=cut_call,
        took_s=None if process.started_at is None else max(0.0, until_s - process.started_at),
        cost=format_costs(everyone),
    )
    if not came.is_to_do:
        return came
    keys = process_keys(prefix, process.id)
    task, program = yield from replies_or_damage(
        [("LRANGE", keys.journal, 0, 0), ("HGET", process_keys(prefix, keys.tree.tree).record, "program")]
    )
    return msgspec.structs.replace(
        came,
        whole_task=_in_command("" if isinstance(task, DamagedRecord) or not task else task_text(task[0])),
        is_of_client=not program,
    )


def _in_command(task: str) -> str:
    r"""Return a task if a command on a page can have it, else "". A page changes some blanks and characters,
    and has a command between backquotes.

    >>> _in_command("Why?"), _in_command("Why?\nWhen?"), _in_command("Why `ls`?"), _in_command("w" * 900)
    ('Why?', '', '', '')
    """
    is_plain = task == " ".join(task.split()) == show_controls(task, keep="") and "`" not in task
    return task if is_plain and len(task) <= TASK_CHARS else ""


def _standard_error(prefix: str, pipeline: ProcessRecord, max_chars: int) -> Operation[str]:
    """Return the beginning of the standard error of a pipeline; "" if it cannot be read."""
    if not pipeline.parent or len(pipeline.outputs) < 2:
        return ""
    handle = ProcessHandle(process_keys(prefix, pipeline.parent), TreeLimits())
    try:
        found = yield from reading.read(handle, pipeline.outputs[1], Part("char", 1, max_chars))
    except FDStoreError as error:
        if error.stops:
            raise
        return ""
    return found.text.strip()


def _cut_call(prefix: str, process: str, max_chars: int) -> Operation[ConversationEntry | None]:
    """Return the first call at the end of a journal that has no result; None if there is none."""
    try:
        page = yield from conversation(prefix, process, -LAST_RECORDS, LAST_RECORDS, max_chars=max_chars)
    except FDStoreError as error:
        if error.stops:
            raise
        return None
    ended = {each.call for each in page.entries if each.kind == "result"}
    return next((each for each in page.entries if each.kind == "call" and each.call not in ended), None)


def group_failures(processes: Iterable[ProcessRecord]) -> tuple[FailureGroup, ...]:
    """Return the failed processes by their reasons, the most frequent first, each with the one that failed
    first.

    >>> failed = [ProcessRecord(id=f"t.{n}", state="failed", reason="ValueError: no day") for n in (1, 2)]
    >>> group_failures(failed)
    (FailureGroup(reason='ValueError: no day', count=2, first='t.1'),)
    """
    ordered = sorted(processes, key=lambda process: process.ended_at or 0.0)
    return _grouped(
        (in_words(each.reason) or "no reason is recorded", each.id)
        for each in ordered
        if each.state == "failed"
    )


def _grouped(failures: Iterable[tuple[str, str]]) -> tuple[FailureGroup, ...]:
    """Return failures, each a reason and a process, by reasons, the most frequent first."""
    found: dict[str, FailureGroup] = {}
    for reason, process in failures:
        known = found.get(reason) or FailureGroup(reason=reason, count=0, first=process)
        found[reason] = msgspec.structs.replace(known, count=known.count + 1)
    return tuple(sorted(found.values(), key=lambda group: -group.count))


def _failed_calls(prefix: str, process: str, max_chars: int) -> Operation[FailedCalls | None]:
    """Return the tool calls of a process if it made some and each failed; None too if that takes too many
    records to know, or if one cannot be read."""
    failures: list[tuple[str, str]] = []
    start = 0
    for _ in range(CALL_PAGES):
        try:
            page = yield from conversation(prefix, process, start, MAX_RECORDS, max_chars=max_chars)
        except FDStoreError as error:
            if error.stops:
                raise
            return None
        for entry in page.entries:
            if entry.kind == "unreadable" or (entry.kind == "result" and not entry.is_error):
                return None
            if entry.kind == "result":
                failures.append((_reason_of(entry, max_chars), process))
        if page.is_last:
            groups = _grouped(failures)[:GROUPS]
            return FailedCalls(count=len(failures), failures=groups) if failures else None
        start = page.next
    return None


def _reason_of(result: ConversationEntry, max_chars: int) -> str:
    """Return why a call failed: the first line of its result."""
    error = result.facts.error
    said = result.text.strip() if error is None else error.message
    first = said.partition("\n")[0][:max_chars]
    return f"{result.tool or 'a call'}: {first}" if first else result.tool or "a call"
