"""Open, launch, end and cancel processes, and create children. `process_records` reads their state.

Two kinds of process share one record. A client program's process is `open` until it ends. A process that
workers run moves through states; each transition is one script, which checks the state it starts from:

    ready -> running -> exited | failed | cancelled
      ^         |  ^
      |         v  | (its last child ended, or its wait timed out)
      +------ waiting
      +-- running, when its lease expired or its worker returned it
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

import msgspec

from fdstore.errors import (
    SKIPPABLE,
    DamagedRecord,
    InvalidArgument,
    QuotaExceeded,
    StoreUnavailable,
    UnknownOutcome,
    quoted,
)
from fdstore.model import ends
from fdstore.model.lifecycle import ProcessState
from fdstore.model.records import ModelPrice, TreeLimits, Unreadable
from fdstore.store.clock import redis_now, seconds_of
from fdstore.store.contents.staging import MAX_REASON_CHARS, check_page_size, check_source
from fdstore.store.keys import ProcessKeys, TreeKeys, check_root, member_of, process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import CEILINGS_EVERY_S, ProcessHandle
from fdstore.store.processes.process_records import missing
from fdstore.store.processes.task_words import task_words
from fdstore.store.record_format import (
    FORMAT,
    check_format,
    decode_moment,
    decode_record,
    limits_of,
    show_bytes,
)
from fdstore.store.tree_facts import within_reach
from fdstore.store.tree_limits import check_limits, due_at, fresh_name, is_generated
from fdstore.store.trees.ceilings import apply_to_tree, run_with_ceilings
from fdstore.store.trees.ceilings import parse as ceilings_in
from fdstore.store.trees.collect_trees import collect_tree, due_names, trees_of
from fdstore.telemetry.tracing import traceparent
from fdstore.text.growth import empty_index
from fdstore.text.quantities import DAY_S
from fdstore.text.words import joined_words
from fdstore.wire.operation import Command, Operation, Upkeep, new_op
from fdstore.wire.script_constants import REOPENED_FROM
from fdstore.wire.scripts import script, text

MAX_FIRST_FD = 1_000_000_000
"""The highest number that the descriptors of a new process may begin with."""

LAUNCH_GRACE_S = 5
"""The time that a launching program has to claim its root before the sweep wakes a worker."""

COLLECT_A_FEW = 3
"""Trees past their retention that are checked whenever a tree is created."""

RELEASE_PIECE = 800
"""Descriptors that an end releases in one step, so that Redis is blocked for about 2 ms at a time."""


class StoredProgram(msgspec.Struct, frozen=True):
    """The program of an agent's process: its name, the bundle that contains it (JSON and digest), and the
    price of its model."""

    name: str
    digest: str
    bundle: str
    price: ModelPrice | None = None

    @property
    def price_json(self) -> bytes:
        """The price as it is stored; empty for none."""
        return b"" if self.price is None else msgspec.json.encode(self.price)


NO_PROGRAM = StoredProgram("", "", "")


class ChildStream(msgspec.Struct, frozen=True):
    """A stream created with a child, for the child's text. The parent holds it; `source` is its source."""

    source: str
    page_size: int


def open_process(
    prefix: str, where: str, name: str | None, limits: TreeLimits, first_fd: int = 1
) -> Operation[ProcessHandle]:
    """Open a process by name: a root, which is created if missing, or an existing child. None creates a
    root with a generated name. Raises `NotFound`, and `StoreUnavailable` of the store `where`."""
    root = fresh_name("proc") if name is None else name
    try:
        if isinstance(name, str) and "." in name:
            return (yield from open_child(prefix, name))
        return (yield from open_root(prefix, root, limits, fresh=name is None, first_fd=first_fd))
    except UnknownOutcome as error:
        if name is None:
            raise
        # whether it was created needs no look: opening it again opens the same one
        raise StoreUnavailable(where, "it does not answer") from error.__cause__


