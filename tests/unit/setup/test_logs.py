"""JSON log messages."""

from __future__ import annotations

import json
import logging
import sys
import threading

from fdstore.agents.loop.attempt_log import AttemptLog
from fdstore.setup.logs import JsonFormatter, about, facts


def written(message: str, *arguments: object, **more: object) -> dict[str, object]:
    record = logging.LogRecord("fdstore.x", logging.WARNING, "", 1, message, arguments, None)
    record.__dict__ |= more
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert line.isascii()
    return json.loads(line)


def test_a_json_message_is_one_ascii_line_whatever_it_quotes():
    found = written("%s", "a\x1b\nERROR \u202e \ud800")

    assert found["message"] == "a\x1b\nERROR \u202e \ud800"
    assert (found["level"], found["logger"]) == ("warning", "fdstore.x")


def test_a_json_message_has_the_facts_of_its_block_and_its_own():
    with about(process="triage.1", attempt=1), about(tool="read_fd"):
        found = written("late", **facts(reason="fenced", attempt=2, program=None))

    assert {name: found[name] for name in ("process", "tool", "reason", "attempt")} == {
        "process": "triage.1",
        "tool": "read_fd",
        "reason": "fenced",
        "attempt": 2,
    }
    assert "program" not in found
    assert "process" not in written("later")


def test_the_facts_of_a_block_are_those_of_its_thread():
    found = []
    with about(process="triage.1"):
        thread = threading.Thread(target=lambda: found.append(written("elsewhere")))
        thread.start()
        thread.join()

    assert "process" not in found[0]


def test_a_traceback_is_part_of_the_json_message():
    try:
        raise ValueError("one\ntwo")
    except ValueError:
        found = written("failed", exc_info=sys.exc_info())

    assert str(found["exception"]).endswith("ValueError: one\ntwo")


def test_the_end_of_a_process_is_logged_with_its_facts(caplog):
    caplog.set_level("INFO", "fdstore.agent")
    log = AttemptLog("triage.1", "expert", 2.0, attempt=3)
    log.turns = 4

    log.ended("failed", None, "poison")

    [record] = caplog.records
    found = json.loads(JsonFormatter().format(record))
    assert found["duration_s"] >= 2.0
    assert {name: found[name] for name in ("process", "program", "attempt", "turns", "state", "reason")} == {
        "process": "triage.1",
        "program": "expert",
        "attempt": 3,
        "turns": 4,
        "state": "failed",
        "reason": "poison",
    }
