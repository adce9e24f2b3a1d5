"""Tasks that need every line of long texts, in four ways: inline, by pages, by child agents, by a program.

    inline      all texts come whole into the conversation
    pages       they are descriptors, and the agent reads all their pages, many in one message
    children    child agents read a part each; the agent adds up what they say
    program     the agent writes a program, which asks a model about each part, or computes

The model is a script that understands what it is shown without a mistake and adds up in its head, in all
ways alike: `read` is what it says about a part, `merge` the answer. An answer is right if it is the true one;
as the script sees only what was shown, it then has seen all of it.

Counted is what the models read and what they write: `own` is that of the agent, `others` that of its children
or of the questions of its program. All text that a model must read costs its tokens at least once, whoever
reads it, so a program saves most of `own`, and of all tokens only what the other ways read more than once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from fdstore.agents.loop.bundle import Bundle, LinkedProgram, Program
from fdstore.agents.loop.program_limits import Limits
from fdstore.bench.stage import stage
from fdstore.client import Store
from fdstore.results.config import FDConfig
from fdstore.testing import Request, say
from fdstore.testing.replies import Text as TextBlock
from fdstore.testing.replies import ToolUse, Turn
from tests.bench.tasks import counting, host_tools
from tests.bench.tasks.hosts import WINDOW_TOKENS, Host
from tests.bench.tasks.plans import Plan
from tests.bench.tasks.reading_tasks import READING_TASKS, ReadingTask
from tests.bench.tasks.reading_ways import NOTHING, PLANS, WAYS, Way, child_reply
from tests.bench.tasks.results import ratio_text, rounded, row_of
from tests.bench.tasks.running import READERS, SYSTEM, Player, run_agent, with_usage

WHOLE = FDConfig(whole_chars=100_000)
"""Children see whole what they are to read."""

CHILD = "You read texts for another agent, and answer its question about them."


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """One task in one way. `own` tokens are those of the agent, `others` those of its children or of the
    questions of its program, sent and answered; `turns` of the agent, `requests` of the others. `why` says
    why it cannot be right, "" if it is."""

    task: str
    way: Way
    own: int
    others: int
    turns: int
    requests: int
    why: str

    @property
    def total(self) -> int:
        return self.own + self.others


class _Models(Player):
    """The models of one run: the agent plays its plan; children and questions are answered from what they
    show. Counts the tokens of all."""

    def __init__(self, task: ReadingTask, plan: Plan) -> None:
        super().__init__(plan)
        self._task = task
        self.written = 0
        self.others: list[int] = []
        self.longest = 0

    def agent(self, request: Request) -> Turn:
        reply = self.reply(request)
        self.written += _written(reply)
        return with_usage(reply, counting.total(self.requests[-1]), _written(reply))

    def child(self, request: Request) -> Turn:
        return self._count(request, child_reply(self._task, request))

    def asked(self, request: Request) -> Turn:
        *shown, _ = [str(block["text"]) for block in request.messages[0]["content"]]
        return self._count(request, say(self._task.read("\n".join(shown)) or NOTHING))

    def _count(self, request: Request, reply: Turn) -> Turn:
        size = counting.total(counting.parts_of(request))
        self.longest = max(self.longest, size)
        self.others.append(size + _written(reply))
        return with_usage(reply, size, _written(reply))


def _written(reply: Turn) -> int:
    """Return the tokens that a model writes for a reply."""
    words = ""
    for block in reply.blocks:
        match block:
            case TextBlock(text):
                words += text
            case ToolUse(name, arguments):
                words += counting.as_json([name, arguments])
    return counting.estimate(words)


def measure(store: Store, task: ReadingTask, way: Way) -> Spent:
    """Run a task in one way."""
    models = _Models(task, PLANS[way](task))
    session = host_tools.Session(Host("inline", {}), task.documents)
    script = {CHILD: models.child, SYSTEM: models.agent, "": models.asked}
    run_agent(store, script, _bundle(way), task.question, session)
    tokens = counting.count(models.requests)
    why = ""
    if max(tokens.longest, models.longest) > WINDOW_TOKENS:
        why = "too long for any model"
    elif models.answer != task.truth():
        why = "wrong"
    return Spent(
        task=task.name,
        way=way,
        own=tokens.sent + models.written,
        others=sum(models.others),
        turns=len(models.requests),
        requests=len(models.others),
        why=why,
    )


def _bundle(way: Way) -> Bundle:
    fetch = (f"{host_tools.__name__}:fetch",)
    tools = {
        "inline": (),
        "pages": READERS,
        "children": (*READERS, "spawn"),
        "program": (*READERS, "run_python"),
    }
    root = Program(
        name="task",
        model="any",
        system=SYSTEM,
        tools=tools[way],
        python=fetch,
        file_descriptor=FDConfig(enabled=way != "inline"),
        deferred_tools=True,
        linked={"reader": LinkedProgram(key="reader")} if way == "children" else {},
        limits=Limits(max_turns=1000),
    )
    reader = Program(
        name="reader",
        model="any",
        system=CHILD,
        tools=READERS,
        python=fetch,
        file_descriptor=WHOLE,
        deferred_tools=True,
    )
    return Bundle(root="task", programs={"task": root, "reader": reader})


LIMIT = 0.2


class ReadingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A task in all ways. `ratio` is what an agent with a program spends itself, over all tokens of the
    cheapest other way that is right; `total_ratio` is that of all its tokens, with its questions."""

    task: str
    results: tuple[Spent, ...]
    ratio: float
    total_ratio: float
    ok: bool


