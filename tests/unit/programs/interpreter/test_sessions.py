"""A session is fed with code, answered, dumped and loaded."""

from __future__ import annotations

import datetime
import multiprocessing
import subprocess
import sys
import threading

import pytest

from fdstore.model.call_limits import CallLimits
from fdstore.programs.interpreter import prelude
from fdstore.programs.interpreter.events import LATER, Failed, Finished, HostCall, Raise, Waiting
from fdstore.programs.interpreter.session import Session
from tests.unit.programs.interpreter.host import EPOCH_S, Host, failing, failure, value
from tests.waiting import PATIENCE_S

ASK_THREE = """
import asyncio
async def one(n):
    answer = await ask("q", str(n))
    create(answer)
    return answer
await asyncio.gather(*[one(n) for n in range(3)])
"""


# Events


def test_the_value_is_the_repr_of_the_last_expression(shared: Session):
    assert shared.feed("x = 'a\\n'\nx * 2") == Finished(repr("a\na\n"))
    assert shared.feed("x = 2") == Finished(None)
    assert shared.feed("None") == Finished(None)
    assert shared.feed("") == Finished(None)
    assert shared.feed("# nothing") == Finished(None)


def test_variables_functions_and_imports_stay_in_the_session(shared: Session):
    shared.feed("import json\ndef double(n): return 2 * n\nkept = [1]")

    assert shared.feed("json.dumps([double(kept[0])])") == Finished("'[2]'")


def test_what_was_assigned_before_an_exception_stays(shared: Session):
    failed = failing(shared, "before = 5\n1 / 0")

    assert failed.keeps_session
    assert shared.feed("before") == Finished("5")


def test_output_is_of_the_current_call(shared: Session):
    shared.feed("print('first')")
    shared.feed("print('a', 'b', sep='-')\nimport sys\nprint('c', file=sys.stderr)")

    assert shared.printed == "a-b\nc\n"


def test_a_host_call_is_an_event_with_a_number(shared: Session):
    first = shared.feed("[fds(), fds()]")
    second = shared.resume([])
    ended = shared.resume([])

    assert [first, second] == [HostCall(0, "_fds", ()), HostCall(1, "_fds", ())]
    assert ended == Finished("[[], []]")
    assert shared.feed("fds()") == HostCall(0, "_fds", ())
    shared.resume([])


def test_an_answer_can_be_an_exception_that_code_catches(shared: Session):
    shared.feed("try:\n    fd(7)\nexcept PermissionError as error:\n    print(repr(error))")
    shared.resume(Raise("PermissionError", "permission_error: no"))

    assert shared.printed == "PermissionError('permission_error: no')\n"


def test_awaited_calls_may_be_answered_at_once(shared: Session):
    host = Host()

    ended = host.run(shared, ASK_THREE)

    assert ended == Finished("['q: 0', 'q: 1', 'q: 2']")
    assert [call.name for call in host.calls] == ["_ask"] * 3 + ["_create"] * 3


def test_all_tasks_call_before_the_program_waits():
    with Session() as session:
        event = session.feed(ASK_THREE)
        for number in range(3):
            assert event == HostCall(number, "_ask", ("q", [str(number)]))
            event = session.resume(LATER)

        assert event == Waiting((0, 1, 2))
        event = session.settle({2: "c", 1: "b", 77: "of no call"})
        assert event == HostCall(3, "_create", ("b", None))


def test_some_tasks_go_on_while_others_wait(shared: Session):
    host = Host(later={"_ask"})

    ended = host.run(shared, ASK_THREE)

    assert ended == Finished("['q: 0', 'q: 1', 'q: 2']")
    waits = [event.numbers for event in host.events if isinstance(event, Waiting)]
    assert waits == [(0, 1, 2), (0, 1), (0,)]


def test_settling_nothing_that_is_awaited_changes_nothing(shared: Session):
    shared.feed("await ask('q')")
    waiting = shared.resume(LATER)

    assert shared.settle({}) == shared.settle({5: "x"}) == waiting
    assert shared.settle({0: "x"}) == Finished("'x'")


def test_tasks_left_behind_by_a_failed_gather_stay_pending(shared: Session):
    code = (
        "import asyncio\ntry:\n    await asyncio.gather(ask('a'), ask('b'))\n"
        "except ValueError as error:\n    print(error)\nawait ask('c')"
    )
    shared.feed(code)
    shared.resume(LATER)
    assert shared.resume(LATER) == Waiting((0, 1))

    assert shared.settle({0: Raise("ValueError", "refused: no")}) == HostCall(2, "_ask", ("c", []))
    assert shared.resume(LATER) == Waiting((1, 2))
    assert shared.settle({2: "C"}) == Finished("'C'")
    assert shared.printed == "refused: no\n"


