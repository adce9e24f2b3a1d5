"""`fork`: run copies of this agent, each with its whole conversation and table, and a task of its own.

A copy is a child process whose conversation starts with this process's journal, by reference, and whose table
holds the same contents under the same ids: only numbers are copied. Its task is its own result of the fork
call.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started, ToolOutcome
from fdstore.store.processes import forks, journal
from fdstore.tools.arguments import Arguments, check_message
from fdstore.tools.process_task import ForkTask, encode_task, title_of
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation

MAX_COPIES = 10

NO_CONVERSATION = (
    "fork copies an agent together with its conversation, and the conversation of your own loop is "
    "not stored here; run the agent with `fdstore run`, or copy its descriptors with proc.fork()"
)


class Fork(Arguments, frozen=True, kw_only=True):
    prompts: Annotated[
        list[str],
        msgspec.Meta(
            description="What each copy is to do.",
            extra_json_schema={"minItems": 1, "maxItems": MAX_COPIES},
        ),
    ]


def run(context: Context, arguments: Fork, call_id: str | None) -> Operation[ToolOutcome]:
    prompts = arguments.prompts
    if not 1 <= len(prompts) <= MAX_COPIES:
        raise InvalidArgument("prompts", f"1 to {MAX_COPIES} are taken, one for each copy")
    for number, prompt in enumerate(prompts):
        check_message(f"prompts[{number}]", prompt)
    if call_id is None:
        raise InvalidArgument("call_id", "fork needs the id of its call")
    handle = context.handle
    records = yield from journal.length(handle)
    if not context.own_program.name or not records:
        raise InvalidArgument("", NO_CONVERSATION)
    tasks = [
        ForkTask(
            of=handle.id,
            records=records,
            call=call_id,
            prompt=prompt,
            copy=number,
            copies=len(prompts),
            may_spawn=context.forks_may_spawn,
            answer_limit=context.direct_limit,
            answer_limit_tokens=context.config.max_direct_output_tokens,
        )
        for number, prompt in enumerate(prompts, 1)
    ]
    briefs = [(encode_task(task), title_of(task)) for task in tasks]
    copies = yield from forks.create_copies(handle, briefs, context.own_program, call_id)
    for copy in copies:
        yield Disk(partial(context.wake, copy.id))
    return Started(tuple(copy.id for copy in copies))


def describe(context: Context) -> str:
    return (
        f"Run 1 to {MAX_COPIES} copies of yourself at the same time and get their last messages, in order. "
        "Each copy has this whole conversation and your stored texts, and does what its prompt says."
    )


def explain(context: Context) -> str:
    return (
        "# Copies of yourself\n"
        "fork runs copies of you at once, each with this whole conversation and its own task: "
        'fork(prompts=["Check the first half.", "Check the second half."]). Their last messages are your '
        "result, in this order."
    )


TOOL = Tool(
    name="fork",
    title="Run copies of this agent",
    position=120,
    works_on="processes",
    effect="adds",
    agents_only=NO_CONVERSATION,
    starts="agents",
    arguments=Fork,
    describe=describe,
    explain=explain,
    run=run,
    failing=({"prompts": []},),
)
