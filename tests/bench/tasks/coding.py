"""Short tasks, where a descriptor can only cost: files of a few pages, and one line of a long one."""

from __future__ import annotations

from fdstore.testing import call
from tests.bench.tasks import texts
from tests.bench.tasks.plans import Hand, Plan, first_match, text_of
from tests.bench.tasks.task import Task, shows, shows_lines

OLD, NEW = "    def is_normal(self, context=None):", "    def is_normal(self, context=None, /):"


def pasted() -> str:
    """Return the text that the user pastes."""
    return texts.manual(15_000)


def _raises(hand: Hand) -> Plan:
    [shown] = yield call("read_file", path="src/bisect.py")
    return first_match(shown, r"(raise ValueError\('lo .+\))")


def _review(hand: Hand) -> Plan:
    [shown] = yield call("read_file", path="src/textwrap.py")
    yield from hand.whole(text_of(shown))
    return "reviewed"


def _translate(hand: Hand) -> Plan:
    [shown] = yield call("read_file", path="minutes.md")
    yield from hand.whole(text_of(shown))
    return "translated"


def _explain(hand: Hand) -> Plan:
    yield from hand.whole(text_of(hand.question))
    return "explained"


def _edit(hand: Hand) -> Plan:
    [found] = yield call("search_file", path="src/decimal.py", pattern=r"def is_normal\(self")
    line = first_match(found, "^([0-9]+):")
    if not line:
        return ""
    [shown] = yield call("read_file", path="src/decimal.py", start_line=int(line), line_count=8)
    if OLD not in shown:
        return ""
    [done] = yield call("replace_in_file", path="src/decimal.py", old=OLD, new=NEW)
    return done


TASKS = (
    Task(
        name="a question on a 3 KB file",
        kind="focused",
        question="What does src/bisect.py raise for a negative lo?",
        tools=("read_file", "search_file"),
        files={"src/bisect.py": lambda: texts.library("bisect")},
        plan=_raises,
        truth=lambda: "raise ValueError('lo must be non-negative')",
        is_proved=shows("raise ValueError('lo must be non-negative')"),
    ),
    Task(
        name="review a 20 KB file",
        kind="short",
        question="Review src/textwrap.py, line by line.",
        tools=("read_file", "search_file"),
        files={"src/textwrap.py": lambda: texts.library("textwrap")},
        plan=_review,
        truth=lambda: "reviewed",
        is_proved=shows_lines(lambda: texts.library("textwrap")),
    ),
    Task(
        name="translate 15 KB of Chinese",
        kind="focused",
        question="Translate minutes.md to English.",
        tools=("read_file", "search_file"),
        files={"minutes.md": texts.minutes},
        plan=_translate,
        truth=lambda: "translated",
        is_proved=shows_lines(texts.minutes),
    ),
    Task(
        name="edit a line of a long file",
        kind="focused",
        question="Make the parameters of the method is_normal of Decimal in src/decimal.py positional.",
        tools=("read_file", "search_file", "replace_in_file"),
        files={"src/decimal.py": lambda: texts.library("_pydecimal")},
        plan=_edit,
        truth=lambda: "replaced",
        is_proved=shows(OLD),
    ),
    Task(
        name="explain a pasted text of 15 KB",
        kind="short",
        question="Explain each paragraph of this:",
        pasted=pasted,
        tools=("read_file", "search_file"),
        plan=_explain,
        truth=lambda: "explained",
        is_proved=shows_lines(pasted),
    ),
)