def test_a_call_that_is_not_awaited_may_be_answered_later_too():
    with Session() as session:
        assert session.feed("[fds(), fds()]") == HostCall(0, "_fds", ())
        assert session.resume(LATER) == Waiting((0,))
        snapshot = session.dump()
    with Session(snapshot=snapshot) as loaded:
        assert loaded.restored() == Waiting((0,))
        assert loaded.settle({0: [], 1: "of no call"}) == HostCall(1, "_fds", ())
        assert loaded.resume([]) == Finished("[[], []]")


def test_a_call_of_an_earlier_feed_that_is_awaited_late_fails_and_does_not_hang(shared: Session):
    shared.feed("future = _fdstore_ask('q', [])")
    shared.resume(LATER)

    failed = failing(shared, "await future")

    assert "never comes" in failed.text
    assert shared.feed("1 + 1") == Finished("2")


# Clock, sleep, random numbers


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("time.time()", repr(EPOCH_S)),
        ("time.time_ns()", str(int(EPOCH_S) * 10**9)),
        ("time.monotonic()", repr(EPOCH_S)),
        ("datetime.datetime.now().isoformat()", repr("2023-11-14T22:13:20")),
        ("datetime.datetime.utcnow().isoformat()", repr("2023-11-14T22:13:20")),
        ("datetime.datetime.now(datetime.timezone.utc).isoformat()", repr("2023-11-14T22:13:20+00:00")),
        (
            "datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=2))).isoformat()",
            repr("2023-11-15T00:13:20+02:00"),
        ),
        ("datetime.date.today().isoformat()", repr("2023-11-14")),
        ("time.strftime('%Y')", repr("2023")),
    ],
)
def test_the_clock_is_a_call(shared: Session, code: str, expected: str):
    assert datetime.datetime.fromtimestamp(EPOCH_S, datetime.UTC).hour == 22

    event = shared.feed(f"import time, datetime\n{code}")

    assert event == HostCall(0, "clock", ())
    assert shared.resume(EPOCH_S) == Finished(expected)


def test_sleeping_is_a_call(shared: Session):
    assert shared.feed("import time\ntime.sleep(2)") == HostCall(0, "sleep", (2.0,))
    assert shared.resume(None) == Finished(None)


def test_tasks_sleep_at_the_same_time(shared: Session):
    assert shared.feed(
        "import asyncio\nawait asyncio.gather(asyncio.sleep(1), asyncio.sleep(2, 'x'))"
    ) == HostCall(0, "sleep", (1.0,))
    assert shared.resume(LATER) == HostCall(1, "sleep", (2.0,))
    assert shared.resume(LATER) == Waiting((0, 1))
    assert shared.settle({0: None, 1: None}) == Finished("[None, 'x']")


def test_random_numbers_follow_the_seed_and_go_on_after_a_load():
    code = "import random, os\n[random.random(), random.sample(range(99), 3), os.urandom(4)]"
    with Session(seed=3) as session:
        first, second = session.feed(code), session.feed(code)
    with Session(seed=3) as session:
        assert session.feed(code) == first
        state = session.dump()
    with Session(seed=3, state=state) as loaded:
        assert loaded.feed(code) == second
    with Session(seed=4) as other:
        assert other.feed(code) != first


# Use


@pytest.mark.parametrize("name", ["ask", "Text", "not a name", "a.b.c", "class", "_fdstore_read", "fd.x", ""])
def test_names_that_functions_cannot_have_are_refused(name: str):
    with pytest.raises(ValueError, match="cannot be the name"):
        Session(functions=[name])


def test_methods_in_the_wrong_order_are_refused(shared: Session):
    with pytest.raises(RuntimeError, match="no call is suspended"):
        shared.resume(None)
    shared.feed("await ask('q')")
    with pytest.raises(RuntimeError, match="is suspended"):
        shared.feed("1")
    with pytest.raises(RuntimeError, match="resume"):
        shared.settle({0: "x"})
    with pytest.raises(RuntimeError, match="between calls"):
        shared.dump()
    shared.resume(LATER)
    with pytest.raises(RuntimeError, match="settle"):
        shared.resume("x")
    shared.settle({0: "x"})


def test_a_closed_session_is_over():
    session = Session()
    session.close()
    session.close()
    session.kill()

    with pytest.raises(RuntimeError, match="over"):
        session.feed("1")
    with pytest.raises(RuntimeError, match="over"):
        session.dump()


