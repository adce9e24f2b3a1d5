"""Programs see texts, asks, agents and pipelines under the names of the Python API."""

from __future__ import annotations

import io

import pytest

from fdstore.programs.interpreter.events import Failed, Finished, HostCall
from fdstore.programs.interpreter.session import Session
from tests.unit.programs.interpreter.host import Host, value

LOG = "one ERROR a\ntwo\nthree ERROR b\n"


def call_of(code: str, session: Session) -> HostCall:
    """Return the last host call of the code."""
    host = Host(LOG)
    ended = host.run(session, f"log = fd(1)\n{code}")
    assert isinstance(ended, Finished), ended
    return host.calls[-1]


@pytest.mark.parametrize(
    ("code", "name", "args"),
    [
        ("fd(1)", "_fd", (1,)),
        ("fd('fd:1#C1-3')", "_fd", ("fd:1#C1-3",)),
        ("fds()", "_fds", ()),
        ("log.page(2)", "_read", ("fd:1", "pages", 2, 2)),
        ("log.line(2)", "_read", ("fd:1", "lines", 2, 2)),
        ("log.lines(1, 2)", "_read", ("fd:1", "lines", 1, 2)),
        ("log.lines(first=3)", "_read", ("fd:1", "lines", 3, 3)),
        ("log.chars(1, 5)", "_read", ("fd:1", "chars", 1, 5)),
        ("log.text()", "_read", ("fd:1", "all", None, None)),
        ("log.search('ERROR')", "_search", ("fd:1", "ERROR", 1000, False, 0)),
        (
            "log.search('e', max_matches=2, ignore_case=True, context=1)",
            "_search",
            ("fd:1", "e", 2, True, 1),
        ),
        ("log.split(chars=9)", "_split", ("fd:1", "chars", 9)),
        ("log.split(lines=9)", "_split", ("fd:1", "lines", 9)),
        ("log.split(pages=1)", "_split", ("fd:1", "pages", 1)),
        ("create('text')", "_create", ("text", None)),
        ("create('text', name='n')", "_create", ("text", "n")),
        ("await ask('q')", "_ask", ("q", [])),
        ("await ask('q', log, 'text')", "_ask", ("q", [{"ref": "fd:1"}, "text"])),
        (
            "await ask('q', [log, ('a', [log])], 'b')",
            "_ask",
            ("q", [{"ref": "fd:1"}, "a", {"ref": "fd:1"}, "b"]),
        ),
        ("await pipe([['sort'], ('uniq', '-c')], log)", "_pipe", ([["sort"], ["uniq", "-c"]], "fd:1")),
        ("await pipe([['date']])", "_pipe", ([["date"]], None)),
        ("await read_log(1, path='x')", "_tool", ("read_log", [1], {"path": "x"})),
        ("await read_log([log, {'a': log}])", "_tool", ("read_log", [["fd:1", {"a": "fd:1"}]], {})),
        ("await github.issues(state='open')", "_tool", ("github.issues", [], {"state": "open"})),
    ],
)
def test_each_name_is_one_host_call(shared: Session, code: str, name: str, args: tuple[object, ...]):
    call = call_of(code, shared)

    assert (call.name, call.args, call.kwargs) == (name, args, {})


def test_a_text_has_the_facts_of_its_descriptor(shared: Session):
    Host(LOG).run(shared, "log = fd('fd:1#C5-9')")

    code = (
        "log.fd, log.ref, log.total_chars, log.total_lines, log.total_pages, log.source, log.kind, log.state"
    )

    assert shared.feed(code) == Finished("('fd:1', 'fd:1#C5-9', 5, 1, 1, 'user', 'text', 'sealed')")
    assert shared.feed("log") == Finished('Text("fd:1#C5-9", 5 chars, 1 lines)')
    assert shared.feed("str(log), f'{log}', [log]") == Finished(
        "('Text(\"fd:1#C5-9\", 5 chars, 1 lines)', 'Text(\"fd:1#C5-9\", 5 chars, 1 lines)', "
        '[Text("fd:1#C5-9", 5 chars, 1 lines)])'
    )


def test_hits_have_lines_texts_and_groups():
    code = "hits = fd(1).search('ERROR')\n[(h.line, h.text, h.chars, h.groups) for h in hits], hits[0]"

    assert value(code, LOG) == (
        "([(1, 'one ERROR a', 'C1', ['ERROR']), (3, 'three ERROR b', 'C3', ['ERROR'])], "
        "Hit(line=1, text='one ERROR a', groups=['ERROR']))"
    )


def test_hits_have_the_lines_around_them():
    code = (
        "hits = fd(1).search('ERROR', context=1)\n"
        "[(h.before, h.after) for h in hits], hits[0], fd(1).search('two')[0].before"
    )

    assert value(code, LOG) == (
        "([([], ['two']), (['two'], [])], Hit(line=1, text='one ERROR a', groups=['ERROR']), [])"
    )


def test_parts_of_a_text_are_texts():
    assert value("''.join(part.text() for part in fd(1).split(chars=7)) == fd(1).text()", LOG) == "True"


