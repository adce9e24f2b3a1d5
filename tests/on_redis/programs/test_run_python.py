"""`run_python` in a loop of one's own: sessions, results, errors, limits, and what a repeated call does."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

import fdstore
from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import NoWorker
from fdstore.programs import recorded_answers
from fdstore.results.python_config import PythonSection
from fdstore.results.tool_outcome import ToolResult
from tests.conftest import interpreters_of
from tests.on_redis.running_agents import Crashed, CrashingStore
from tests.thorough import thorough
from tests.waiting import wait_until


def tools_of(proc: Process, **options: Any) -> Toolset:
    return Toolset(proc, enabled=["run_python", "read_fd"], **options)


def limit_to(tools: Toolset, **limits: Any) -> None:
    """Run code under the limits of a program file's [python]."""
    toolbox = tools._toolbox
    toolbox.context = msgspec.structs.replace(toolbox.context, python=PythonSection(**limits))


def run(tools: Toolset, code: str, call_id: str | None = None) -> str:
    result = tools.call("run_python", {"code": code}, call_id)
    assert not result.is_error, result.text
    return body(result.text)


def body(text: str) -> str:
    lines = text.splitlines()
    assert lines[0].startswith("<python_result calls="), text
    assert lines[-1] == "</python_result>"
    return "\n".join(lines[1:-1])


def failure(tools: Toolset, code: str) -> str:
    result = tools.call("run_python", {"code": code})
    assert result.is_error, result.text
    return result.text


def test_a_text_is_read_by_pages_lines_and_characters(proc: Process) -> None:
    d = proc.create("".join(f"line {number}\n" for number in range(1, 5001)), source="build.log")
    shown = run(
        tools_of(proc),
        "log = fd('fd:1')\n"
        "print(log.total_chars, log.total_lines, log.total_pages, log.source, log.kind, log.state)\n"
        "print([log.line(120), log.lines(2, 3), log.chars(1, 4), log.page(2)[:6]])\n"
        "[hit] = log.search(r'line (4\\d99)', max_matches=1)\n"
        "print(hit.line, hit.text, hit.chars, hit.groups)\n"
        "len(log.text()), [t.fd for t in fds()]",
    )
    begin = proc.read("fd:1", read_all=True).text.index("line 4099") + 1
    assert shown.splitlines() == [
        f"{d.chars} 5000 {d.pages} build.log text sealed",
        f"['line 120\\n', 'line 2\\nline 3\\n', 'line', {proc.read('fd:1', start=2).text[:6]!r}]",
        f"4099 line 4099 [{begin}, {begin + 8}] ['4099']",
        f"({d.chars}, ['fd:1'])",
    ]


def test_a_hit_has_the_lines_before_and_after_it(proc: Process) -> None:
    proc.create("one\ntwo\nTHREE\nfour\n")
    code = "[hit] = fd(1).search('THREE', context=2)\nhit.before, hit.after"
    assert run(tools_of(proc), code) == "(['one', 'two'], ['four'])"


def test_parts_are_texts_of_their_own_and_stay_in_the_session(proc: Process) -> None:
    proc.create("".join(f"line {number}\n" for number in range(1, 50_001)))
    tools = tools_of(proc)
    first = run(tools, "parts = fd(1).split(chars=50_000)\nlen(parts), sum(p.total_lines for p in parts)")
    count_of_parts, lines = eval(first)
    assert lines == 50_000
    assert count_of_parts == 12
    assert (
        run(tools, "parts[3].line(1) == fd(parts[3].ref).line(1) and len(parts[3].text()) <= 50_000")
        == "True"
    )


def test_a_text_that_is_too_long_to_read_is_split(proc: Process) -> None:
    proc.create("".join(f"line {number}\n" for number in range(1, 50_001)))
    tools = tools_of(proc)
    limit_to(tools, max_text=10_000)
    assert "too_large" in failure(tools, "fd(1).text()")
    shown = run(tools, "parts = fd(1).split(lines=700)\nlen(parts), parts[3].line(1)")
    assert shown == "(72, 'line 2101\\n')"


