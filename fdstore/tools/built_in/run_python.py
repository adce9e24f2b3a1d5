"""`run_python`: run code over stored texts, which a model writes instead of reading page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from fdstore.elements.stored_message import StoredResult
from fdstore.errors import InvalidArgument
from fdstore.model.model_servers import ModelServer
from fdstore.programs.refusals import NotForCode
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.setup.optional_packages import is_installed
from fdstore.store.contents import contents
from fdstore.store.views import worker_check
from fdstore.text.commands import parse
from fdstore.text.selection import selector
from fdstore.tools.arguments import Arguments
from fdstore.tools.built_in import pipe, spawn
from fdstore.tools.needs import PYTHON
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation, new_op

if TYPE_CHECKING:
    from fdstore.programs.host import Starters

MAX_NAMED = 20


class RunPython(Arguments, frozen=True, kw_only=True):
    code: Annotated[str, msgspec.Meta(description="Python. What it prints, and its last value, come back.")]


def run(context: Context, arguments: RunPython, call_id: str | None) -> Operation[ToolOutcome]:
    from fdstore.programs.python_call import run_call  # what describes tools does not run code

    return (yield from run_call(context, starters_for(context), arguments.code, call_id or new_op()))


def starters_for(context: Context) -> Starters:
    """Return the functions that start agents and pipelines for code, as `spawn` and `pipe` do."""
    from fdstore.programs.host import Starters

    def start_agent(program: str, query: str, refs: list[str], slot: str) -> Operation[str]:
        if spawn.TOOL.name in context.refused:
            raise InvalidArgument("spawn", "a copy cannot start agents; do its task with the other functions")
        yield from _require_worker(context, for_agents=True, servers=context.servers_of(program))
        asked = spawn.Spawn(program_name=program, query=query, additional_preload_fds=refs)
        return (yield from spawn.start_child(context, asked, slot))

    def start_commands(commands: list[str], ref: str | None, slot: str) -> Operation[str]:
        if not context.commands:
            raise NotForCode("pipe", "do it in Python")
        yield from _require_worker(context, for_agents=False)
        parse(commands, context.commands)  # before a part is stored
        in_fd = ref
        if ref is not None and (chosen := selector(ref)).part is not None:
            part = yield from contents.extract(context.handle, chosen.fd, chosen.part, call_id=f"{slot}/part")
            in_fd = part.fd
        asked = pipe.Pipe(commands=commands, in_fd=in_fd)
        return (yield from pipe.start_pipeline(context, asked, slot)).process

    return Starters(spawn=start_agent, pipe=start_commands)


def _require_worker(
    context: Context, *, for_agents: bool, servers: Sequence[ModelServer] = ()
) -> Operation[None]:
    if not context.wait_for_workers:
        yield from worker_check.require_worker(context.prefix, for_agents=for_agents, servers=servers)


def describe(context: Context) -> str:
    text = (
        "Run Python over stored texts: count, filter, join and compare them without reading them. Variables, "
        "functions and imports stay for the next call. fd(ID) gives a text, print shows you what you want to "
        "see."
    )
    return " ".join([text, *_functions(context)])


def _functions(context: Context) -> list[str]:
    lines = []
    if context.ask is not None:
        lines.append('await ask("...", part) asks a model about a text, many at once with asyncio.gather.')
    if context.linked:
        lines.append(f'await spawn(PROGRAM, "...", text) runs an agent: {", ".join(context.linked)}.')
    if context.commands:
        names = ", ".join(context.commands[:MAX_NAMED])
        lines.append(f'await pipe([["sort"], ["uniq", "-c"]], text) runs commands: {names}.')
    if context.functions:
        names = ", ".join(list(context.functions)[:MAX_NAMED])
        lines.append(f"Functions to await, with arguments by name: {names}.")
    return lines


def explain(context: Context) -> str:
    text = (
        "# Programs\n"
        "Where a question needs all of a long text, write a program instead of reading page by page: "
        "run_python(code=...). In it:\n"
        '- log = fd("fd:1"): a text, also "name:KEY" or a part as "fd:1#L1-100"; fds() lists them\n'
        "- log.total_chars, log.total_lines, log.total_pages, log.source, log.kind, log.state\n"
        "- log.line(120), log.lines(100, 200), log.page(3), log.chars(1, 500), log.text(): a str; "
        "first and last, counted from 1, both included\n"
        "- as of a str: len(log), x in log, log[0:500], for line in log, log.count(x), log.splitlines()\n"
        '- log.search(r"ERROR (\\d+)", max_matches=1000, ignore_case=False): hits with .line .text .chars '
        ".groups\n"
        "- log.split(chars=50_000), also lines= or pages=: a list of parts, each a text of its own"
    )
    if context.code_may_create:
        text += "\n- create(text, name=None): stores a text as a new descriptor"
    if context.ask is not None:
        text += (
            '\n- await ask("Which dates occur?", part): the answer of a model, a str. It sees only the '
            f"question and these texts, of up to {context.ask.max_chars} characters. Ask about all parts at "
            "once, after import asyncio: "
            'answers = await asyncio.gather(*[ask("...", part) for part in log.split(chars=50_000)])'
        )
    if context.linked:
        program = next(iter(context.linked))
        text += (
            f'\n- r = await spawn("{program}", "...", log): an agent; r.answer, r.fd, r.state, r.exit_code'
        )
    if context.commands:
        command = context.commands[0]
        text += f'\n- r = await pipe([["{command}"]], log): a pipeline; r.fd, r.exit_code'
    if is_installed("duckdb"):
        text += (
            '\n- await sql("SELECT city, sum(n) AS n FROM a GROUP BY 1", a=table): rows as dicts, by DuckDB'
        )
    if context.functions:
        name = next(iter(context.functions))
        text += f"\n- await {name}(...): your tools are functions too, with arguments by name"
    return (
        f"{text}\nThere are no files, no network and no packages: re, json, math, datetime, collections, "
        "asyncio and the like are there. Classes cannot inherit, and there is no yield and no del. Print "
        "little: what is longer is stored as a text."
    )


def offer(stored: StoredResult) -> str:
    if stored.shows in ("all", "nothing") or not stored.has_long_lines:
        return ""
    return "take it apart with run_python"


TOOL = Tool(
    name="run_python",
    title="Run Python over stored texts",
    position=65,
    works_on="descriptors",
    effect="adds",
    needs=PYTHON,
    permission="python",
    preloaded=True,
    resumes=True,
    arguments=RunPython,
    describe=describe,
    explain=explain,
    offer=offer,
    section="programs",
    run=run,
)
