"""The supervisor with workers that only report: what it starts, reads and forwards, and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore_workers.reports import MAX_LINE_BYTES, Report, Reporter, parse
from fdstore_workers.supervisor import pause_before_next
from tests.thorough import sample
from tests.waiting import PATIENCE_S

PROGRAM = """
import json, logging, os, signal, sys, threading, time
from pathlib import Path

import fdstore_workers.supervisor as supervisor

logging.basicConfig(format="%(message)s")
supervisor.FIRST_PAUSE_S = 0.001
book = Path(sys.argv[1])

def note(*what):
    with book.open("a") as file:
        file.write(json.dumps(what) + "\\n")

def noted(what):
    return sum(json.loads(line)[0] == what for line in book.read_text().splitlines())

def wait(condition):
    until = time.monotonic() + 200
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)

def stop():
    "Have the supervisor told to stop, and end when it passes that on."
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    os.kill(os.getppid(), signal.SIGTERM)
    while True:
        time.sleep(0.01)

def release(what, held, taken):
    note("release", what.replace(str(os.getpid()), "PID"), [[h.process, h.claim] for h in held], taken)
    note("blamed", [h.claim for h in held if h.is_to_blame])
    return 0

def run_alone(reporter, process):
    note("alone", process)
    time.sleep(0.01)
    note("done", process)
    return 0

{work}

sys.exit(supervisor.Supervisor(supervisor.Roles(work, run_alone, release), 2).run())
"""


@pytest.fixture
def supervised(tmp_path: Path) -> Callable[[str], tuple[int, list[Any], str]]:
    """Run a supervisor whose workers run `work(reporter)`; return its status, the notes and its log."""

    def run(work: str) -> tuple[int, list[Any], str]:
        book = tmp_path / "book"
        book.touch()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.replace("{work}", work), str(book)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.returncode, [json.loads(line) for line in book.read_text().splitlines()], done.stderr

    return run


Supervised = Callable[[str], tuple[int, list[Any], str]]


def test_a_worker_that_dies_is_restarted_and_its_processes_are_reported_lost(supervised: Supervised) -> None:
    status, noted, _ = supervised("""
def work(reporter):
    note("work")
    reporter.ready()
    if noted("work") == 1:
        reporter.take("taken.1")
        reporter.take("begun")
        reporter.claim("begun", "claim-1")
        reporter.claim("over", "claim-2")
        reporter.release("over", "claim-2")
        os.kill(os.getpid(), signal.SIGKILL)
    wait(lambda: noted("release"))
    stop()
""")

    [what, held, taken] = next(entry[1:] for entry in noted if entry[0] == "release")
    assert what.endswith("was ended by SIGKILL")
    assert (held, taken) == ([["begun", "claim-1"]], ["taken.1"])
    assert (status, sum(entry == ["work"] for entry in noted)) == (0, 2)


def test_a_worker_that_shuts_down_has_what_it_received_and_did_not_start_woken(
    supervised: Supervised,
) -> None:
    status, noted, _ = supervised("""
def work(reporter):
    reporter.ready()
    reporter.take("taken.1")
    reporter.take("begun")
    reporter.claim("begun", "claim-1")
    reporter.release("begun", "claim-1")
    stop()
""")

    [(_, held, taken)] = [entry[1:] for entry in noted if entry[0] == "release"]
    assert (status, held, taken) == (0, [], ["taken.1"])


@pytest.mark.parametrize(
    ("reports", "blamed"),
    [
        ("", []),
        ('reporter.release("b", "claim-b")', ["claim-a"]),
        ("b.__enter__()", ["claim-b"]),
        ("a.__enter__(), b.__enter__()", []),
        ("with a: pass", []),
    ],
    ids=["none ran code", "one was alone", "one ran code", "both ran code", "one had run code"],
)
def test_a_death_counts_against_a_process_that_was_alone_or_ran_the_only_function(
    supervised: Supervised, reports: str, blamed: list[str]
) -> None:
    _, noted, _ = supervised(f"""
