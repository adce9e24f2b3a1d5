"""Tasks on sources and documents that a service returns whole: quote, compare, and read all of it."""

from __future__ import annotations

from fdstore.testing import call
from tests.bench.tasks import texts
from tests.bench.tasks.plans import Hand, Plan, first_match
from tests.bench.tasks.task import Task, shows, shows_lines

QUOTED = "def _dlog10"
LINES = 60
"""As many as the model asks for: more than the function has."""


def manual() -> str:
    """Return a document of 60 KB."""
    return texts.manual(60_000)


def quoted_function() -> str:
    """Return the function to quote, with its body."""
    return cut_function(texts.library("_pydecimal"))


def cut_function(text: str) -> str:
    """Return the function to quote from a text that has it, "" if it is not all there."""
    begin = text.find(f"{QUOTED}(")
    end = text.find("\ndef ", begin + 1)
    return text[begin:end].rstrip() if 0 <= begin < end else ""


def _quote(hand: Hand) -> Plan:
    sources = yield from hand.fetch("src/decimal.py")
    [found] = yield from hand.find(sources, rf"^{QUOTED}\(")
    if not sources[0].rest:
        return cut_function(found)
    line = first_match(found, rf"^([0-9]+):{QUOTED}\(")
    return cut_function((yield from hand.lines(sources[0], int(line), LINES))) if line else ""


def _changes(hand: Hand) -> Plan:
    old, new = yield from hand.fetch("v1/argparse.py", "v2/argparse.py")
    if old.rest and new.rest:
        names = [f"{{{{{each.rest}}}}}" if hand.has_fds else each.rest for each in (old, new)]
        [shown] = yield call("compare", old=names[0], new=names[1])
        return "\n".join(line[1:].strip() for line in shown.splitlines() if line.startswith("+ "))
    before = "".join((yield from hand.whole(old))).splitlines()
    after = "".join((yield from hand.whole(new))).splitlines()
    return "\n".join(line.strip() for line in after if line not in frozenset(before))


def _read(hand: Hand) -> Plan:
    [document] = yield from hand.fetch("manual")
    yield from hand.whole(document)
    return "summarised"


TASKS = (
    Task(
        name="quote a function",
        kind="large",
        question=f"Quote the function {QUOTED[4:]} of src/decimal.py exactly.",
        tools=("fetch",),
        documents={"src/decimal.py": lambda: texts.library("_pydecimal")},
        plan=_quote,
        truth=quoted_function,
        is_proved=lambda seen: quoted_function() in seen,
    ),
    Task(
        name="compare two versions",
        kind="large",
        question="Which lines are new in v2/argparse.py, compared with v1/argparse.py?",
        tools=("fetch", "compare"),
        documents={
            "v1/argparse.py": lambda: texts.library("argparse"),
            "v2/argparse.py": lambda: texts.newer("argparse")[0],
        },
        plan=_changes,
        truth=lambda: "\n".join(texts.newer("argparse")[1]),
        is_proved=lambda seen: shows(*texts.newer("argparse")[1])(seen),
    ),
    Task(
        name="summarise all of 60 KB",
        kind="whole",
        question="Summarise the document manual, every section of it.",
        tools=("fetch",),
        documents={"manual": manual},
        plan=_read,
        truth=lambda: "summarised",
        is_proved=shows_lines(manual),
    ),
)