def open_root(
    prefix: str,
    name: str,
    limits: TreeLimits,
    *,
    fresh: bool = False,
    exact: bool = False,
    first_fd: int = 1,
    program: StoredProgram = NO_PROGRAM,
) -> Operation[ProcessHandle]:
    """Open a root process, or create it with its tree and the number of its first descriptor.

    With `fresh` it must be a new one: if the name is taken, another suffix is generated, or with `exact` the
    name is refused. The limits of a new tree are lowered to the operator's ceilings. Raises
    `InvalidArgument`, `QuotaExceeded` (too many trees).
    """
    limits = check_limits(limits)
    keys = process_keys(prefix, check_root(name))
    if type(first_fd) is not int or not 1 <= first_fd <= MAX_FIRST_FD:
        raise InvalidArgument("first_fd", f"a number from 1 to {MAX_FIRST_FD} is needed")
    if fresh:
        now_s = yield from redis_now()
    else:
        # opening an existing process needs no write, so it works on a full Redis
        existing, now_s = yield from _existing(keys)
        if existing is not None:
            return existing
    # a generated name comes again only by its name: numbers of an earlier tree, kept by somebody, stay unused
    is_reopened = is_generated(keys.process) and (exact or not fresh)
    least = REOPENED_FROM + 1 if is_reopened else 1
    op = new_op()
    due = due_at(limits, now_s)
    while True:
        tree = keys.tree
        lowered = yield from _enter(tree, due, limits, now_s)
        effective, requested = msgspec.json.encode(lowered.limits), msgspec.json.encode(limits)
        [reply] = yield [
            script("root")(
                tree=tree.record,
                process=keys.record,
                answers=tree.answer(op),
                op="",
                id=keys.process,
                is_new="1" if fresh else "0",
                effective=effective,
                program=program.name,
                bundle=program.digest,
                bundle_json=program.bundle,
                requested="" if requested == effective else requested,
                half_memory="1" if lowered.by_memory else "0",
                known_format=FORMAT,
                traceparent=traceparent(),
                price=program.price_json,
                least_fd=max(first_fd, least),
                least_child=least,
            )
        ]
        if reply[0] == b"taken":
            if exact:
                raise InvalidArgument("name", f"process {name} exists already; choose another name")
            keys = process_keys(prefix, fresh_name(name.rpartition("-")[0] or name))
            op = new_op()
        elif reply[0] == b"collecting":
            yield from collect_tree(tree)
        else:
            break
    how, stored = outcome(reply, keys.process)
    if how == b"created":
        # add it again: the collector of an earlier tree of this name may have removed the entry
        yield from _collect_due(prefix, now_s, ("ZADD", keys.tree.trees, "NX", due, keys.tree.tree))
    handle = ProcessHandle(keys, limits_of(keys.tree.tree, stored))
    if how == b"created":
        handle.ceilings_due_at = time.monotonic() + CEILINGS_EVERY_S
        if lowered.together:
            yield from apply_to_tree(keys.tree)
    return handle


class _Lowered(msgspec.Struct, frozen=True):
    """A tree's limits after lowering to the ceilings. `by_memory`: no ceiling for `tree_bytes` is set, so
    half of maxmemory applies. `together`: there is a ceiling for the bytes of all trees."""

    limits: TreeLimits
    by_memory: bool
    together: bool


def _enter(tree: TreeKeys, due_at_s: str, limits: TreeLimits, now_s: float) -> Operation[_Lowered]:
    """Add a tree to `trees` before it is created, so that collect finds everything ever stored. Return its
    lowered limits. Raises `QuotaExceeded`."""
    has_collected = False
    while True:
        flat, added, count = yield [
            ("HGETALL", tree.ceilings),
            ("ZADD", tree.trees, "NX", due_at_s, tree.tree),
            ("ZCARD", tree.trees),
        ]
        ceilings = ceilings_in(flat)
        most = ceilings.get("trees")
        if most is None or count <= most:
            # what does not stay in memory is not bounded by it
            by_memory = "tree_bytes" not in ceilings.values and b"cold" not in flat[::2]
            return _Lowered(ceilings.lower(limits), by_memory, ceilings.get("bytes") is not None)
        if added:
            # a client that is creating the same tree adds it again afterwards (`open_root`)
            yield [("ZREM", tree.trees, tree.tree)]
        if has_collected:
            raise QuotaExceeded("trees", most)
        yield from _collect_due(tree.prefix, now_s)
        has_collected = True


def _collect_due(prefix: str, now_s: float, *first: Command) -> Operation[None]:
    *_, names = yield [*first, due_names(prefix, now_s, COLLECT_A_FEW)]
    for tree in (yield from within_reach(trees_of(prefix, names))):
        # `fdstore gc` and the workers report damaged trees; they must not prevent new ones
        with suppress(*SKIPPABLE):
            yield from collect_tree(tree)