def test_results_of_agents_and_pipelines_have_texts():
    code = (
        "log = fd(1)\nr = await spawn('reader', 'why?', log)\np = await pipe([['sort']], r.fd)\n"
        "q = await spawn('reader', 'why?')\n"
        "r.answer, r.fd.text()[:3], r.state, r.exit_code, p.fd.text(), p.exit_code, q.fd, p"
    )

    assert value(code, LOG) == (
        "(\"reader: why? ['fd:1']\", 'one', 'finished', 0, \"[['sort']] fd:1\", 0, None, "
        'Piped(fd=Text("fd:2", 15 chars, 1 lines), exit_code=0))'
    )


def test_a_long_result_of_a_function_is_a_text():
    assert value("(await large()).text()", functions=["large"]) == "'large'"


def test_answers_of_many_asks_come_in_order():
    code = (
        "import asyncio\nlog = fd(1)\n"
        "await asyncio.gather(*[ask('q', part) for part in log.split(chars=12)], return_exceptions=True)"
    )

    assert value(code, LOG) == repr(["q: one ERROR a\n", "q: two\nthree ER", "q: ROR b\n"])


def test_failed_asks_can_be_gathered_as_exceptions():
    code = (
        "import asyncio\nresults = await asyncio.gather(ask('fail'), ask('q', 'x'), return_exceptions=True)\n"
        "isinstance(results[0], ValueError), str(results[0]), results[1]"
    )

    assert value(code) == "(True, 'refused: the model does not answer', 'q: x')"


def test_programs_may_have_a_main_function():
    code = (
        "import asyncio\nasync def main():\n    return await asyncio.gather(ask('a'), ask('b'))\n"
        "if __name__ == '__main__':\n    print(asyncio.run(main()))"
    )
    host = Host(later={"_ask"})
    with Session() as session:
        host.run(session, code)
        assert session.printed == "['a: ', 'b: ']\n"


def test_names_that_a_program_takes_for_itself_harm_nothing():
    code = (
        "log = fd(1)\nlist = str = len = int = type = repr = Exception = isinstance = None\n"
        "Text = Hit = create = 3\n"
        "def _read(*a): return 'mine'\n"
        "log.line(2), log.split(chars=20)[1].text(), log.search('two')[0].line, "
        "await ask('q', [log.split(chars=3)[0]])"
    )

    assert value(code, LOG) == "('two\\n', 'e ERROR b\\n', 2, 'q: one')"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("fd(1.5)", "fd() takes a number or a reference like 'fd:1' or 'name:KEY', not float"),
        ("fd(True)", "not bool"),
        ("log.page('2')", "page(number): the number is an int, not str"),
        ("log.line(None)", "not None"),
        ("log.lines(1.0, 2)", "lines(first, last): first is an int, not float"),
        ("log.chars(1, '2')", "last is an int, not str"),
        ("log.search(3)", "search(pattern): the pattern is a str, not int"),
        ("import re\nlog.search(re.compile('x'))", "the pattern is a str, not"),
        ("log.search('x', max_matches='all')", "max_matches"),
        ("log.split('\\n', 1, 2)", "takes one of chars=, lines= or pages="),
        ("log.split()", "takes one of chars=, lines= or pages="),
        ("log.split(5)", "takes one of chars=, lines= or pages="),
        ("log.split(chars=5, lines=5)", "takes one of"),
        ("log.split(chars='5')", "the size is an int"),
        ("create(log)", "the text is a str, not Text; pass its text()"),
        ("create(3)", "create(text): the text is a str, not int"),
        ("create('x', name=3)", "the name is a str, not int"),
        ("await ask(log, 'q')", "the question comes first and is a str"),
        ("await ask(3)", "the question is a str, not int"),
        ("await ask('q', 3)", "a text is a Text or a str, not int"),
        ("await ask('q', [log, None])", "a text is a Text or a str, not None"),
        ("await ask('q', lambda: 1)", "not function"),
        ("await ask('q', {'a': log})", "not dict"),
        ("await ask('q', model='x')", "unexpected keyword argument 'model'"),
        ("await spawn(3, 'q')", "the program's name is a str, not int"),
        ("await spawn('p', log)", "the query is a str, not Text"),
        ("await spawn('p', 'q', 'some text')", "create(text) makes a Text of a str"),
        ("await spawn('p', 'q', 3)", "takes a Text or a reference like 'fd:1', not int"),
        ("await pipe('sort')", "there is no shell"),
        ("await pipe(['sort', '-n'])", "[['sort'], ['uniq', '-c']]"),
        ("await pipe([['head', 5]])", "a word is a int"),
        ("await pipe([[]])", "commands is a list of lists of str"),
        ("await pipe([['sort']], 'b\\na')", "create(text) makes a Text of a str"),
        ("await read_log({1: 2})", "read_log() takes dicts with keys that are str, not int"),
        ("await read_log({1, 2})", "not set"),
        ("await read_log(print)", "read_log() takes None, bool, int"),
        ("await read_log(b'x')", "not bytes"),
        ("await read_log(float('nan'))", "does not take nan"),
        ("await read_log(2 ** 64)", "ints of 64 bits"),
        ("x = []\nx.append(x)\nawait read_log(x)", "nested more than 50 deep"),
        ("Text('fd:1')", "fd('fd:1') returns one"),
        ("log[0]", "a Text is not indexed, but text[0:500] is a str"),
        ("list(log)", "`for line in text` alone; text.splitlines() is a list"),
        ("log.count(3)", "count(sub): what is counted is a str, not int"),
        ("log.find(log)", "find(sub): what is looked for is a str, not Text"),
        ("log.startswith(('a', 1))", "startswith(prefix): a prefix is a str, not int"),
        ("log['a':]", "a place in a Text is an int, not str"),
    ],
)
def test_arguments_of_other_types_are_refused_in_words(shared: Session, code: str, says: str):
    host = Host(LOG)

    failed = host.run(shared, f"log = fd(1)\n{code}")

    assert isinstance(failed, Failed)
    assert says in failed.text
    assert [call.name for call in host.calls] == ["_fd"]