def test_what_needs_all_of_a_text_says_how_to_take_one_that_is_too_long(proc: Process) -> None:
    proc.create("".join(f"line {number}\n" for number in range(1, 50_001)))
    tools = tools_of(proc)
    limit_to(tools, max_text=300_000)

    for code in ("for line in fd(1): pass", "fd(1).splitlines()", "'x' in fd(1)", "fd(1).split('9')"):
        shown = failure(tools, code)
        assert "ValueError: too_large: " in shown
        assert "more than the limit of 300000" in shown
        assert "take it in parts: " in shown
    shown = failure(tools, "'x' in fd(1)")
    assert "; take it in parts: text.find(x) >= 0 does so, and text.search(pattern)\n" in shown
    assert run(tools, "len(fd(1)), fd(1).count('99'), fd(1).find('line 49999'), fd(1)[-11:]") == repr(
        (538_894, *counted(), "line 50000\n")
    )


@pytest.mark.parametrize("max_text", [3, 1_000, "50KB"])
def test_a_text_is_counted_and_searched_in_parts_of_any_size(proc: Process, max_text: int | str) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 101 if max_text == 3 else 50_001))
    proc.create(text)
    tools = tools_of(proc)
    limit_to(tools, max_text=max_text)

    shown = run(
        tools,
        "t = fd(1)\n"
        "t.count('9'), t.count('99'), t.find('line 99'), t.find('9', -9), t.startswith('line 1'), "
        f"t.endswith('0\\n'), t.find({text[-1_200:]!r}), t.startswith({text[:1_200]!r})",
    )

    found = text.count("9"), text.count("99"), text.find("line 99"), text.find("9", -9), True, True
    assert shown == repr((*found, text.find(text[-1_200:]), True))


def test_what_is_too_large_says_its_own_size_and_how_a_program_reads_it(proc: Process) -> None:
    proc.create("a" * 700_005 + "\n" + "b\n" * 10_000)
    tools = tools_of(proc)
    limit_to(tools, max_text=300_000)

    for code, what, size in (
        ("fd(1).text()", "fd:1", 720_006),
        ("fd(1).line(1)", "this part of fd:1", 700_006),
        ("fd(1).lines(1, 3)", "this part of fd:1", 700_010),
        ("fd(1).chars(3, 400_001)", "this part of fd:1", 399_999),
        ("fd(1).lines(1, 10_001)", "this part of fd:1", 720_006),
        ("fd('fd:1#C3-700008').text()", "fd:1#C3-700008", 700_006),
        ("fd('fd:1#C3-700008').line(1)", "this part of fd:1#C3-700008", 700_004),
        ("fd(1)[:-1]", "this part of fd:1", 720_005),
    ):
        shown = failure(tools, code)
        assert (
            f"ValueError: too_large: {what} has {size} characters, more than the limit of 300000; " in shown
        )
        assert "extract" not in shown
        assert "read it in parts: split(chars=50000), chars(first, last), or search(pattern)" in shown


def test_a_line_of_a_part_is_as_long_as_what_the_part_has_of_it(proc: Process) -> None:
    proc.create("a" * 700_000 + "\nb\n")
    tools = tools_of(proc)
    limit_to(tools, max_text=300_000)

    shown = run(
        tools,
        "parts = fd(1).split(chars=250_000)\n"
        "few = fd('fd:1#C7-9')\n"
        "[p.line(1) == p.chars(1, len(p)) for p in parts[:2]], parts[-1].line(1)[-2:], few.line(1)",
    )

    assert shown == "([True, True], 'a\\n', 'aaa')"


def counted() -> tuple[int, int]:
    text = "".join(f"line {number}\n" for number in range(1, 50_001))
    return text.count("99"), text.find("line 49999")


@pytest.mark.thorough("many megabytes")
def test_a_program_takes_a_text_of_5_mb_as_a_str(proc: Process) -> None:
    text = "".join(f"{number} {'ERROR' if number % 7 == 0 else 'ok'} \u00e9\n" for number in range(400_000))
    proc.create(text)

    shown = run(
        tools_of(proc),
        "t = fd(1)\n"
        "errors = sum(1 for line in t if 'ERROR' in line)\n"
        "errors, len(t), t.count('ERROR'), 'nothing' in t, t[5:20], len(t.splitlines())",
    )

    errors = text.count("ERROR")
    assert shown == repr((errors, len(text), errors, False, text[5:20], 400_000))