def open_child(prefix: str, process: str) -> Operation[ProcessHandle]:
    """Open an existing process. Raises `NotFound`."""
    keys = process_keys(prefix, process)
    handle, _ = yield from _existing(keys)
    if handle is None:
        raise (yield from missing(keys))
    return handle


def _existing(keys: ProcessKeys) -> Operation[tuple[ProcessHandle | None, float]]:
    """Return the process if it exists, and the Redis time. Record the use of its tree, once in a hundredth of
    its retention."""
    state, (limits, used_at, form), now = yield [
        ("HGET", keys.record, "state"),
        ("HMGET", keys.tree.record, "limits", "used_at", "format"),
        ("TIME",),
    ]
    now_s = seconds_of(now)
    if state is None or limits is None:
        return None, now_s
    check_format(keys.tree.tree, form)
    handle = ProcessHandle(keys, limits_of(keys.tree.tree, limits))
    retention_s = handle.limits.retention_days * DAY_S
    try:
        unused_s = now_s - decode_moment(used_at)
    except ValueError:
        unused_s = inf  # the texts are readable, and `touch` repairs the field
    # short programs (open, read, exit) never reach the interval at which long-lived clients touch the tree
    if retention_s and unused_s > retention_s / 100:
        yield from touch(handle)
    return handle, now_s


def create_child(
    handle: ProcessHandle,
    share: list[str] | None,
    *,
    state: ProcessState = "open",
    program: StoredProgram = NO_PROGRAM,
    brief: str = "",
    title: str = "",
    output: ChildStream | None = None,
    call_id: str | None = None,
) -> Operation[ProcessHandle]:
    """Create a child process that holds the shared descriptors (all of them for None) under the same ids.
    One round trip, no content is copied. The descriptor of `output` is in its record, as is `title`: the
    first line of its task.

    Raises `NotFound`, `SpawnLimit`, `QuotaExceeded`, `Fenced`.
    """
    tree = handle.keys.tree
    answer_key, answer_field = handle.answer_slot(new_op(), call_id)
    source, page_size, empty = ("", "", "") if output is None else _empty(output)
    create = script("child")(
        tree=tree.record,
        parent_record=handle.keys.record,
        parent_table=handle.keys.fds,
        answers=answer_key,
        op=answer_field,
        attempt=handle.attempt,
        parent=handle.id,
        state=state,
        program=program.name,
        bundle=program.digest,
        bundle_json=program.bundle,
        first_record=brief,
        source=source,
        page_size=page_size,
        empty_index=empty,
        seen_fd=handle.highest,
        seen_child=handle.highest_child,
        traceparent=traceparent(),
        price=program.price_json,
        task=title,
        task_words=task_words(brief),
        source_words=joined_words(source) if source else "",
        whole="*" if share is None else "",
        ids=share or (),
    )
    [reply] = yield from run_with_ceilings(handle, [create])
    child_id = _child_in(handle, outcome(reply, handle.id))
    handle.see_child(child_id)
    new = ProcessHandle(ProcessKeys(tree, child_id), handle.limits)
    new.highest, new.ceilings_due_at = handle.highest, handle.ceilings_due_at
    return new


def _child_in(handle: ProcessHandle, facts: list[Any]) -> str:
    """Return the child that a script has made, now or by its stored reply. Raises `DamagedRecord`."""
    child = show_bytes(facts[0])
    if member_of(handle.keys.tree, child.encode()) is None:
        raise DamagedRecord(f"the calls of process {handle.id}", f"{quoted(child)} is no process of the tree")
    return child


def _empty(output: ChildStream) -> tuple[str, int, str]:
    size = check_page_size(output.page_size)
    return check_source(output.source), size, empty_index(size)


def child_of_call(handle: ProcessHandle, call_id: str) -> Operation[str | None]:
    """Return the child that an earlier run of a tool call created, or None."""
    [answer] = yield [("HGET", handle.keys.calls, call_id)]
    if answer is None:
        return None
    what = f"the calls of process {handle.id}"
    reply = decode_record(answer, list[str], what)
    if len(reply) < 2 or member_of(handle.keys.tree, reply[1].encode()) is None:
        raise DamagedRecord(what, f"{quoted(call_id)} has made no process of the tree")
    return reply[1]