def test_an_answer_that_code_cannot_have_is_refused_and_the_call_goes_on(shared: Session):
    shared.feed("fds()")

    for answer in (object(), {1, 2}, [b"bytes"], {"a": lambda: 1}):
        with pytest.raises(TypeError, match="code cannot have"):
            shared.resume(answer)
    assert shared.resume([]) == Finished("[]")


def test_answers_of_any_json_arrive_whole(shared: Session):
    answer = {"a": [None, True, -1, 2**70, 1.5, "é\ud800", (1, 2)], "b": {"": {}}}
    shared.feed("_fdstore_any()")

    ended = shared.resume(answer)

    assert ended == Finished(repr({"a": [None, True, -1, 2**70, 1.5, "é\ufffd", [1, 2]], "b": {"": {}}}))


@pytest.mark.parametrize(
    ("argument", "refused"),
    [
        ("lambda: 1", None),
        ("{1, 2}", "can be passed"),
        ("b'x'", "can be passed"),
        ("float('nan')", "nan cannot be passed"),
        ("float('inf')", "inf cannot be passed"),
        ("2 ** 64", "64 bits"),
        ("10 ** 9999", "64 bits"),
        ("{1: 2}", "keys other than str"),
        ("[[[1j]]]", "can be passed"),
        ("int", "can be passed"),
        ("nested", "nested more than"),
        ("cycle", ""),
        ("Text", None),
        ("open", "can be passed"),
        ("...", "can be passed"),
        ("'\\ud800'", None),
    ],
)
def test_odd_arguments_of_host_calls_never_harm_the_host(shared: Session, argument: str, refused: str | None):
    shared.feed("nested = []\nfor _ in range(5000): nested = [nested]\ncycle = []\ncycle.append(cycle)")

    event = shared.feed(f"_fdstore_any({argument})")

    if refused:
        assert isinstance(event, Failed)
        assert refused in event.text
    elif isinstance(event, HostCall):
        assert all(isinstance(item, str | list) for item in event.args)
        shared.resume(None)
    assert shared.feed("1") == Finished("1")


def test_importing_the_package_does_not_import_the_interpreter():
    code = "import fdstore.programs.interpreter.session, sys; print('pydantic_monty' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_the_prelude_has_exactly_its_names(shared: Session):
    ended = shared.feed("sorted(name for name in locals() if not name.startswith('_'))")

    assert isinstance(ended, Finished)
    assert set(prelude.NAMES) <= set(eval(str(ended.value)))


# Processes


def test_forks_have_sessions_of_their_own():
    with Session() as session:
        session.feed("x = 5")

        child = multiprocessing.get_context("fork").Process(target=_use_sessions, args=(session,))
        child.start()
        child.join(PATIENCE_S)

        assert child.exitcode == 0
        assert session.feed("x") == Finished("5")


def _use_sessions(inherited: Session) -> None:
    with pytest.raises(RuntimeError, match="of which this is a fork"):
        inherited.feed("x")
    inherited.kill()
    inherited.close()
    with Session() as own:
        assert own.feed("1 + 1") == Finished("2")
        failed = own.feed("1 / 0")
        assert isinstance(failed, Failed)