def work(reporter):
    note("work")
    reporter.ready()
    if noted("work") == 1:
        reporter.claim("a", "claim-a")
        reporter.claim("b", "claim-b")
        a, b = (reporter.user_code(each, f"claim-{{each}}") for each in "ab")
        {reports}
        os.kill(os.getpid(), signal.SIGKILL)
    wait(lambda: noted("blamed"))
    stop()
""")

    assert next(entry[1:] for entry in noted if entry[0] == "blamed") == [blamed]


def test_a_worker_that_exits_with_status_0_is_restarted(supervised: Supervised) -> None:
    status, noted, log = supervised("""
def work(reporter):
    note("work")
    reporter.ready()
    if noted("work") < 4:
        os._exit(0)
    stop()
""")

    assert (status, len(noted)) == (0, 4)
    assert log.count("ended with status 0: it held no process") == 3


def test_a_worker_that_exits_before_it_was_ever_ready_ends_the_supervisor(supervised: Supervised) -> None:
    status, noted, log = supervised("""
from fdstore.errors import StoreUnavailable

def work(reporter):
    note("work")
    raise StoreUnavailable("redis://nowhere", "refused")
""")

    assert (status, len(noted)) == (1, 1)
    assert log.startswith("fdstore: store_unavailable: ")


def test_a_worker_that_was_ready_once_is_restarted_even_if_it_cannot_start(supervised: Supervised) -> None:
    status, noted, _ = supervised("""
def work(reporter):
    note("work")
    if noted("work") == 1:
        reporter.ready()
    if noted("work") < 4:
        os._exit(1)
    stop()
""")

    assert (status, len(noted)) == (0, 4)


def test_pauses_double_for_workers_that_are_never_ready_and_only_for_those() -> None:
    assert [pause_before_next(deaths, 0.1) for deaths in range(1, 10)] == [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert [pause_before_next(0, lived_s) for lived_s in (0.0, 2.9, 3.1)] == [0.25, 0.25, 0]


def test_the_number_of_processes_run_alone_is_limited_and_none_runs_twice(supervised: Supervised) -> None:
    _, noted, _ = supervised("""
def work(reporter):
    for process in ("one", "two", "one", "three", "two"):
        reporter.alone(process)
    # "one" and "two" may begin a second time, as their first run may have ended by then
    wait(lambda: '"three"' in book.read_text() and noted("done") == noted("alone"))
    stop()
""")

    running: list[str] = []
    for event, process in noted:
        if event == "done":
            running.remove(process)
        else:
            assert process not in running
            running.append(process)
        assert len(running) <= 2
    assert {process for _, process in noted} == {"one", "two", "three"}


def test_the_death_of_a_descendant_of_the_worker_is_noticed(supervised: Supervised) -> None:
    _, noted, _ = supervised("""
def work(reporter):
    reporter.ready()
    if os.fork() == 0:
        reporter.claim("of.the.pool", "claim-1")
        time.sleep(0.2)
        os._exit(1)
    reporter.claim("of.the.worker", "claim-2")
    os.wait()
    wait(lambda: noted("release"))
    reporter.release("of.the.worker", "claim-2")
    stop()
""")

    assert [entry[2:] for entry in noted if entry[0] == "release"] == [[[["of.the.pool", "claim-1"]], []]]


def test_garbage_in_the_report_pipe_is_ignored(supervised: Supervised) -> None:
    status, noted, log = supervised("""
def work(reporter):
    reporter.ready()
    for garbage in (b"\\xff", b"", b"x" * 100_000, b"1 claim", b"1 claim  ", b"-1 take x", b"9 ready 1 2"):
        os.write(reporter._fd, garbage + b"\\n")
    reporter.alone("good")
    wait(lambda: noted("done"))
    stop()
""")

    assert (status, noted) == (0, [["alone", "good"], ["done", "good"]]), log


def test_a_second_signal_is_forwarded_too(supervised: Supervised) -> None:
    status, noted, _ = supervised("""
