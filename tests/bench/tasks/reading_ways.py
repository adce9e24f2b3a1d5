"""Ways to read every line of long texts: an agent's plans, and the work of its children. See `reading`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from fdstore.testing import Request, call, say, turn
from fdstore.testing.replies import Turn
from tests.bench.tasks.hosts import WINDOW_TOKENS
from tests.bench.tasks.plans import TOGETHER, Hand, Plan, text_of
from tests.bench.tasks.reading_tasks import ReadingTask

Way = Literal["inline", "pages", "children", "program"]
WAYS: tuple[Way, ...] = ("inline", "pages", "children", "program")

PAGES = 24
"""Of one read: of 4000 characters each, they are fewer than the 100 000 that a read may show."""

NOTHING = "none"
"""The answer of a model that finds nothing in a part."""

MESSAGE_CHARS = 1_000_000, 400_000
"""The most characters that the reads of one message show, of texts that are less than half of a window
together, and of longer ones: as much as a window takes beside results that are not cleared yet."""

_PAGES = re.compile(r'<fd_result fd="(fd:[0-9]+)" pages="([0-9]+)"')
_BODY = re.compile(r"<python_result [^>]*>\n(.*)\n</python_result>", re.DOTALL)


def _inline(task: ReadingTask) -> Plan:
    fetched = yield from Hand("inline").fetch(*task.documents)
    return task.merge([task.read(text.shown) for text in fetched])


def _pages(task: ReadingTask) -> Plan:
    """Read what was announced beside the next texts; each message says what was found so far, since old
    results are cleared."""
    found: list[str] = []
    unread: list[Turn] = []
    names = list(task.documents)
    sizes = [len(text()) for text in task.documents.values()]
    most = MESSAGE_CHARS[sum(sizes) // 4 >= WINDOW_TOKENS // 2]
    together = min(TOGETHER, most // min(max(sizes), PAGES * 4000))
    while names or unread:
        reads, unread = unread[:together], unread[together:]
        fetches = [call("fetch", name=name) for name in names[: 0 if unread else TOGETHER]]
        names = names[len(fetches) :]
        notes = [say(task.merge(found))] if found else []
        shown = yield turn(*notes, *reads, *fetches)
        found += list(map(task.read, shown[: len(reads)]))
        for announced in shown[len(reads) :]:
            unread += _reads(announced)
    return task.merge(found)


def _reads(announced: str) -> list[Turn]:
    """Return the calls that read all of a text."""
    match = _PAGES.search(announced)
    assert match is not None, announced[:200]
    fd, pages = match[1], int(match[2])
    return [
        call("read_fd", fd=fd, start=first, count=min(PAGES, pages - first + 1))
        for first in range(1, pages + 1, PAGES)
    ]


def _children(task: ReadingTask) -> Plan:
    """Spawn children: one for each part of a long text, or for as many texts as one message fetches."""
    names = list(task.documents)
    if len(names) == 1:
        [announced] = yield call("fetch", name=names[0])
        match = _PAGES.search(announced)
        assert match is not None
        spawns = [
            call(
                "spawn",
                program_name="reader",
                query=task.question,
                additional_preload_fds=[f"{match[1]}#P{first}-{min(first + PAGES - 1, int(match[2]))}"],
            )
            for first in range(1, int(match[2]) + 1, PAGES)
        ]
    else:
        groups = [names[first : first + TOGETHER] for first in range(0, len(names), TOGETHER)]
        spawns = [
            call("spawn", program_name="reader", query=f"{task.question} Only {', '.join(group)}.")
            for group in groups
        ]
    answers: list[str] = []
    for first in range(0, len(spawns), TOGETHER):
        shown = yield turn(*spawns[first : first + TOGETHER])
        answers += [_answer_of(each) for each in shown]
    return task.merge([answer for answer in answers if answer != NOTHING])


def _answer_of(result: str) -> str:
    """Return the answer of a child as its result shows it."""
    match = re.search(r"<process_result[^>]*>\n(.*)\n</process_result>", result, re.DOTALL)
    assert match is not None, result[:300]
    return match[1]


def _program(task: ReadingTask) -> Plan:
    yield call("fetch", name=next(iter(task.documents)))
    [shown] = yield call("run_python", code=f"import asyncio, collections\n{task.code}")
    match = _BODY.search(shown)
    return match[1] if match else shown


def child_reply(task: ReadingTask, request: Request) -> Turn:
    """Answer as a child: fetch the texts that the query names, read their pages, answer."""
    query = request.messages[0]["content"]
    words = query if isinstance(query, str) else str(query[0]["text"])
    names = [name for name in task.documents if re.search(rf"(Only|,) {re.escape(name)}\b(?=[.,])", words)]
    results = [result.text for result in request.tool_results()]
    if names and not results:
        return turn(*(call("fetch", name=name) for name in names))
    announced = results[: len(names)] if names else [request.system]
    if len(results) == len(names):
        reads = [each for shown in announced if text_of(shown).rest for each in _reads(shown)]
        if reads:
            return turn(*reads)
    # a short part was shown whole
    return say("\n".join(map(task.read, results[len(names) :] or announced)) or NOTHING)


PLANS: dict[Way, Callable[[ReadingTask], Plan]] = {
    "inline": _inline,
    "pages": _pages,
    "children": _children,
    "program": _program,
}