def test_created_texts_are_descriptors(proc: Process) -> None:
    assert run(
        tools_of(proc), "t = create('one\\ntwo')\nu = create('x', name='note')\n[t.fd, u.fd, t.line(2)]"
    )
    assert [d.fd for d in proc.list()] == ["fd:1", "name:note"]
    assert proc.read("fd:1").text == "one\ntwo"


def test_a_long_result_is_a_descriptor(proc: Process) -> None:
    result = tools_of(proc).call("run_python", {"code": "for i in range(3000):\n    print('line', i)"})
    assert result.text.startswith('<fd_result fd="fd:1"')
    assert proc.read("fd:1#L3000").text == "line 2999"


def test_an_error_has_the_lines_of_the_code_and_keeps_what_was_assigned(proc: Process) -> None:
    tools = tools_of(proc)
    shown = failure(tools, "print('begun')\nx = 7\ny = x / 0\nz = 1")
    assert "begun" in shown
    assert "line 3" in shown
    assert "y = x / 0" in shown
    assert "ZeroDivisionError: division by zero" in shown
    assert run(tools, "x") == "7"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("fd('fd:9')", "not_found: fd:9"),
        ("fd('fd:1').line(99)", "invalid_range:"),
        ("fd('fd:1').search('(')", "invalid_argument:"),
        ("fd('nonsense')", "fd:"),
    ],
)
def test_errors_of_the_store_can_be_caught(proc: Process, code: str, said: str) -> None:
    proc.create("one\n")
    tools = tools_of(proc)
    assert said in failure(tools, code)
    assert run(tools, f"try:\n    {code}\nexcept ValueError as error:\n    print('caught')") == "caught"


def word_count(text: str, least: int = 0) -> dict[str, int]:
    """Count words."""
    words = [word for word in text.split() if len(word) >= least]
    return {word: words.count(word) for word in words}


def fails(why: str) -> str:
    """Fail."""
    raise FileNotFoundError(why)


def test_functions_are_called_with_names_and_return_their_values(proc: Process) -> None:
    tools = tools_of(proc, python=[word_count, fails])
    assert run(tools, "c = await word_count(text='a bb bb', least=2)\nc['bb']") == "2"
    assert "FileNotFoundError: gone.txt" in failure(tools, "await fails(why='gone.txt')")
    assert "least" in failure(tools, "await word_count(text='a', least='many')")


def large(size: int) -> str:
    """Return a large text."""
    return "x" * size


def test_a_client_that_waits_for_no_worker_is_told_that_none_can_ask(proc: Process) -> None:
    tools = tools_of(proc, ask=fdstore.AskConfig(model="small"), wait_for_workers=False)
    with pytest.raises(NoWorker):
        run(tools, "await ask('Which?', 'a text')")


def test_a_large_value_of_a_function_is_a_text(proc: Process) -> None:
    tools = tools_of(proc, python=[large])
    assert run(tools, "t = await large(size=3_000_000)\nt.total_chars, t.fd") == "(3000000, 'fd:1')"


SMALL: dict[str, dict[str, Any]] = {
    "seconds": {"seconds": 0.5},
    "memory": {"memory": "64MiB"},
    "max_output": {"max_output": 2000},
    "calls": {"calls": 100},
}


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("while True: pass", "seconds"),
        ("x = 'a' * 1_000_000_000", "memory"),
        ("for i in range(300): print('x' * 100)", "max_output"),
        ("for i in range(200): fd(1)", "calls"),
    ],
)
def test_beyond_a_limit_the_session_before_the_call_stays(proc: Process, code: str, limit: str) -> None:
    proc.create("x")
    tools = tools_of(proc)
    limit_to(tools, **SMALL[limit])
    run(tools, "kept = 1")

    shown = failure(
        tools, f"kept = 2\ntry:\n    {code.replace(chr(10), chr(10) + '    ')}\nexcept Exception:\n    pass"
    )

    assert "variables are as before the call" in shown
    assert run(tools, "kept") == "1"


