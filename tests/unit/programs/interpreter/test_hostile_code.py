"""Code of a model costs the host a time that grows with its length, whatever it says."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.code.catalogue import Catalogue, read_tools
from fdstore.hosts.gateway.code.checking import check_code
from fdstore.programs.interpreter.code_tokens import tokens_of
from fdstore.programs.interpreter.events import Failed
from fdstore.programs.interpreter.failures import FailedCode, _explain, _lines_of_raise
from fdstore.programs.interpreter.rewrite import rewrite
from fdstore.programs.python_call import MAX_CODE_BYTES, check_size
from fdstore.text.similar_names import similar_names
from tests.unit.programs.interpreter.host import failure, value

CATALOGUE = Catalogue(read_tools("docs", [{"name": "find", "inputSchema": {"type": "object"}}], ("*",)))

HOSTILE = {
    "a dotted import": lambda size: "import a" + ".a" * (size // 2),
    "a dotted name": lambda size: "a" + ".a" * (size // 2),
    "attributes of calls": lambda size: "a()" + ".a()" * (size // 4),
    "a sum": lambda size: "1" + "+1" * (size // 2),
    "signs": lambda size: "-" * size + "1",
    "powers": lambda size: "2" + "**2" * (size // 3),
    "open brackets": lambda size: "(" * size,
    "pairs of brackets": lambda size: "x" + "()" * (size // 2),
    "brackets in brackets": lambda size: ("[" * 150 + "]" * 150 + ";") * (size // 301),
    "open braces and colons": lambda size: "{a:" * (size // 3),
    "open calls": lambda size: "gather(" * (size // 7),
    "flags in flags": lambda size: "gather(return_exceptions=" * 150 + "1," * (size // 8) + ")" * 150,
    "many flags": lambda size: "gather(return_exceptions=a);" * (size // 28),
    "deletions": lambda size: "del a[b];" * (size // 9),
    "lambdas": lambda size: "lambda:" * (size // 7) + "0",
    "elifs": lambda size: "if a:0\n" + "elif a:0\n" * (size // 9),
    "decorators": lambda size: "@a\n" * (size // 3),
    "raises": lambda size: "raise A(1);" * (size // 11),
    "joined strings": lambda size: "''" + " ''" * (size // 3),
    "an open string": lambda size: "'" + "\\a" * (size // 2),
    "an open long string": lambda size: "'''" + "''\\" * (size // 3),
    "f-strings": lambda size: "f'{-a}' " * (size // 8),
    "open f-strings": lambda size: "f'{" * (size // 3),
    "nested f-strings": lambda size: "f'{" * 90 + "1" + "}'" * 90 + ";0" * (size // 2),
    "fields in formats": lambda size: "f'{a:" + "{a:" * (size // 3),
    "names in f-strings": lambda size: "f'" + "\\N{" * (size // 3),
    "an int of many digits": lambda size: "9" * size,
    "assignments": lambda size: "a=" * (size // 2) + "1",
    "commas": lambda size: "a," * (size // 2),
    "blank lines": lambda size: "\n" * size,
    "comments": lambda size: "#\n" * (size // 2),
    "joined lines": lambda size: "\\\n" * (size // 2),
    "semicolons": lambda size: "a;" * (size // 2),
    "names": lambda size: ";".join(f"a{number}=0" for number in range(size // 9)),
    "calls of tools": lambda size: "await docs.find(a=1);" * (size // 21),
    "names of servers": lambda size: "f(docs,docs=docs);" * (size // 18),
}


def read_all(code: str) -> None:
    """Do all that the host does with code beside feeding it."""
    tokens_of(code)
    rewrite(code, 1000)
    check_code(code, CATALOGUE)
    failed = FailedCode(code, 1, {0}, [])
    _explain("NameError", "name 'aaa' is not defined", failed)
    _lines_of_raise(code)


def processor_s(work: Callable[[], object], enough: float = 0.0) -> float:
    """Return the least processor time of up to three runs: what else the machine does only adds to it. A run
    that takes no more than is `enough` is the last."""
    taken = []
    for _ in range(3):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
        if taken[-1] <= enough:
            break
    return min(taken)


@pytest.mark.thorough("a bound of time")
@pytest.mark.parametrize("name", HOSTILE)
def test_eight_times_the_code_takes_the_host_no_more_than_eight_times_as_long(name: str) -> None:
    small, large = HOSTILE[name](MAX_CODE_BYTES // 8), HOSTILE[name](MAX_CODE_BYTES)

    # four times more for noise and caches; what is quadratic takes sixty-four times as long
    limit = 4 * 8 * max(processor_s(lambda: read_all(small)), 0.002)
    assert processor_s(lambda: read_all(large), limit) <= limit


@pytest.mark.parametrize("size", [MAX_CODE_BYTES + 1, 10 * MAX_CODE_BYTES])
def test_longer_code_is_refused_with_what_to_do(size: int) -> None:
    with pytest.raises(
        InvalidArgument, match="64 KiB; define functions in one call and use them in the next"
    ):
        check_size("é" * (size // 2) + "#" * (size % 2))

    check_size("é" * (MAX_CODE_BYTES // 2))


def test_long_names_are_not_compared() -> None:
    assert similar_names("a" * 8000, ["a" * 7999, "a" * 39]) == []
    assert similar_names("lenght", ["length"] + ["x" * 10_000] * 10_000) == ["length"]


def test_a_deep_recursion_in_a_long_line_is_told_with_few_of_its_lines() -> None:
    failed = failure("def f(n): return f(n - 1)  #" + "x" * 60_000 + "\nf(900)")

    assert isinstance(failed, Failed)
    assert "RecursionError" in failed.text
    assert len(failed.text) < 20_000


def test_what_is_wrong_with_code_is_said_of_the_code_as_it_was_written() -> None:
    assert "Simple statements must be separated" in failure("x = 1\nfoo bar").text
    assert "line 1" in failure("foo bar").text


def test_f_strings_nested_two_thousand_deep_are_an_error_of_the_program() -> None:
    assert "SyntaxError" in failure("f'{" * 2000 + "1" + "}'" * 2000).text


def test_code_whose_brackets_are_nested_deeper_than_it_is_read_still_has_its_value() -> None:
    assert value("f'{" * 100 + "1" + "}'" * 100) == "'1'"