def test_a_fork_that_ends_like_a_program_leaves_the_sessions_of_its_parent_alone():
    code = """
import os, sys
from fdstore.programs.interpreter.session import Session
session = Session()
session.feed("x = 5")
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print(session.feed("x").value)
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]  # of a fork beside threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)

    assert (done.stdout, done.stderr) == ("5\n", "")


def test_a_session_outlives_the_thread_that_began_it():
    begun: list[Session] = []
    thread = threading.Thread(target=lambda: begun.append(Session()))
    thread.start()
    thread.join()

    with begun[0] as session:
        assert session.feed("1 + 1") == Finished("2")


def test_sessions_run_beside_one_another():
    ended: list[object] = []

    def run(number: int) -> None:
        with Session() as session:
            ended.append(session.feed(f"{number} * 2"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, ended)) == sorted(str(Finished(str(2 * number))) for number in range(6))


def test_limits_of_memory_may_be_large():
    with Session(CallLimits(memory_bytes=3 << 30)) as session:
        assert session.feed("len('x' * 400_000_000)") == Finished("400000000")


def test_code_may_have_lone_surrogates():
    assert value("x = '\ud800'\nlen(x)") == "1"


MANY_DIGITS = "10**5000"

VALUES = [
    MANY_DIGITS,
    f"[{MANY_DIGITS}]",
    f"{{'a': {MANY_DIGITS}}}",
    "P(10**5000)",
    "deep",
    "cyclic",
    "float('nan')",
    "1e400",
    "{(1, 2): 3}",
    "print",
    "b'x'",
    "fd(1)",
    "None",
    "'\\0'",
]


@pytest.mark.parametrize(
    "code",
    [
        "VALUE",
        "exit(VALUE)",
        "sys.exit(VALUE)",
        "unknown(VALUE)",
        "_fdstore_fd(VALUE)",
        "fd(VALUE)",
        "fd(1).page(VALUE)",
        "fd(1).lines(-1, VALUE)",
        "fd(1).search('a', max_matches=VALUE)",
        "await ask('a', VALUE)",
        "await read_log(a=VALUE)",
        "await asyncio.gather(1, VALUE)",
        "import time\ntime.sleep(VALUE)",
        "await asyncio.sleep(VALUE)",
        "import os\nos.urandom(VALUE)",
        "datetime.datetime.now(VALUE)",
        "raise VALUE",
        "raise ValueError(VALUE)",
        "print(1, sep=VALUE)",
        "assert 0, VALUE",
        "return VALUE",
        "_fdstore_shown = lambda *a: VALUE\n1",
        "_fdstore_largest = lambda *a: VALUE",
        "_fdstore_restore = lambda *a: VALUE",
    ],
)
def test_no_value_of_a_program_makes_the_host_fail(code: str) -> None:
    with Session(functions=["read_log"]) as session:
        begin = (
            "import datetime, dataclasses\nkept = 5\ncyclic = []\ncyclic.append(cyclic)\ndeep = 1\n"
            "for _ in range(3000):\n    deep = [deep]\n"
            "@dataclasses.dataclass\nclass P:\n    x: int"
        )
        assert isinstance(Host("abc").run(session, begin), Finished)

        for value in VALUES:
            ended = Host("abc").run(session, code.replace("VALUE", f"({value})"))
            assert isinstance(ended, Finished) or ended.keeps_session
            session.largest_variables()

        assert Host("abc").run(session, "kept") == Finished("5")


def test_a_program_that_exits_with_a_value_that_cannot_be_shown_is_told_its_line() -> None:
    assert failure("x = 1\nexit(10**5000)").text.startswith(
        "Traceback (most recent call last):\n  line 2, in <module>\n    exit(10**5000)\nValueError: "
    )


@pytest.mark.parametrize(
    "code",
    [
        "fd = fd('fd:1')",
        "for fd in fds(): pass",
        "try:\n    1 / 0\nexcept ZeroDivisionError as fd:\n    pass",
        "class fd: pass",
        "def fd(): pass",
        "import re as fd",
        "def f():\n    global fd\n    fd = 5\nf()",
        "[fd := 5]",
        "print = create = read_log = github = asyncio = 5",
        "github.issues = 5",
        "exec('fd = 5')",
        "_fdstore_read = _fdstore_shown = _fdstore_settled = _fdstore_fd = 5",
        "_fdstore_restore = 5\nfd = 5",
        "_fdstore_restore = lambda *a: print('mine')",
        "fd = fds = create = ask = spawn = pipe = Text = Hit = None",
    ],
)
def test_the_names_of_fdstore_are_there_again_in_each_call(code: str) -> None:
    with Session(functions=["read_log", "github.issues"]) as session:
        host = Host("abc")
        assert isinstance(host.run(session, f"mine = 7\n{code}"), Finished)
        state = session.dump()

        use = (
            "print(fd(1).text(), fds()[0].ref, create('x').ref, await ask('q'), mine)\n"
            "await asyncio.gather(read_log(a=1), github.issues(), return_exceptions=True)"
        )
        again = host.run(session, use)
        assert again == Finished("[['read_log', [], {'a': 1}], ['github.issues', [], {}]]")
        assert session.printed == "abc fd:1 fd:2 q:  7\n"

    with Session(functions=["read_log", "github.issues"], state=state) as session:
        assert Host("abc").run(session, use) == again


def test_the_state_does_not_grow_with_the_calls() -> None:
    with Session(functions=["read_log"]) as session:
        Host().run(session, "x = 1")
        before = len(session.dump())

        for _ in range(50):
            Host().run(session, "x = 1")

        assert len(session.dump()) < before + 50 * 40


def test_code_of_a_program_in_the_place_of_ours_prints_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    with Session() as session:
        Host().run(session, "_fdstore_largest = _fdstore_restore = lambda *a: print('mine')")
        session.dump()
        Host().run(session, "1")

    assert capfd.readouterr().out == ""