def test_a_state_that_is_too_large_is_refused_with_the_names(proc: Process) -> None:
    tools = tools_of(proc)
    limit_to(tools, state=100_000)
    run(tools, "a = 1")
    assert "big (about" in failure(tools, "a = 2\nbig = ''.join(str(i * i) for i in range(50_000))")
    assert run(tools, "a") == "1"


CRASHING = """
import time, random
a = create('first ' + str(random.random()))
began = time.time()
print('a', a.fd, len(fds()))
words = await word_count(text='x y x')
b = create('second')
print('b', b.fd, words['x'], random.random(), began)
c = fd(a.ref).text()
"""

CRASHING_NAMES = """
try:
    plan = fd("name:plan")
except ValueError:
    plan = create("first", name="plan")
before = plan.text()
plan = create(before + " second", name="plan")
after = plan.text()
create(f"{before}, then {after}")
"""


def repeated(redis_url: str, store: Store, code: str, first: int) -> Iterator[tuple[Process, ToolResult]]:
    """Crash a call of code before every third request, and yield its process and the result of its repeat.
    The last one did not crash: the repeat has the same result."""
    for requests in range(first, 1000, 3):
        name, whole = f"crashed-{requests}", None
        with CrashingStore(redis_url, 10**6) as crashing:
            tools = tools_of(crashing.process(name), python=[word_count])
            crashing.left = requests
            with suppress(Crashed):
                whole = tools.call("run_python", {"code": code}, "c1")
        proc = store.process(name)
        result = tools_of(proc, python=[word_count]).call("run_python", {"code": code}, "c1")
        assert not result.is_error, result.text
        yield proc, result
        if whole is not None:
            assert whole == result
            assert requests > 5
            return


@pytest.mark.thorough("a fault at every request")
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_call_that_is_repeated_after_any_request_does_the_same_once(
    redis_url: str, store: Store, first: int
) -> None:
    for proc, result in repeated(redis_url, store, CRASHING, first):
        assert [d.fd for d in proc.list()] == ["fd:1", "fd:2"], proc.id
        assert "a fd:1 1\n" in result.text
        assert "b fd:2 2 " in result.text
        assert body(result.text).count("\n") == 1
        assert run(tools_of(proc), "c == fd('fd:1').text()") == "True"


@pytest.mark.parametrize("first", [0, *thorough("the requests between", 1, 2)])
def test_a_repeated_call_finds_names_as_they_were_when_it_first_looked(
    redis_url: str, store: Store, first: int
) -> None:
    for proc, _ in repeated(redis_url, store, CRASHING_NAMES, first):
        assert proc.read("fd:3").text == "first, then first second", proc.id
        assert proc.read("name:plan").text == "first second"


@pytest.mark.parametrize(
    "code",
    [
        "_fdstore_read()",
        "_fdstore_read('fd:1', 'bytes', 1, 2)",
        "_fdstore_read('fd:1', 'lines', 'a', None)",
        "_fdstore_search('fd:1', 7, 'x', None, [])",
        "_fdstore_search('fd:1', 'x', 'x', False, {})",
        "_fdstore_split('fd:1', 'words', 3)",
        "_fdstore_split('fd:1', 'lines', -3)",
        "_fdstore_split(['fd:1'], 'lines', 3)",
        "_fdstore_create(3, [])",
        "_fdstore_create('x', [])",
        "_fdstore_fd({})",
        "_fdstore_fd(True)",
        "_fdstore_fds(1)",
        "await _fdstore_ask(1, 2)",
        "await _fdstore_ask('x', [3])",
        "await _fdstore_pipe('x', 3)",
        "await _fdstore_pipe([[]], 'fd:1')",
        "await _fdstore_spawn(3, {}, 7)",
        "await _fdstore_tool(3, {}, 7)",
        "import time\ntime.sleep(float('inf'))\ntime.sleep(float('nan'))\ntime.sleep(-1)",
    ],
)
def test_functions_of_the_host_that_code_calls_wrongly_are_exceptions(proc: Process, code: str) -> None:
    proc.create("x\n")
    tools = tools_of(proc)
    before = "import time\nbegan = time.time()\n"
    indented = code.replace("\n", "\n    ")
    run(tools, f"{before}try:\n    {indented}\nexcept Exception as error:\n    print(type(error).__name__)")
    assert [d.fd for d in proc.list()] == ["fd:1"]


