"""The names that programs see, in the interpreter's own Python.

    fd fds create ask spawn pipe sql Text Hit  and the user's functions
    len                                        of a Text, too
    print asyncio                              as they are without a program's assignment
    _fdstore_...                               what the host adds to code, and the host's functions

The source is one function, so that its names are closures: a program that assigns `str`, `list` or `Text`
changes nothing here. What it assigns to the names above holds until its end:
`RESTORE` gives them their meaning again at the begin of each call, in a tenth of a millisecond. Methods of a
`Text` call the host and wait; `ask`, `spawn`, `pipe`, `sql` and the user's functions are coroutines, since a
host call that is awaited in a later call of the same session would never return.

Arguments are checked here, because the interpreter passes functions and other objects to the host as text.
"""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Sequence

HOST = "_fdstore_"
"""Names of host functions begin with it; the rest, with one underscore, is the name of the `HostCall`."""

NAMES = ("fd", "fds", "create", "ask", "spawn", "pipe", "sql", "Text", "Hit")
"""The names of every program, beside the user's functions, `print` and `asyncio`."""

HOST_FUNCTIONS = ("fd", "fds", "read", "search", "split", "create", "ask", "spawn", "pipe", "sql", "tool")
"""The functions of the host, without `HOST`."""

SOURCE = r"""
def _fdstore_prelude(
    isinstance=isinstance, type=type, repr=repr, len_=len, max=max, min=min, range=range,
    str=str, int=int, bool=bool, float=float, list=list, tuple=tuple, dict=dict, set=set,
    TypeError=TypeError, ValueError=ValueError, Exception=Exception, AttributeError=AttributeError,
    setattr=setattr, print_=print,
    host_fd=_fdstore_fd, host_fds=_fdstore_fds, host_read=_fdstore_read, host_search=_fdstore_search,
    host_split=_fdstore_split, host_create=_fdstore_create, host_ask=_fdstore_ask, host_spawn=_fdstore_spawn,
    host_pipe=_fdstore_pipe, host_sql=_fdstore_sql, host_tool=_fdstore_tool,
):
    import asyncio as asyncio_

    WINDOW = 200000

    def kind(value):
        if value is None:
            return "None"
        return type(value).__name__

    def whole(what, value):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(what + " is an int, not " + kind(value))
        return value

    def position(what, value):
        if whole(what, value) < 1:
            raise ValueError(what + " is from 1 on, not " + str(value))
        return value

    def words(what, value):
        if not isinstance(value, str):
            hint = ""
            if isinstance(value, Text):
                hint = "; pass its text(), or the Text where texts are taken"
            raise TypeError(what + " is a str, not " + kind(value) + hint)
        return value

    def reference(what, value):
        if isinstance(value, Text):
            return value.ref
        if isinstance(value, str):
            for start in ("fd:", "name:", "ref:"):
                if value.startswith(start):
                    return value
            raise ValueError(
                what + " takes a Text or a reference like 'fd:1', not " + repr(value[:80])
                + "; create(text) makes a Text of a str"
            )
        raise TypeError(what + " takes a Text or a reference like 'fd:1', not " + kind(value))

    class Hit:
        def __init__(self, facts):
            self.line = facts["line"]
            self.text = facts["text"]
            self.chars = facts["chars"]
            self.groups = facts["groups"]
            self.before = facts["before"]
            self.after = facts["after"]

        def __repr__(self):
            text = self.text
            if len_(text) > 200:
                text = text[:200] + "..."
            return f"Hit(line={self.line!r}, text={text!r}, groups={self.groups!r})"

    class Text:
        def __init__(self, facts):
            if not isinstance(facts, dict):
                raise TypeError("Text(...) is not called: fd('fd:1') returns one, create(text) makes one")
            self.ref = facts["ref"]
            self.fd = facts["fd"]
            self.total_chars = facts["total_chars"]
            self.total_lines = facts["total_lines"]
            self.total_pages = facts["total_pages"]
            self.source = facts["source"]
            self.kind = facts["kind"]
            self.state = facts["state"]

        def page(self, number):
            position("page(number): the number", number)
            return host_read(self.ref, "pages", number, number)

        def line(self, number):
            position("line(number): the number", number)
            return host_read(self.ref, "lines", number, number)

        def lines(self, first, last=None):
            position("lines(first, last): first", first)
            if last is None:
                last = first
            return host_read(self.ref, "lines", first, position("lines(first, last): last", last))

        def chars(self, first, last=None):
            position("chars(first, last): first", first)
            if last is None:
                last = first
            return host_read(self.ref, "chars", first, position("chars(first, last): last", last))

        def text(self):
            return host_read(self.ref, "all", None, None)

        def splitlines(self, keepends=False):
            return all_of(self).splitlines(keepends)

        def startswith(self, prefix):
            longest = longest_of("startswith(prefix): a prefix", prefix)
            return window(self, 0, longest).startswith(prefix)

        def endswith(self, suffix):
            longest = longest_of("endswith(suffix): a suffix", suffix)
            return window(self, max(0, size(self) - longest), size(self)).endswith(suffix)

        def find(self, sub, start=0, end=None):
            words("find(sub): what is looked for", sub)
            begin, until = within(self, start, end)
            if whole("find(sub, start): the start", start) > size(self):
                return -1
            while begin <= until - len_(sub):
                found = window(self, begin, min(until, begin + WINDOW + len_(sub))).find(sub)
                if found >= 0:
                    return begin + found
                begin += WINDOW + 1
            return -1

        def count(self, sub):
            words("count(sub): what is counted", sub)
            if sub == "":
                return size(self) + 1
            number, left = 0, ""
            for begin in range(0, size(self), WINDOW):
                parts = (left + window(self, begin, begin + WINDOW)).split(sub)
                number += len_(parts) - 1
                left = parts[-1][max(0, len_(parts[-1]) - len_(sub) + 1):]
            return number

        def search(self, pattern, max_matches=1000, ignore_case=False, context=0):
            words("search(pattern): the pattern", pattern)
            whole("search(..., max_matches=): the number", max_matches)
            whole("search(..., context=): the number of lines", context)
            found = host_search(self.ref, pattern, max_matches, bool(ignore_case), context)
            return [Hit(facts) for facts in found]

        def split(self, *positional, chars=None, lines=None, pages=None):
            if 0 < len_(positional) < 3 and isinstance(positional[0], str):
                return all_of(self).split(*positional)
            given = (("chars", chars), ("lines", lines), ("pages", pages))
            sizes = [(unit, size) for unit, size in given if size is not None]
            if positional or len_(sizes) != 1:
                raise TypeError("Text.split takes one of chars=, lines= or pages=, the size of a part")
            unit, size = sizes[0]
            position("split(" + unit + "=): the size", size)
            return [Text(facts) for facts in host_split(self.ref, unit, size)]

        def __repr__(self):
            chars = "" if self.total_chars is None else f", {self.total_chars} chars"
            lines = "" if self.total_lines is None else f", {self.total_lines} lines"
            return f'Text("{self.ref}"{chars}{lines})'

        def __iter__(self):
            raise TypeError("a Text is iterated by `for line in text` alone; text.splitlines() is a list")

        def __getitem__(self, key):
            raise TypeError(
                "a Text is not indexed, but text[0:500] is a str, "
                "as are line(5), lines(1, 9), chars(1, 500), from 1 on"
            )

        def __contains__(self, item):
            raise TypeError("a Text is searched by `in` alone, or by search(pattern)")

    def size(text):
        if text.total_chars is None:
            all_of(text)
        return text.total_chars

    def window(text, begin, end):
        parts, end = [], min(end, size(text))
        while begin < end:
            parts.append(host_read(text.ref, "window", begin + 1, end))
            begin += len_(parts[-1])
        return "".join(parts)

    def within(text, start, end):
        places = []
        for place, nothing in ((start, 0), (end, size(text))):
            if place is None:
                place = nothing
            if whole("a place in a Text", place) < 0:
                place += size(text)
            places.append(min(max(0, place), size(text)))
        return places

    def all_of(text, loop="for part in text.split(lines=10000): ..."):
        try:
            return host_read(text.ref, "all", None, None)
        except ValueError as error:
            if str(error).startswith("too_large"):
                raise ValueError(str(error).partition(";")[0] + "; take it in parts: " + loop)
            raise

    def longest_of(what, given):
        given = given if isinstance(given, tuple) else (given,)
        return max([0] + [len_(words(what, each)) for each in given])

    def lines_of(value):
        if not isinstance(value, Text):
            return value
        loop = "for part in text.split(lines=10000): for line in part: ..."
        lines = all_of(value, loop).split("\n")
        last = lines.pop()
        lines = [line + "\n" for line in lines]
        if last:
            lines.append(last)
        return lines

    def whole_of(value):
        if isinstance(value, Text):
            return all_of(value, "text.find(x) >= 0 does so, and text.search(pattern)")
        return value

    def cut(value, start, end, step):
        if not isinstance(value, Text):
            return value[start:end:step]
        if step is None or step == 1:
            begin, until = within(value, start, end)
            return host_read(value.ref, "chars", begin + 1, until) if begin < until else ""
        return all_of(value)[start:end:step]

    def length_of(value):
        return size(value) if isinstance(value, Text) else len_(value)

    class Spawned:
        def __init__(self, facts):
            self.answer = facts["answer"]
            self.fd = text_of(facts)
            self.state = facts["state"]
            self.exit_code = facts["exit_code"]

        def __repr__(self):
            answer = self.answer
            if isinstance(answer, str) and len_(answer) > 200:
                answer = answer[:200] + "..."
            outcome = f"state={self.state!r}, exit_code={self.exit_code!r}"
            return f"Spawned(answer={answer!r}, fd={self.fd!r}, {outcome})"

    class Piped:
        def __init__(self, facts):
            self.fd = text_of(facts)
            self.exit_code = facts["exit_code"]

        def __repr__(self):
            return f"Piped(fd={self.fd!r}, exit_code={self.exit_code!r})"

    def text_of(facts):
        ref = facts["ref"]
        if ref is None:
            return None
        return Text(ref if isinstance(ref, dict) else host_fd(ref))

    def fd(reference_or_number):
        ref = reference_or_number
        if isinstance(ref, Text):
            return ref
        if isinstance(ref, bool) or not isinstance(ref, (int, str)):
            raise TypeError("fd() takes a number or a reference like 'fd:1' or 'name:KEY', not " + kind(ref))
        return Text(host_fd(ref))

    def fds():
        return [Text(facts) for facts in host_fds()]

    def create(text, name=None):
        words("create(text): the text", text)
        if name is not None:
            words("create(..., name=): the name", name)
        return Text(host_create(text, name))

    def flat(values):
        for value in values:
            if isinstance(value, (list, tuple)):
                return [x for v in values for x in (flat(v) if isinstance(v, (list, tuple)) else [v])]
        return values

    def part(value):
        if isinstance(value, Text):
            return {"ref": value.ref}
        if isinstance(value, str):
            return value
        raise TypeError("ask(question, *texts): a text is a Text or a str, not " + kind(value))

    async def ask(question, *texts):
        if isinstance(question, Text):
            raise TypeError("ask(question, *texts): the question comes first and is a str")
        words("ask(question, *texts): the question", question)
        return await host_ask(question, [part(value) for value in flat(texts)])

    async def spawn(program, query, *texts):
        words("spawn(program, query, *texts): the program's name", program)
        words("spawn(program, query, *texts): the query", query)
        refs = [reference("spawn(program, query, *texts)", value) for value in flat(texts)]
        return Spawned(await host_spawn(program, query, refs))

    async def pipe(commands, text=None):
        form = "pipe(commands, text): commands is a list of lists of str, as [['sort'], ['uniq', '-c']]"
        if not isinstance(commands, (list, tuple)) or not commands:
            raise TypeError(form + "; there is no shell")
        checked = []
        for command in commands:
            if not isinstance(command, (list, tuple)) or not command:
                raise TypeError(form + "; there is no shell")
            for word in command:
                if not isinstance(word, str):
                    raise TypeError(form + "; a word is a " + kind(word))
            checked.append(list(command))
        ref = None
        if text is not None:
            ref = reference("pipe(commands, text)", text)
        return Piped(await host_pipe(checked, ref))

    async def sql(query, *positional, **texts):
        if positional or not texts:
            raise TypeError("sql(query, a=text): texts are given by the names of their tables")
        words("sql(query, a=text): the query", query)
        refs = {name: reference("sql(query, a=text)", value) for name, value in texts.items()}
        found = host_sql(query, refs)
        if isinstance(found, dict):
            return Text(found)
        return found

    def ref_of(text):
        return text.ref

    def content_of(text):
        return "{{" + text.ref + "}}"

    def plain(what, value, of_text, depth=0):
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            if -9223372036854775808 <= value <= 18446744073709551615:
                return value
            raise ValueError(what + " takes ints of 64 bits; pass a larger one as str")
        if isinstance(value, float):
            if value != value or value - value != 0:
                raise ValueError(what + " does not take " + repr(value) + "; pass None or a str")
            return value
        if isinstance(value, Text):
            return of_text(value)
        if depth == 50:
            raise ValueError(what + " takes no values nested more than 50 deep")
        if isinstance(value, (list, tuple)):
            return [plain(what, item, of_text, depth + 1) for item in value]
        if isinstance(value, dict):
            copied = {}
            for key, item in value.items():
                if not isinstance(key, str):
                    raise TypeError(what + " takes dicts with keys that are str, not " + kind(key))
                copied[key] = plain(what, item, of_text, depth + 1)
            return copied
        raise TypeError(what + " takes None, bool, int, float, str, list, dict and Text, not " + kind(value))

    def function(name):
        what = name + "()"
        of_text = content_of if "." in name else ref_of

        async def tool(*args, **kwargs):
            answer = await host_tool(name, plain(what, args, of_text), plain(what, kwargs, of_text))
            if "fd" in answer:
                return Text(answer["fd"])
            return answer["value"]

        return tool

    def gone(name):
        def removed(*args, **kwargs):
            raise ValueError("the function " + name + " is not there any more")

        return removed

    class Namespace:
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return "<functions of " + self.name + ">"

    def namespace(name, names):
        made = Namespace(name)
        for attribute in names:
            setattr(made, attribute, function(name + "." + attribute))
        return made

    def settled(return_exceptions, *awaitables):
        async def settle(awaitable):
            try:
                return await awaitable
            except Exception as error:
                return error

        return [settle(a) for a in awaitables] if return_exceptions else awaitables

    def shown(value, limit):
        if value is None:
            return None
        text = repr(value)
        if len_(text) > limit:
            return text[:limit] + "... (" + str(len_(text)) + " characters in all)"
        if text.startswith("<coroutine object "):
            text += " (not run: write await before the call)"
        return text

    def length(value, depth=0):
        if isinstance(value, (str, tuple, list, dict, set)) or type(value).__name__ in ("bytes", "frozenset"):
            size = 50 + len_(value)
            if isinstance(value, str) or type(value).__name__ == "bytes" or depth == 3 or not value:
                return size
            items = [*(value.values() if isinstance(value, dict) else value)]
            step = 1 + len_(items) // 100
            sample = [length(item, depth + 1) for item in items[::step]]
            return size + len_(items) * sum(sample) // len_(sample)
        return 50

    def largest(variables, count):
        given = (
            "fd", "fds", "create", "ask", "spawn", "pipe", "sql", "Text", "Hit", "len", "print", "asyncio",
        )
        sizes = [
            (length(v), name)
            for name, v in variables.items()
            if name not in given and not name.startswith("_fdstore_")
        ]
        sizes.sort(reverse=True)
        return [[name, size] for size, name in sizes[:count]]

    names = (fd, fds, create, ask, spawn, pipe, sql, Text, Hit, length_of, print_, asyncio_)
    inner = (gone, settled, shown, largest, lines_of, whole_of, cut)
    outer = (
        host_fd, host_fds, host_read, host_search, host_split, host_create, host_ask, host_spawn, host_pipe,
        host_sql, host_tool,
    )
    own = []

    def restore(version, define=None):
        global fd, fds, create, ask, spawn, pipe, sql, Text, Hit, len, print, asyncio
        global _fdstore_gone, _fdstore_settled, _fdstore_shown, _fdstore_largest, _fdstore_restore
        global _fdstore_lines, _fdstore_whole, _fdstore_cut
        global _fdstore_fd, _fdstore_fds, _fdstore_read, _fdstore_search, _fdstore_split
        global _fdstore_create, _fdstore_ask, _fdstore_spawn, _fdstore_pipe, _fdstore_sql, _fdstore_tool

        (fd, fds, create, ask, spawn, pipe, sql, Text, Hit, len, print, asyncio) = names
        (
            _fdstore_gone, _fdstore_settled, _fdstore_shown, _fdstore_largest,
            _fdstore_lines, _fdstore_whole, _fdstore_cut,
        ) = inner
        (
            _fdstore_fd, _fdstore_fds, _fdstore_read, _fdstore_search, _fdstore_split,
            _fdstore_create, _fdstore_ask, _fdstore_spawn, _fdstore_pipe, _fdstore_sql, _fdstore_tool,
        ) = outer
        _fdstore_restore = restore
        if define is not None:
            own[:] = [define]
        for each in own:
            each(function, namespace)
        return version

    return restore


_fdstore_restore = _fdstore_prelude()
"""