def launch(
    handle: ProcessHandle, brief: str, title: str = "", *, for_parent: bool = False
) -> Operation[None]:
    """Make an open process ready to run, with its task (JSON) as the first journal record, and `title` as
    the first line of that; `for_parent`: its parent, which a client holds, has the task `title` too. Raises
    `Fenced` if it has ended or already runs."""
    keys = handle.keys
    command = script("launch")(
        tree=keys.tree.record,
        process=keys.record,
        process_id=handle.id,
        brief=brief,
        check_s=LAUNCH_GRACE_S,
        task=title,
        words=task_words(brief),
        for_parent="1" if for_parent else "",
    )
    [reply] = yield [command]
    outcome(reply, handle.id)


def end(
    handle: ProcessHandle,
    state: ProcessState = "exited",
    *,
    exit_code: int | None = 0,
    reason: str = "",
    release: bool = True,
    answer: str = "",
    answer_fd: str = "",
    long_answer: str = "",
) -> Operation[tuple[str, ...]]:
    """End the process. Return the ids of the ancestors that became ready and need a wake-up, because they
    waited for this process alone.

    An agent's text stream is sealed with the exit code when the process exits. Every other stream the
    process still writes breaks, with what `ends` has for its reason.
    `long_answer` is the text of `answer_fd`, by whose words the process is found.

    Ending twice is allowed. Raises `Fenced` when a newer attempt runs it, `NotFound`.
    """
    finish = partial(
        script("finish"),
        tree=handle.keys.tree.record,
        process=handle.keys.record,
        id=handle.id,
        attempt_now=handle.attempt,
        final=state,
        exit_code="" if exit_code is None else exit_code,
        reason=reason,
        piece=RELEASE_PIECE if release else 0,
        short_answer=answer,
        answer_name=answer_fd,
        broken_as=ends.broken_as(state, reason)[:MAX_REASON_CHARS],
        answer_words=joined_words(answer or long_answer),
        reason_words=joined_words(reason),
    )
    cursor = "0"
    while True:
        [reply] = yield [finish(cursor=cursor)]
        state_or_cursor, *woken = map(text, outcome(reply, handle.id))
        if woken:
            return tuple(woken[0].split())
        cursor = state_or_cursor


def return_descriptors(handle: ProcessHandle) -> Operation[None]:
    """Give the parent all descriptors of this process that it lacks, by reference, and the session of its
    programs. A repeat changes nothing; a parent that has ended is left as it is. Raises `Fenced`, `NotFound`.
    """
    parent = process_keys(handle.keys.tree.prefix, handle.id.rpartition(".")[0])
    [reply] = yield [
        script("return_descriptors")(
            tree=handle.keys.tree.record,
            process=handle.keys.record,
            parent_record=parent.record,
            attempt=handle.attempt,
            id=handle.id,
            parent=parent.process,
        )
    ]
    outcome(reply, handle.id)


class Cancellation(msgspec.Struct, frozen=True):
    """The result of a cancellation: the state of the process, the ancestors that need a wake-up, the
    processes that were cancelled, and the damaged records that were skipped."""

    state: str
    woken: tuple[str, ...]
    cancelled: tuple[str, ...]
    unreadable: tuple[Unreadable, ...] = ()


def cancel(prefix: str, process: str, reason: str = ends.KILLED.name) -> Operation[Cancellation]:
    """Cancel a process and its descendants. Ended processes stay as they are; damaged ones are ended if
    their record can be written at all. Raises `NotFound`."""
    keys = process_keys(prefix, process)
    command = script("cancel")(tree=keys.tree.record, process=keys.record, process_id=process, reason=reason)
    [reply] = yield [command]
    if reply[0] == b"gone":
        raise (yield from missing(keys))
    state, woken, count, *names = outcome(reply, process)
    problems = (show_bytes(each).partition(": ") for each in names[count:])
    return Cancellation(
        show_bytes(state),
        tuple(text(woken).split()),
        tuple(map(show_bytes, names[:count])),
        tuple(Unreadable(what=what, problem=problem) for what, _, problem in problems),
    )


def touch(handle: ProcessHandle) -> Operation[None]:
    """Record the use of the tree, which postpones its collection."""
    tree = handle.keys.tree
    replies = yield Upkeep([script("touch")(tree=tree.record)])
    if replies is not None:
        [reply] = replies
        if reply[0] == b"gone":
            return
        due = due_at(handle.limits, float(reply[1]))
        yield Upkeep([("ZADD", tree.trees, "XX", due, tree.tree)])
    handle.mark_touched()