def test_a_cancelled_call_ends_its_code_and_holds_up_nothing(redis_url: str, proc: Process) -> None:
    async def main() -> str:
        async with await fdstore.aio.connect(redis_url) as store:
            tools = fdstore.aio.Toolset(await store.process("triage"), enabled=["run_python"])
            before = interpreters_of(os.getpid())
            call = asyncio.create_task(tools.call("run_python", {"code": "while True: pass"}))
            await asyncio.to_thread(wait_until, lambda: interpreters_of(os.getpid()) - before)
            began = time.monotonic()
            call.cancel()
            await asyncio.wait([call])
            took_s = time.monotonic() - began
            assert took_s < PythonSection().seconds / 2
            return (await tools.call("run_python", {"code": "1 + 1"})).text

    assert body(asyncio.run(main())) == "2"


BYTES_READ = [
    "text()",
    "page(1)",
    "line(1)",
    "lines(1, 2)",
    "chars(1, 5)",
    "search('a')",
    "split(chars=10)",
    "split(lines=10)",
    "split(pages=1)",
]


@pytest.mark.parametrize("read", BYTES_READ)
def test_bytes_are_not_read_as_a_text(proc: Process, read: str) -> None:
    proc.create(b"\x89PNG\x00\xff", media_type="image/png")

    assert "not_text: fd:1 is image/png" in failure(tools_of(proc), f"fd(1).{read}")


def test_code_of_more_than_64_kib_is_refused_with_what_to_do(proc: Process) -> None:
    tools = tools_of(proc)

    said = failure(tools, "import " + "a." * 100_000 + "a")
    assert "invalid_argument" in said
    assert "64 KiB; define functions in one call and use them in the next" in said
    assert run(tools, f"x = {'y' * (64 * 1024 - 8)!r}\n1") == "1"


@pytest.mark.parametrize(
    "code",
    [
        "exit(10**5000)",
        "_fdstore_shown = lambda *a: 10**5000\n1",
        "_fdstore_largest = lambda *a: 5\n1",
        "_fdstore_search('fd:1', 'a', None, False, 0)",
        "_fdstore_search('fd:1', ['a'], 1, False, 'x')",
        "_fdstore_read('fd:1', 'lines', None, [1])",
        "_fdstore_split('fd:1', ['chars'], 1)",
        "_fdstore_pipe([1], 'fd:1')",
        "_fdstore_nothing(1)",
        "fd(1).search('a', max_matches=2**63 - 1, context=2**62)",
        "import time\ntime.sleep(1e400)\ntime.time()",
    ],
)
def test_no_value_of_code_fails_the_host_and_the_variables_stay(proc: Process, code: str) -> None:
    proc.create("a")
    tools = tools_of(proc)
    run(tools, "kept = 5")

    assert tools.call("run_python", {"code": code}).text.startswith("<python_result")
    assert run(tools, "kept") == "5"


def test_sql_gives_a_number_that_a_float_does_not_hold_as_a_str(proc: Process) -> None:
    proc.create("n\n1\n", media_type="text/csv")
    shown = run(
        tools_of(proc),
        "[row] = await sql('''SELECT 9007199254740993.01::DECIMAL(18, 2) AS a, 0.10::DECIMAL(4, 2) AS b, "
        "12345678901234567890.12::DECIMAL(38, 2) AS c, 0.1::DOUBLE AS d, 1e300 AS e, 0.1::FLOAT AS f, "
        "[9007199254740993.01::DECIMAL(18, 2)] AS g, [json(repeat('9', 5000))] AS h, "
        "[json('1e400'), json('1e99999999999999999999')] AS i FROM t''', t='fd:1')\n"
        "assert row.pop('h') == ['9' * 5000]\n"
        "row",
    )

    assert shown == repr(
        {
            "a": "9007199254740993.01",
            "b": 0.1,
            "c": "12345678901234567890.12",
            "d": 0.1,
            "e": 1e300,
            "f": 0.1,
            "g": ["9007199254740993.01"],
            "i": ["1e400", "1e99999999999999999999"],
        }
    )