def test_a_coroutine_that_is_not_awaited_says_so(shared: Session):
    assert shared.feed("ask('q')") == Finished(
        "<coroutine object ask> (not run: write await before the call)"
    )


def test_a_long_value_is_cut():
    with Session() as session:
        ended = session.feed("'x' * 3_000_000")

    assert isinstance(ended, Finished)
    assert ended.value is not None
    assert len(ended.value) < 1_000_100
    assert ended.value.endswith("x... (3000002 characters in all)")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("f'{1 in x=} {len(x[:1])=}'", "1 in x=True len(x[:1])=1"),
        ("f'{\"one\" in log:>{8}}'", "       1"),
        ("f'{\"one\" in log=!r:>{8}}|{log[:3]=:>5}'", '"one" in log=    True|log[:3]=  one'),
        ("rf'{\"\\n\" in log = }'", '"\\n" in log = True'),
        ("f'''{[line for line\n in log][1]=}'''", "[line for line\n in log][1]='two\\n'"),
        ("f\"{f'{'é' in log=}' in log=}\"", "f'{'é' in log=}' in log=False"),
        ("f'{1:{8 in x}}{2 in x=:{3 in x=}}'", None),
    ],
)
def test_what_an_f_string_shows_of_its_code_is_as_it_was_written(
    shared: Session, code: str, shown: str | None
):
    ended = Host(LOG).run(shared, f"x = [1, 2]\nlog = fd(1)\n{code}")

    if shown is None:
        assert isinstance(ended, Failed)
        assert "_fdstore" not in ended.text
    else:
        assert ended == Finished(repr(shown))


TEXTS = ["", "\n", "one\ntwo\n", LOG, "a\r\nb\x0bc\u2028d", "aaaa", "\u00e9\U0001f600" * 9]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "code",
    [
        "len(t)",
        "'a' in t, 'ERROR' not in t, '' in t",
        "t.count('a'), t.count('aa'), t.count(''), t.count('\\n')",
        "t.find('b'), t.find(''), t.find('a', 1), t.find('a', -2), t.find('', 99), t.find('o', 0, 1)",
        "t.startswith('o'), t.startswith(('x', 'a')), t.startswith(''), t.startswith(())",
        "t.endswith('d'), t.endswith(('\\n', 'a')), t.endswith('')",
        "t[0:5], t[:], t[2:], t[:-1], t[-3:], t[::-1], t[1:9:2], t[5:2]",
        "t.splitlines(), t.splitlines(True), t.split('o'), t.split('a', 1)",
        "[line for line in t]",
        "[(n, line) for n, line in enumerate(t, 1)]",
        "sum(1 for line in t if 'o' in line)",
    ],
)
def test_a_text_answers_as_its_str_does(shared: Session, code: str, text: str):
    """Iterated, it has the lines of a file, each with its line feed."""
    as_lines = code.replace("in t]", "in io.StringIO(t, newline='\\n')]").replace("(t, 1)", "(lines(t), 1)")
    as_lines = as_lines.replace("in t if", "in lines(t) if")
    lines = lambda t: list(io.StringIO(t, newline="\n"))  # noqa: E731
    expected = eval(as_lines, {"t": text, "io": io, "lines": lines})

    ended = Host(text).run(shared, f"t = fd(1)\n{code}")

    assert ended == Finished(repr(expected))


@pytest.mark.parametrize("wanted", ["ab", "b" * 9, "a"])
def test_a_long_text_is_counted_and_searched_in_windows(wanted: str):
    text = ("x" * 199_995 + "ab" * 9) * 3 + "b" * 9 + "c"
    code = f"t = fd(1)\nt.count({wanted!r}), t.find({wanted!r}), t.find({wanted!r}, 200000), t.find('c')"
    with Session() as session:
        ended = Host(text).run(session, code)

    found = (text.count(wanted), text.find(wanted), text.find(wanted, 200_000), text.find("c"))
    assert ended == Finished(repr(found))


def test_what_a_program_calls_len_is_its_own_until_its_end(shared: Session):
    assert Host(LOG).run(shared, "len = lambda x: 7\nlen('ab')") == Finished("7")
    assert Host(LOG).run(shared, "len('ab'), len(fd(1))") == Finished("(2, 30)")
