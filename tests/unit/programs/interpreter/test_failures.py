"""A failure shows the program's own lines and says what to do."""

from __future__ import annotations

import threading

import pytest

from fdstore.programs.interpreter.events import Failed, Finished
from fdstore.programs.interpreter.session import Session
from tests.unit.programs.interpreter.host import Host, failing, failure


def test_a_traceback_has_the_lines_of_the_program_alone(shared: Session):
    code = "import asyncio\n\ndef count(log):\n    return [*log]\n\ndef main():\n    count(fd(1))\n\nmain()"

    failed = Host("text").run(shared, code)

    assert failed == Failed(
        "Traceback (most recent call last):\n"
        "  line 9, in <module>\n"
        "    main()\n"
        "  line 7, in main\n"
        "    count(fd(1))\n"
        "  line 4, in count\n"
        "    return [*log]\n"
        "TypeError: a Text is iterated by `for line in text` alone; text.splitlines() is a list\n"
        "A Text is not a str: text() of it is one.",
        keeps_session=True,
    )


def test_lines_of_the_prelude_are_left_out(shared: Session):
    failed = failing(shared, "log = fd(1)\nlog.page('1')", "text")

    assert failed.text.splitlines()[1:-1] == ["  line 2, in <module>", "    log.page('1')"]


def test_a_line_is_shown_as_it_was_written(shared: Session):
    failed = failing(shared, "x = 1\nimport asyncio\nawait asyncio.gather(1 / 0, return_exceptions=True)")

    assert "    await asyncio.gather(1 / 0, return_exceptions=True)\n" in failed.text
    assert "_fdstore" not in failed.text


def test_functions_of_earlier_calls_are_named(shared: Session):
    shared.feed("def divide(n):\n    return n / 0")

    failed = failing(shared, "divide(1)")

    assert "  line 1, in <module>\n    divide(1)\n  line 2 of an earlier call, in divide\n" in failed.text


def test_an_empty_program_leaves_the_tracebacks_of_later_ones_whole():
    with Session() as session:
        assert session.feed("") == Finished(None)
        here = failing(session, "def g(x):\n    return 1/x\n\ng(0)")
        state = session.dump()
    with Session(state=state) as loaded:
        there = failing(loaded, "1\ng(0)")

    assert here.text.startswith(
        "Traceback (most recent call last):\n  line 4, in <module>\n    g(0)\n  line 2, in g"
    )
    assert "  line 2, in <module>\n    g(0)\n  line 2 of an earlier call, in g\n" in there.text


def test_long_tracebacks_and_messages_are_cut(shared: Session):
    deep = failing(shared, "def down(n): return down(n + 1)\ndown(0)")
    long = failing(shared, "raise ValueError('a' * 1_000_000 + 'end')")

    assert deep.text.endswith("RecursionError: maximum recursion depth exceeded")
    assert len(deep.text) < 2000
    assert len(long.text) < 5000
    assert long.text.endswith("aend")