def work(reporter):
    reporter.ready()
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    for expected in (1, 2):
        os.kill(os.getppid(), signal.SIGINT)
        wait(lambda: len(heard) == expected)
    note("heard", len(heard))
    os._exit(7)
""")

    assert (status, noted) == (7, [["heard", 2]])


def test_a_report_line_fits_into_one_atomic_pipe_write(tmp_path: Path) -> None:
    with (tmp_path / "pipe").open("w+b") as pipe:
        reporter = Reporter(pipe.fileno())
        reporter.claim("p" * 200, "c" * 32)
        reporter.claim("p" * MAX_LINE_BYTES, "c")
        reporter.claim("a b", "c")
        pipe.seek(0)
        lines = pipe.read().splitlines()

    assert [len(line) <= MAX_LINE_BYTES for line in lines] == [True, True]
    assert parse(lines[0]) is not None
    assert parse(lines[1]) is None


@pytest.mark.parametrize("line", [b"", b" ", b"1", b"x ready", b"1 a b c d", b"99999999999 ready", b"\xff 1"])
def test_a_malformed_line_is_not_a_report(line: bytes) -> None:
    assert parse(line) is None


def test_a_report_survives_a_round_trip() -> None:
    assert parse(b"12 claim triage.1 abc") == Report(12, "claim", "triage.1", "abc")


def test_the_load_says_which_slots_are_busy_and_which_calls_were_lost(supervised: Supervised) -> None:
    status, noted, _ = supervised("""
from fdstore_workers.load_board import LoadBoard

board = LoadBoard()
make = supervisor.Supervisor
supervisor.Supervisor = lambda roles, slots: make(roles, slots, board)

def shown():
    load = board.read()
    return load and [load.slots, load.busy, load.lost, list(load.runs)]

def expect(*load):
    wait(lambda: shown() == list(load))
    note("load", *shown())

def work(reporter):
    reporter.ready()
    expect(2, 0, 0, [])
    reporter.claim("one", "claim-1")
    reporter.claim("two", "claim-2")
    reporter.claim("pipe", "claim-3", in_slot=False)
    expect(2, 2, 0, ["one", "pipe", "two"])
    reporter.lost("one", "claim-1")
    reporter.lost("two", "claim-of-another")
    expect(2, 2, 1, ["pipe", "two"])
    for process, claim in (("one", "claim-1"), ("two", "claim-2"), ("pipe", "claim-3")):
        reporter.release(process, claim)
    expect(2, 0, 0, [])
    stop()
""")

    assert status == 0
    assert [load for _, *load in noted] == [
        [2, 0, 0, []],
        [2, 2, 0, ["one", "pipe", "two"]],
        [2, 2, 1, ["pipe", "two"]],
        [2, 0, 0, []],
    ]


STUCK = """
from fdstore_workers.load_board import LoadBoard

supervisor.LOST_CALL_S = 0.05
supervisor.REPLACED_WITHIN_S = {patience_s}
board = LoadBoard()
make = supervisor.Supervisor
supervisor.Supervisor = lambda roles, slots: make(roles, slots, board)

def shut_down(*_):
    note("told")
    os._exit(0)

def work(reporter):
    note("work")
    reporter.ready()
    if noted("work") == 1:
        signal.signal(signal.SIGTERM, {on_term})
        reporter.claim("stuck", "claim-1")
        reporter.lost("stuck", "claim-1")
        wait(lambda: False)
    wait(lambda: noted("release"))
    note("lost calls", board.read().lost_calls)
    stop()