VERSION = hashlib.sha256(SOURCE.encode()).hexdigest()[:16]

RESTORE = f"{HOST}restore({VERSION!r})"
"""The code that gives all names their meaning again. Its value is `VERSION`, unless a program has replaced
the function itself."""


def check_functions(functions: Sequence[str]) -> None:
    """Raise `ValueError` for a name that is none of Python's, or one of the prelude's.

    >>> check_functions(["read_log", "github.list_issues"])
    >>> check_functions(["ask"])
    Traceback (most recent call last):
    ValueError: 'ask' cannot be the name of a function of a program
    """
    for name in functions:
        parts = name.split(".")
        valid = len(parts) <= 2 and all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
        if not valid or parts[0] in NAMES or parts[0].startswith(HOST):
            raise ValueError(f"{name!r} cannot be the name of a function of a program")


def define(functions: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return the code that defines functions of the user, and that ends those of `before` that are gone. Its
    value is that of `RESTORE`.

    A name with a dot is a function of an object, so that the tools of a server have its name in common.

    >>> print(define(["docs.find", "read_log"], before=["old"]))  # doctest: +ELLIPSIS
    def _fdstore_define(function, namespace):
        global docs, read_log
        docs = namespace('docs', ['find'])
        read_log = function('read_log')
    old = _fdstore_gone('old')
    _fdstore_restore('...', _fdstore_define)
    """
    roots = sorted({name.partition(".")[0] for name in functions})
    lines = [f"def {HOST}define(function, namespace):"]
    lines.append(f"    global {', '.join(roots)}" if roots else "    pass")
    for root in roots:
        attributes = sorted(name.partition(".")[2] for name in functions if name.startswith(f"{root}."))
        made = f"namespace({root!r}, {attributes!r})" if attributes else f"function({root!r})"
        lines.append(f"    {root} = {made}")
    for root in sorted({name.partition(".")[0] for name in before}.difference(roots)):
        lines.append(f"{root} = {HOST}gone({root!r})")
    lines.append(f"{HOST}restore({VERSION!r}, {HOST}define)")
    return "\n".join(lines)