def test_an_exception_of_the_host_is_the_codes_own(shared: Session):
    failed = failing(shared, "fd(7)")

    assert failed.text.splitlines()[-1] == "ValueError: not_found: fd:7 does not exist"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def f():\n    yield 1", ["line 2", "yield", "nothing was run", "list and return it"]),
        ("x = (yield)", ["list and return it"]),
        ("d = {'a': 1}\nmax(d, key=d.get)", ["not passed on: write lambda x: value.get(x)."]),
        ("map('a'.join, [])", ["write lambda x: value.join(x)."]),
        ("x = 1\ndel x", ["line 2", "'del' statement", "d.pop(key)"]),
        ("class A(dict): pass", ["inheritance", "without bases"]),
        ("class MyError(Exception): pass", ["raise ValueError"]),
        ("class A:\n    @property\n    def x(self): return 1", ["ordinary method"]),
        ("class A:\n    @staticmethod\n    def x(): return 1", ["ordinary method"]),
        ("async def f():\n    async with lock: pass", ["how many run together is bounded"]),
        ("async def f():\n    async for x in y: pass", ["await asyncio.gather"]),
        ("try: pass\nexcept* ValueError: pass", ["return_exceptions=True"]),
        ("from typing import *", ["one by one"]),
        ("type X = int", ["X = int"]),
        ("x = = 1", ["line 1", "SyntaxError: Expected an expression"]),
        ("print 'x'", ["SyntaxError"]),
        ("import asyncio\nasyncio.create_task(ask('q'))", ["asyncio.gather(*coroutines)"]),
        ("import asyncio\nasyncio.as_completed([])", ["in order"]),
        ("import asyncio\nasyncio.TaskGroup()", ["asyncio.gather"]),
        ("import asyncio\nasyncio.Semaphore(9)", ["Leave it out"]),
        ("import asyncio\nasyncio.wait_for(ask('q'), 3)", ["return_exceptions=True"]),
        ("import asyncio\nasyncio.get_event_loop()", ["asyncio.run(main())"]),
        ("import asyncio\nasyncio.gather(**{'return_exceptions': True})", ["try and except"]),
        ("import numpy", ["No module named 'numpy'", "itertools, json, math"]),
        ("import statistics", ["sum(x) / len(x)"]),
        ("from concurrent.futures import ThreadPoolExecutor", ["asyncio.gather"]),
        ("from collections import OrderedDict", ["cannot import name 'OrderedDict'"]),
        ("import fdstore", ["are there without an import"]),
        ("import string", ["Write the characters out"]),
        ("open('/etc/passwd')", ["PermissionError", "fd('fd:1') is a text"]),
        ("import os\nos.listdir('.')", ["PermissionError", "no files"]),
        ("import os\nos.environ['HOME']", ["no environment"]),
        ("import os\nos.system('ls')", ["no files"]),
        ("read_fd('fd:1')", ["name 'read_fd' is not defined", "lines(1, 100)"]),
        ("list_fds()", ["Use fds()"]),
        ("creat('x')", ["Similar names: create"]),
        ("resluts = 1\nresults", ["Similar names: resluts"]),
        ("zzz", ["There are: ", "read_log", "github"]),
        ("callable(3)", ["TypeError"]),
        ("super().x", ["no bases"]),
        ("input()", ["without a user"]),
        ("globals()", ["locals()"]),
        ("fd(1).strip()", ["use text().strip(...)"]),
        ("fd(1).total", ["total_chars"]),
        ("await fd(1).text()", ["Only ask, spawn, pipe"]),
        ("fd(1) + 'x'", ["text() of it"]),
        ("'\\n'.join([fd(1)])", ["text() of it"]),
        ("import json\njson.dumps({'a': fd(1)})", ["text() of it is one, and ref names it"]),
        ("ask('q').upper()", ["await before the call"]),
        ("ask('q') + 'x'", ["await before the call"]),
        ("raise ValueError(3)", ["an exception takes one str here (see line 1)", "f'{x}'"]),
        ("import re\nre.sub('a', lambda m: 'b', 'a')", ["re.finditer"]),
        ("import re\nre.match(r'(a|a)*\\1$', 'a' * 40 + 'b')", ["without references back"]),
        ("eval('(' * 9999)", ["SyntaxError"]),
        ("assert 1 == 2, 'no'", ["AssertionError: no"]),
        ("raise KeyError", ["KeyError"]),
        ("raise KeyboardInterrupt", ["KeyboardInterrupt"]),
        ("exec('def f():\\n  1 / 0\\nf()')", ["of an eval or exec", "ZeroDivisionError"]),
    ],
)
def test_a_failure_says_what_to_do(shared: Session, code: str, says: list[str]):
    failed = failing(shared, code, "text")

    assert failed.keeps_session
    assert failed.limit == ""
    for words in says:
        assert words in failed.text
    assert "monty" not in failed.text.lower()
    assert shared.feed("1 + 1") == Finished("2")


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("quit", "name 'quit' is not defined\nWrite exit(), which ends the program."),
        ("exit", "name 'exit' is not defined\nWrite exit(), which ends the program."),
        ("if 0: totals = 1\nif 0: total = 1\ntotal", "is not defined\nSimilar names: totals."),
        ("await read_log(x={1, 2})", "list, dict and Text, not set"),
        ("await ask('q', 3)", "a text is a Text or a str, not int"),
        ("await spawn('p', 'q', 3)", "takes a Text or a reference like 'fd:1', not int"),
        ("Text(3)", "create(text) makes one"),
        ("create(fd(1))", "the text is a str, not Text; pass its text(), or the Text where texts are taken"),
        ("fd(1).split(3)", "lines= or pages=, the size of a part"),
        ("'' + fd(1)", '(not "Text") to str\nA Text is not a str: text() of it is one.'),
        ("int(fd(1))", "not 'Text'\nA Text is not a str: text() of it is one."),
        ("ord(fd(1))", "Text found\nA Text is not a str: text() of it is one."),
        ("import math\nmath.sqrt(fd(1))", "not Text\nA Text is not a str: text() of it is one."),
        ("fd(1).line(0)", "ValueError: line(number): the number is from 1 on, not 0"),
        ("fd(1).page(-1)", "ValueError: page(number): the number is from 1 on, not -1"),
        ("fd(1).lines(0, 3)", "ValueError: lines(first, last): first is from 1 on, not 0"),
        ("fd(1).chars(1, -3)", "ValueError: chars(first, last): last is from 1 on, not -3"),
        ("fd(1).split(chars=-5)", "ValueError: split(chars=): the size is from 1 on, not -5"),
    ],
)
def test_what_a_failure_says_is_so(shared: Session, code: str, end: str):
    assert failing(shared, code, "text").text.endswith(end)


@pytest.mark.parametrize(
    "code", ["exit()", "exit(0)", "import sys\nsys.exit()", "raise SystemExit", "quit(None)"]
)
def test_a_program_may_end_itself(shared: Session, code: str):
    ended = shared.feed(f"print('before')\n{code}\nprint('after')")

    assert ended == Finished(None)
    assert shared.printed == "before\n"


@pytest.mark.parametrize(
    "code", ["exit(1)", "import sys\nsys.exit('no data')", "raise SystemExit('no data')"]
)
def test_a_program_that_ends_itself_with_an_error_fails(shared: Session, code: str):
    failed = failing(shared, code)

    assert failed.text.splitlines()[-1] in ("SystemExit: 1", "SystemExit: no data")


def test_a_crash_names_no_limit_and_ends_the_session():
    host = Host()
    session = Session()
    host.run(session, "x = 1")
    threading.Timer(0.1, session._process.kill).start()

    failed = session.feed("while True: pass")

    assert isinstance(failed, Failed)
    assert not failed.keeps_session
    assert failed.limit == ""
    assert "ended unexpectedly" in failed.text
    with pytest.raises(RuntimeError, match="over"):
        session.feed("1")
    assert failure("1 / 0").keeps_session
