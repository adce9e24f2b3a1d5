"""The task of a process: the first record of its journal.

It holds, with the program, everything a worker needs to start: the message that wakes the worker carries only
a process id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore.results.json_text import json_value
from fdstore.text.layout import first_line


class SpawnTask(msgspec.Struct, frozen=True, kw_only=True, tag="brief", tag_field="kind"):
    """Task of an agent. `query` is the user's text or blocks; `preload` the ids of shared descriptors, in
    order; an answer longer than `answer_limit` characters is passed on as a descriptor (None: never), or one
    of more than `answer_limit_tokens`, if that is given. With `hands_back` the parent gets all descriptors of
    the agent at its end, and the session of its programs."""

    query: str | list[Any]
    preload: list[str] = []
    answer_limit: int | None = None
    answer_limit_tokens: int | None = None
    hands_back: bool = False


class ForkTask(msgspec.Struct, frozen=True, kw_only=True, tag="fork", tag_field="kind"):
    """Task of a fork of process `of`. Its conversation is the first `records` records of that process's
    journal, then its own result of the fork call `call`: that it is number `copy` of `copies`, and its
    `prompt`. Unless `may_spawn` is set it starts no processes."""

    of: str
    records: int
    call: str
    prompt: str
    copy: int
    copies: int
    may_spawn: bool = False
    answer_limit: int | None = None
    answer_limit_tokens: int | None = None


class PipeTask(PipelineLimits, frozen=True, kw_only=True, tag="pipe", tag_field="kind"):
    """Task of a pipeline: the argv of each stage, the stages (from 1) whose output is kept too, and its
    limits."""

    commands: list[list[str]]
    page_size: int
    tee: list[int] = msgspec.field(default_factory=list)


Task = SpawnTask | ForkTask


def is_long_answer(task: Task, answer: str, count_tokens: Callable[[str], float]) -> bool:
    """Return whether the parent of an agent gets its answer as a descriptor."""
    if task.answer_limit is None:
        return False
    if task.answer_limit_tokens is None:
        return len(answer) > task.answer_limit
    return count_tokens(answer) > task.answer_limit_tokens


def title_of(task: Task) -> str:
    r"""Return the first line of a task, for people.

    >>> title_of(SpawnTask(query="\nFind the first error.\nThen stop."))
    'Find the first error.'
    """
    if isinstance(task, ForkTask):
        return first_line(task.prompt)
    if isinstance(task.query, str):
        return first_line(task.query)
    texts = [block.get("text") for block in task.query if isinstance(block, dict)]
    return first_line("\n".join(text for text in texts if isinstance(text, str)))


def encode_task(task: Task | PipeTask) -> str:
    """Encode a task as a journal record. Half a surrogate pair, as in what a terminal sent that is not UTF-8,
    is shown as a text."""
    return msgspec.json.encode(json_value(task)).decode("utf-8")


prepare(SpawnTask, ForkTask, PipeTask)
