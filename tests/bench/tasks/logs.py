"""Tasks on logs: a failed test of a CI run, a traceback in a server's log, a build that is still running."""

from __future__ import annotations

import re

from fdstore.testing import call
from tests.bench.tasks import texts
from tests.bench.tasks.plans import Hand, Plan, first_match
from tests.bench.tasks.task import Task, shows


def _failing_test(hand: Hand) -> Plan:
    log = yield from hand.fetch("ci/1841")
    [found] = yield from hand.find(log, r"^\S+ (FAILED |E  )")
    name = first_match(found, r"Z FAILED (\S+) - ")
    return f"{name}: {first_match(found, r'Z E +(.+)$')}" if name else ""


def _cause(hand: Hand) -> Plan:
    log = yield from hand.fetch("logs/shop")
    [found] = yield from hand.find(log, r"^During handling of|Traceback", 6)
    return first_match(found, r"^(?:[0-9]+[-:])?(redis\.\S+Error: .+)$")


def _build(hand: Hand) -> Plan:
    pattern = r"^(?:[0-9]+[:-])?(\S+: error: .+)$"
    shown = ""
    while "make: ***" not in shown:
        if hand.has_fds:
            [shown] = yield call("search_fd", fd="fd:1", pattern=r": error: |^make: \*\*\*")
        else:
            [part] = yield from hand.each([call("build_output")])
            [shown] = yield from hand.find([part], r": error: |^make: \*\*\*")
        if re.search(pattern, shown, re.MULTILINE):
            return first_match(shown, pattern)
    return ""


TASKS = (
    Task(
        name="failed test in a CI log",
        kind="large",
        question="Which test failed in the CI run ci/1841, and with which error?",
        tools=("fetch",),
        documents={"ci/1841": texts.ci_log},
        plan=_failing_test,
        truth=lambda: f"{texts.FAILED_TEST}: {texts.FAILURE}",
        is_proved=shows(f"FAILED {texts.FAILED_TEST}", f"E       {texts.FAILURE}"),
    ),
    Task(
        name="cause of a traceback",
        kind="large",
        question="Request 88213 failed, see logs/shop. Which error was the first cause?",
        tools=("fetch",),
        documents={"logs/shop": texts.server_log},
        plan=_cause,
        truth=lambda: texts.CAUSE,
        is_proved=shows(texts.CAUSE, "During handling of the above exception"),
    ),
    Task(
        name="first error of a running build",
        kind="large",
        question="The build runs. What is its first error? Say it as soon as it is there.",
        tools=("build_output",),
        parts=texts.build_output,
        plan=_build,
        truth=lambda: texts.BUILD_ERROR,
        is_proved=shows(texts.BUILD_ERROR),
    ),
)