"""


def test_a_worker_with_a_call_that_is_lost_for_long_is_told_to_shut_down_and_replaced(
    supervised: Supervised,
) -> None:
    status, noted, log = supervised(STUCK.replace("{patience_s}", "100").replace("{on_term}", "shut_down"))

    assert (status, sum(each == ["work"] for each in noted)) == (0, 2)
    assert ["told"] in noted
    assert ["lost calls", 1] in noted
    assert "a call of stuck has not ended 0.05 s after it was lost" in log


def test_a_worker_that_does_not_shut_down_when_it_is_replaced_is_killed(supervised: Supervised) -> None:
    status, noted, _ = supervised(
        STUCK.replace("{patience_s}", "0.05").replace("{on_term}", "signal.SIG_IGN")
    )

    [what] = [entry[1] for entry in noted if entry[0] == "release"]
    assert what.endswith("was ended by SIGKILL")
    assert (status, sum(each == ["work"] for each in noted)) == (0, 2)
    assert ["lost calls", 1] in noted


def test_a_lost_call_that_ends_in_time_replaces_nothing(supervised: Supervised) -> None:
    status, noted, log = supervised("""
def work(reporter):
    note("work")
    reporter.ready()
    reporter.claim("slow", "claim-1")
    reporter.lost("slow", "claim-1")
    reporter.release("slow", "claim-1")
    reporter.alone("next")
    wait(lambda: noted("done"))
    stop()
""")

    assert (status, sum(each == ["work"] for each in noted)) == (0, 1)
    assert "is replaced" not in log


FREEZES = {
    "a library that sleeps": "ctypes.PyDLL(None).usleep(200_000_000)",
    "a regular expression": "re.match('(a+)+$', 'a' * 60 + 'b')",
}


@pytest.mark.parametrize("how", sample(FREEZES, 1, "another way"))
def test_a_worker_that_is_frozen_by_what_it_runs_is_killed_and_this_is_blamed(
    supervised: Supervised, how: str
) -> None:
    status, noted, told = supervised(f"""
import ctypes, re
supervisor.FROZEN_AFTER_S = 1.5
supervisor.BUSY_S = 0.2

def work(reporter):
    note("work")
    reporter.beat()
    reporter.ready()
    if noted("work") == 1:
        reporter.claim("innocent", "claim-1")
        reporter.claim("freezes", "claim-2")
        with reporter.user_code("freezes", "claim-2"):
            {FREEZES[how]}
    wait(lambda: noted("blamed"))
    stop()
""")

    assert (status, told.count("is frozen by what it runs, and is killed")) == (0, 1)
    assert ["blamed", ["claim-2"]] in noted
    assert next(held for kind, *rest in noted if kind == "release" for held in rest[1:2]) == [
        ["innocent", "claim-1"],
        ["freezes", "claim-2"],
    ]


def test_of_a_pool_only_the_process_that_its_work_has_frozen_is_killed(supervised: Supervised) -> None:
    status, noted, told = supervised(f"""
import ctypes
supervisor.FROZEN_AFTER_S = 1.5

def work(reporter):
    note("work")
    reporter.beat()
    reporter.ready()
    if os.fork() == 0:
        reporter.beat()
        reporter.claim("freezes", "claim-1")
        {FREEZES["a library that sleeps"]}
    if os.fork() == 0:
        reporter.beat()
        reporter.claim("sibling", "claim-2")
        wait(lambda: noted("blamed"))
        reporter.release("sibling", "claim-2")
        os._exit(0)
    os.wait()
    os.wait()
    stop()
""")

    assert (status, told.count("is frozen by what it runs, and is killed")) == (0, 1)
    assert [each[1:] for each in noted if each[0] in ("work", "blamed")] == [[], [["claim-1"]]]


@pytest.mark.thorough("seconds of waiting")
def test_a_worker_that_is_stopped_from_outside_is_not_killed(supervised: Supervised) -> None:
    status, noted, told = supervised("""
supervisor.FROZEN_AFTER_S = 1.5
supervisor.LOOK_AGAIN_S = 0.01

def work(reporter):
    note("work")
    reporter.beat()
    reporter.ready()
    reporter.claim("stopped", "claim-1")
    pid = os.getpid()
    if os.fork() == 0:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(4)  # longer than after which it would be frozen
        os.kill(pid, signal.SIGCONT)
        os._exit(0)
    wait(lambda: os.waitpid(-1, os.WNOHANG)[0])
    stop()
""")

    assert (status, sum(entry == ["work"] for entry in noted)) == (0, 1)
    assert "is frozen" not in told
