"""Code is rewritten only where the result means the same, and keeps its lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.programs.interpreter.rewrite import rewrite


@pytest.mark.parametrize(
    ("code", "fed"),
    [
        (
            "asyncio.gather(*t, return_exceptions=True)\n0",
            "asyncio.gather(*_fdstore_settled(True, *t, *()))\n0",
        ),
        ("gather(a, return_exceptions=x,)\n0", "gather(*_fdstore_settled(x, a, *(),))\n0"),
        ("gather(return_exceptions=True, *t)\n0", "gather(*_fdstore_settled(True, *(), *t))\n0"),
        ("gather(*t)\n0", "gather(*t)\n0"),
        ("é = gather(a,\n  return_exceptions=True)\n0", "é = gather(*_fdstore_settled(True, a,\n  *()))\n0"),
        (
            "gather(gather(a, return_exceptions=True), return_exceptions=True)\n0",
            "gather(*_fdstore_settled(True, gather(*_fdstore_settled(True, a, *())), *()))\n0",
        ),
        ("sys.exit('é')\n0", "exit('é')\n0"),
        ("try: f()\nexcept asyncio.TimeoutError: pass\n0", "try: f()\nexcept TimeoutError: pass\n0"),
        ("x = datetime.utcnow()\n0", "x = datetime.now()\n0"),
        ("del d['x']\n0", "d.pop('x')\n0"),
        ("if x:\n    del d[f(1)]['x']; y\n0", "if x:\n    d[f(1)].pop('x'); y\n0"),
        ("if x: del d['x']\n0", "if x: d.pop('x')\n0"),
        ("from fdstore import fd, ask\n0", "pass\n0"),
        (
            "gather(a, return_exceptions=f(gather(b, return_exceptions=True)))\n0",
            "gather(*_fdstore_settled(f(gather(b, return_exceptions=True)), a, *()))\n0",
        ),
    ],
)
def test_what_the_interpreter_lacks_is_replaced(code: str, fed: str):
    assert rewrite(code, 9) == (fed.removesuffix("0") + "_fdstore_shown((0), 9)", True)


@pytest.mark.parametrize(
    ("code", "fed"),
    [
        ("for x in t:\n  pass", "for x in _fdstore_lines((t)):\n  pass"),
        ("for x in *a, b: y", "for x in _fdstore_lines((*a, b)): y"),
        ("for n, x in enumerate(t, 1): y", "for n, x in enumerate(_fdstore_lines((t)), 1): y"),
        ("z = [x for x in f(t) if x]", "z = [x for x in _fdstore_lines((f(t))) if x]"),
        ("z = x not in t.u and y", "z = x not in _fdstore_whole((t.u)) and y"),
        ("z = a in b in c", "z = a in _fdstore_whole((b)) in _fdstore_whole((c))"),
        ("z = f'{x in t:>5}'", "z = f'{x in _fdstore_whole((t)):>5}'"),
        ("z = f'{x in t:>{w}}'", "z = f'{x in _fdstore_whole((t)):>{w}}'"),
        ("z = f'{x in t!r:{w in u}}'", "z = f'{x in _fdstore_whole((t))!r:{w in _fdstore_whole((u))}}'"),
        ("z = f'{x in t=}'", "z = f'{'x in t='}{x in _fdstore_whole((t))!r}'"),
        ("z = f'{ t[1:] = :>{w}}'", "z = f'{' t[1:] = '}{ _fdstore_cut(t, 1, None, None) :>{w}}'"),
        ("z = f'{x[y]=:9} {(x in t)=!s}'", "z = f'{x[y]=:9} {'(x in t)='}{(x in _fdstore_whole((t)))!s}'"),
        ("z = t[1:2]", "z = _fdstore_cut(t, 1, 2, None)"),
        ("z = t[:]", "z = _fdstore_cut(t, None, None, None)"),
        ("z = t[::-1]", "z = _fdstore_cut(t, None, None, -1)"),
        ("z = f(x).t[\n1:]", "z = _fdstore_cut(f(x).t, \n1, None, None)"),
        ("z = t[1:2][3:4]", "z = _fdstore_cut(_fdstore_cut(t, 1, 2, None), 3, 4, None)"),
        ("z = t[u[1:2]:]", "z = _fdstore_cut(t, _fdstore_cut(u, 1, 2, None), None, None)"),
        ("z = (a or t)[1:2]", "z = _fdstore_cut((a or t), 1, 2, None)"),
        ("z = await t[1:2]", "z = await _fdstore_cut(t, 1, 2, None)"),
        ("for x in t[1:2]: y", "for x in _fdstore_lines((_fdstore_cut(t, 1, 2, None))): y"),
        ("if t[1:2] in u: y", "if _fdstore_cut(t, 1, 2, None) in _fdstore_whole((u)): y"),
        ("x[a] = t[1:2]", "x[a] = _fdstore_cut(t, 1, 2, None)"),
        ("f(a=t[1:2])\nx = 1", "f(a=_fdstore_cut(t, 1, 2, None))\nx = 1"),
    ],
)
def test_texts_are_read_before_they_are_iterated_searched_or_cut(code: str, fed: str):
    assert rewrite(code, 9) == (fed, False)


@pytest.mark.parametrize(
    "code",
    [
        "x[1:2] = y",
        "x[1:2] += y",
        "x[1:2] = y[1] = z",
        "del x[1:2]",
        "a, x[1:2] = y",
        "z = 'abc'[1:2]",
        "z = [1, 2][0:1]",
        "z = x[1:2, 3]",
        "z = x[1]",
        "z = {1: 2}",
        "z = [lambda: 1]",
        "z: list[int] = y",
        "z = a in 'abc' or a in [1, 2] or a in {1: 2}",
        "for x in [1, 2]: y",
        "for x[1:2] in 'abc': y",
    ],
)
def test_what_has_no_text_is_left(code: str):
    assert rewrite(f"{code}\nx = 1", 9) == (f"{code}\nx = 1", False)


@pytest.mark.parametrize(
    "code",
    [
        "del x",
        "del d[1:2]",
        "del d['a'], d['b']",
        "del d[1, 2]",
        "from fdstore import fd as f",
        "import fdstore",
    ],
)
def test_what_has_no_equivalent_is_left(code: str):
    assert rewrite(f"{code}\nx = 1", 9) == (f"{code}\nx = 1", False)


@pytest.mark.parametrize(
    ("code", "fed"),
    [
        ("x", "_fdstore_shown((x), 9)"),
        ("x;", "_fdstore_shown((x), 9);"),
        ("(x) # why", "_fdstore_shown(((x)), 9) # why"),
        ("(y := 5)", "_fdstore_shown(((y := 5)), 9)"),
        ("*a, b", "_fdstore_shown((*a, b), 9)"),
        ("'é'; f(\n 1\n)", "'é'; _fdstore_shown((f(\n 1\n)), 9)"),
        ("await x", "_fdstore_shown((await x), 9)"),
        ("a = 1\r\na", "a = 1\r\n_fdstore_shown((a), 9)"),
        ("'''a\f\x1c\u2028b'''; x", "'''a\f\x1c\u2028b'''; _fdstore_shown((x), 9)"),
        ("lambda a=1: a", "_fdstore_shown((lambda a=1: a), 9)"),
        ("f(a=1)[1:2] == 3", "_fdstore_shown((_fdstore_cut(f(a=1), 1, 2, None) == 3), 9)"),
        ("x\n\n# why\n", "_fdstore_shown((x), 9)\n\n# why\n"),
        ("ไม้", "_fdstore_shown((ไม้), 9)"),
    ],
)
def test_the_last_expression_becomes_its_repr(code: str, fed: str):
    assert rewrite(code, 9) == (fed, True)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "if x:\n  x",
        "if x: x",
        "for x in [y]: x",
        "x = 1",
        "x >>= 1",
        "x: int",
        "x := 1",
        "x for x in [y]",
        "return x",
        "import x",
        "@x\ndef f(): x",
        "a = lambda: 1",
    ],
)
def test_what_ends_in_no_expression_has_no_value(code: str):
    assert rewrite(code, 9) == (code, False)


@pytest.mark.parametrize("code", ["x = = 1", "(" * 5000 + ")" * 5000, "x\0", "for", "'x", "(]", "f'{x'"])
def test_code_with_errors_is_fed_as_it_is(code: str):
    assert rewrite(code, 9) == (code, False)


@pytest.mark.parametrize(
    "string",
    [
        "f'{d['a']}'",
        'f"{d["a"]}"',
        "f'{x!r:>{width}}'",
        "f'{{}} {x}'",
        "rf'\\{x}'",
        "f'{f'{1}'}'",
        "f'{x:%Y-%m-%d}'",
        "f'''{\nx\n}'''",
        "f'{\nx\n}'",
        "f'{d[\":\"]}'",
        "f'{(lambda x: 1)(2)}'",
        "F\"{'}'}\"",
        "'f{' \"f'\" '''f\"'''",
        "fr'{x}' # f'",
    ],
)
def test_f_strings_of_newer_pythons_are_read_by_all(string: str):
    assert rewrite(f"é = {string}\nx", 9) == (f"é = {string}\n_fdstore_shown((x), 9)", True)


def test_code_in_f_strings_is_rewritten_too():
    assert rewrite("x = f'{await gather(*t, return_exceptions=True)!r:>{del_}}'", 9)[0] == (
        "x = f'{await gather(*_fdstore_settled(True, *t, *()))!r:>{del_}}'"
    )


@given(st.text(alphabet="f'\"{}\\\n()ax:#=.[] ", max_size=30))
def test_rewriting_keeps_the_number_of_lines(code: str):
    assert rewrite(code, 9)[0].count("\n") == code.count("\n")