@pytest.mark.thorough("many rows")
def test_sql_over_texts_gives_rows_as_dicts_and_many_rows_as_a_text(proc: Process) -> None:
    proc.create("city,people\nParis,2103778\nLyon,520774\n", media_type="text/csv")
    proc.create('{"rows": [{"name": "Lyon", "tags": ["x", null], "is_old": true}]}')
    tools = tools_of(proc)

    joined = run(
        tools,
        "query = 'SELECT city, people, tags, is_old, NULL AS none FROM a JOIN b ON city = name'\n"
        "await sql(query, a=fd('fd:1'), b='fd:2#J/rows')",
    )
    large = run(
        tools, "await sql('SELECT 2::HUGEINT ** 2 AS a, (2::HUGEINT << 100) AS b FROM t LIMIT 1', t='fd:1')"
    )
    many = run(
        tools,
        "table = await sql('SELECT range AS n FROM range(100001)', a='fd:1')\n"
        "print(table.fd, table.total_lines, table.line(100_002), end='')\n"
        "[sums] = await sql('SELECT count(*) AS n, max(n) AS last FROM t', t=table)\n"
        "sums['n'], sums['last']",
    )

    expected = {"city": "Lyon", "people": 520774, "tags": ["x", None], "is_old": True, "none": None}
    assert joined == repr([expected])
    assert large == repr([{"a": 4.0, "b": str(2 << 100)}])
    assert many == "fd:3 100002 100000\n(100001, 100000)"
    assert proc.stat("fd:3").media_type == "text/csv"
    assert "city VARCHAR, people BIGINT" in failure(tools, "await sql('SELECT town FROM a', a=fd('fd:1'))")
    assert "by the names of their tables" in failure(tools, "await sql('SELECT 1', fd('fd:1'))")


READING_NAMES = """
found = [fd("name:big").text()[:5] for _ in range(3)]
create("made", name="made")
found += [fd("name:big").text()[:5] for _ in range(3)]
create(str(found))
"""


def crashed_while_reading_names(redis_url: str, requests: int) -> bool:
    """Run READING_NAMES as the call c1 of the process `big` until it has sent so many requests. Return
    whether it crashed there."""
    with CrashingStore(redis_url, 10**6) as crashing:
        tools = tools_of(crashing.process("big"))
        crashing.left = requests
        with suppress(Crashed):
            tools.call("run_python", {"code": READING_NAMES}, "c1")
            return False
    return True


@pytest.fixture
def interrupted(redis_url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> Process:
    """The process of a call of READING_NAMES that crashed after its first effect. Little is recorded."""
    monkeypatch.setattr(recorded_answers, "MAX_RECORDED_BYTES", 300_000)
    proc = store.process("big")
    proc.put("big", "first" + "x" * 200_000)
    requests = 0
    while not proc.find("made"):
        requests += 1
        assert crashed_while_reading_names(redis_url, requests)
    return proc


def test_what_is_read_by_names_is_recorded_up_to_a_bound_and_then_read_again(
    interrupted: Process, execute: Any
) -> None:
    recorded = execute("HGETALL", interrupted.handle.keys.python)
    assert 200_000 < sum(map(len, recorded)) < 300_000

    run(tools_of(interrupted), READING_NAMES, "c1")

    [made] = [d.fd for d in interrupted.list() if d.fd.startswith("fd:")]
    assert interrupted.read(made).text == str(["first"] * 6)


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_repeat_that_reads_another_text_by_a_name_ends_and_says_so(
    interrupted: Process, change: str
) -> None:
    if change == "replaced":
        interrupted.put("big", "second" + "x" * 200_000)
    else:
        interrupted.close("name:big")
    tools = tools_of(interrupted)

    ended = tools.call("run_python", {"code": READING_NAMES}, "c1")

    assert ended.is_error
    assert "conflict: the program was interrupted, and name:big means another text" in ended.text
    assert tools.call("run_python", {"code": READING_NAMES}, "c1").text == ended.text
    assert {d.fd for d in interrupted.list()} - {"name:big"} == {"name:made"}
    assert failure(tools, "found").count("not defined") == 1