def judge_ways(results: Iterable[Spent]) -> ReadingVerdict:
    """Return the verdict on one task."""
    of = {result.way: result for result in results}
    program = of["program"]
    best = min(each.total for each in of.values() if each is not program and not each.why)
    ratio = program.own / best
    return ReadingVerdict(
        task=program.task,
        results=tuple(of[way] for way in WAYS),
        ratio=ratio,
        total_ratio=program.total / best,
        ok=not program.why and ratio <= LIMIT,
    )


def measure_reading(names: Collection[str] = ()) -> Iterator[ReadingVerdict]:
    """Run these tasks (default: all) in all ways, one task per iteration."""
    with stage(quick=True, own_processor=False) as made:
        for name, task in READING_TASKS.items():
            if not names or name in names:
                yield judge_ways(measure(made.store, task, way) for way in WAYS)


READING_HEADER = ["TASK", "WAY", "AGENT", "OTHERS", "TURNS", "REQUESTS", "ANSWER", "RATIO", "BAR", ""]
READING_RIGHT = ["AGENT", "OTHERS", "TURNS", "REQUESTS"]


def reading_rows(verdicts: Iterable[ReadingVerdict]) -> list[list[str]]:
    """Return the cells of a table, a row for each task in each way."""
    return [
        row_of(
            verdict,
            result,
            result.way,
            (result.own, result.others, result.turns, result.requests),
            judged=(verdict.ratio, verdict.total_ratio, LIMIT) if result.way == "program" else None,
        )
        for verdict in verdicts
        for result in verdict.results
    ]


def reading_markdown(verdicts: Iterable[ReadingVerdict]) -> str:
    """Return the second table of task-costs.md: tokens of the agent and of the others, and turns."""
    lines = [
        "| task | inline | by pages | by children | by a program | ratio, of all |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for verdict in verdicts:
        cells = " | ".join(map(_cell, verdict.results))
        ratios = f"{ratio_text(verdict.ratio)}, {ratio_text(verdict.total_ratio)}"
        lines.append(f"| {verdict.task} | {cells} | {ratios} |")
    return "\n".join(lines)


def _cell(result: Spent) -> str:
    tokens = rounded(result.own) + (f" + {rounded(result.others)}" if result.others else "")
    return f"{tokens} ({result.turns})" + (", cannot" if result.why else "")
