"""Errors of programs in words that a model can act on.

    Traceback (most recent call last):
      line 7, in <module>
        total = count(log)
      line 3, in count
        return sorted(log)
    TypeError: a Text is iterated by `for line in text` alone; text.splitlines() is a list
    A Text is not a str: text() of it is one.

Lines are those of the program as the model wrote it; lines of the prelude are left out. What to do follows
for what the interpreter lacks and for what is often meant otherwise.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from fdstore.model.call_limits import CallLimits
from fdstore.programs.interpreter import prelude
from fdstore.programs.interpreter.code_tokens import tokens_of
from fdstore.programs.interpreter.events import Limit
from fdstore.text.similar_names import similar_names

MAX_MESSAGE = 4000
"""Characters of an exception's text; half from its start, half from its end."""

MAX_FRAMES = 20
"""Lines of a traceback; half from its start, half from its end."""

MAX_LINE = 200

MAX_OWN_NAMES = 50
"""The names of the code that are compared with an unknown one."""

NO_SYSTEM = (
    "programs have no files, no network and no environment: fd('fd:1') is a text, and create(text) makes a "
    "descriptor"
)

MODULES = (
    "asyncio, base64, binascii, bisect, collections, copy, csv, dataclasses, datetime, decimal, functools, "
    "hashlib, itertools, json, math, random, re, time, tomllib, typing, unicodedata"
)

_PARSER = "The monty syntax parser does not yet support "
_INTERNAL = "Internal error in monty: "
_ONE_ARGUMENT = "exceptions can only be called with zero or one string argument"
_STALLED = "asyncio scheduler stalled"


class FailedCode(msgspec.Struct, frozen=True):
    """The code that failed, and what is known of its session.

    feed       the number of the code among what was fed; own_feeds are ours
    functions  the user's functions
    """

    code: str
    feed: int
    own_feeds: Collection[int]
    functions: Iterable[str]


def unknown_function(name: str, args: tuple[Any, ...]) -> dict[str, str]:
    """Return the interpreter's answer to the call of a name that is not defined; `exit` ends the program."""
    if name in ("exit", "quit"):
        return {"exc_type": "SystemExit", "message": "" if args in ((), (None,)) else str(args[0])}
    return {"exc_type": "NameError", "message": f"name {name!r} is not defined"}


def limit_of(error: Exception) -> Limit | None:
    """Return the limit that the interpreter itself has enforced."""
    text = str(error)
    if re.match(r"TimeoutError: (feed|turn) time limit exceeded: ", text) or getattr(
        error, "timed_out", False
    ):
        return "seconds"
    if re.match(r"MemoryError: (memory limit exceeded: |the worker exceeded its memory limit)", text):
        return "memory"
    return None


def is_exit(error: Exception) -> bool:
    """Return whether the program has ended itself, with a status or without, as by `exit(1)`."""
    return hasattr(error, "display") and str(error).partition(": ")[0] == "SystemExit"


def is_crash(error: Exception) -> bool:
    """Return whether the interpreter process has ended, or the exchange with it is broken."""
    import pydantic_monty

    return not isinstance(error, pydantic_monty.MontyRuntimeError | pydantic_monty.MontySyntaxError)


def is_refused(error: Any) -> bool:
    """Return whether the code that was fed is not Python, so that none of it has run."""
    import pydantic_monty

    return isinstance(error, pydantic_monty.MontySyntaxError) and all(
        frame.function_name is None for frame in error.traceback()
    )


def host_repr(value: Any, most: int) -> str:
    """Return the repr of a value that code could not make itself."""
    try:
        return repr(value)[:most]
    except (ValueError, RecursionError) as error:
        return f"<{type(value).__name__}: {error}>"


def describe(error: Any, failed: FailedCode) -> tuple[bool, str]:
    """Return whether the program only ended itself, as by `exit()`, and the text of the failure."""
    kind, _, message = str(error).partition(": ")
    if not hasattr(error, "display"):
        kind, message = "RuntimeError", str(error)
    elif error.display("type-msg").startswith("SyntaxError"):
        kind, message = "SyntaxError", str(error)
    if kind == "SystemExit" and message in ("", "0", "None"):
        return True, ""
    kind, message, hints = _explain(kind, message, failed)
    lines = [
        *_traceback(error, failed),
        f"{kind}: {_cut(message, MAX_MESSAGE)}" if message else kind,
        *hints,
    ]
    return False, "\n".join(lines)


def describe_stop(limit: Limit, limits: CallLimits, failed: FailedCode, error: Exception | None) -> str:
    """Return the text for a program that was ended."""
    match limit:
        case "seconds":
            what = f"The program used more than {limits.seconds:g} s of processor time in one call."
            advice = "Do less in one call: search() and split() of a Text need none of it."
        case "memory":
            what = f"The program's variables took more than {limits.memory_bytes / 2**20:g} MiB."
            advice = "Work on parts of the text, from split(chars=...), and keep only what is needed of each."
        case "output":
            what = f"The program printed more than {limits.max_output} characters."
            advice = "Print less; create(text) keeps a long text."
        case "calls":
            what = (
                f"The program made more than {limits.calls} calls of fd, ask, a Text's methods and the like."
            )
            advice = "Read larger parts at once, or do the work in several calls."
        case "killed":
            what, advice = "The program was ended from outside.", ""
        case _:
            what = "The interpreter ended unexpectedly."
            advice = "Do the work in smaller steps, and what failed in another way."
    traceback = _traceback(error, failed) if error is not None else []
    return "\n".join([*traceback, f"{what} It was ended; variables are as before the call. {advice}".strip()])


def _traceback(error: Any, failed: FailedCode) -> list[str]:
    if not hasattr(error, "traceback"):
        return []
    own = {_file(feed) for feed in failed.own_feeds}
    frames = [frame for frame in error.traceback() if frame.filename not in own]
    if len(frames) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        shown = [
            *_frames(frames[:half], failed),
            f"  ... {len(frames) - MAX_FRAMES} more",
            *_frames(frames[-half:], failed),
        ]
    else:
        shown = _frames(frames, failed)
    return ["Traceback (most recent call last):", *shown] if shown else []


def _frames(frames: Iterable[Any], failed: FailedCode) -> list[str]:
    code = re.split(r"\r\n|[\r\n]", failed.code)
    lines = []
    for frame in frames:
        function = f", in {_cut(frame.function_name, MAX_LINE)}" if frame.function_name else ""
        if frame.filename == _file(failed.feed):
            lines.append(f"  line {frame.line}{function}")
            if 0 < frame.line <= len(code):
                lines.append(f"    {_cut(code[frame.line - 1].strip(), MAX_LINE)}")
        else:
            place = "of an eval or exec" if frame.filename == "<string>" else "of an earlier call"
            lines.append(f"  line {frame.line} {place}{function}")
    return lines


def _file(feed: int) -> str:
    return f"<python-input-{feed}>"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} ... {text[-most // 2 :]}"


def _explain(kind: str, message: str, failed: FailedCode) -> tuple[str, str, list[str]]:
    """Return type and text of the exception, in words of ours where they are the interpreter's, and hints."""
    if message.startswith((_PARSER, "Wildcard imports")):
        lacking = message.removeprefix(_PARSER)
        what = f"this interpreter has no {lacking}; nothing was run"
        return "SyntaxError", what, _hint(_SYNTAX, lacking)
    if message.startswith(_INTERNAL):
        kind, message = "RuntimeError", message.removeprefix(_INTERNAL)
    if message.startswith(_ONE_ARGUMENT):
        at = _lines_of_raise(failed.code)
        where = f" (see line {', '.join(map(str, at))})" if at else ""
        what = f"an exception takes one str here{where}"
        return "TypeError", what, ["For instance: raise ValueError(f'{x}')"]
    if message.startswith(_STALLED):
        what = "this awaits what was called in an earlier run_python, and it never comes"
        return "RuntimeError", what, ["Make the call where it is awaited: await ask(...)."]
    if found := re.match(r"name '(\w+)' is not defined", message):
        return kind, message, _unknown_name(found[1], failed)
    if found := re.match(r"No module named '([\w.]+)'|cannot import name '\w+' from '([\w.]+)'", message):
        return kind, message.removesuffix(" (unknown location)"), _unknown_module(found[1] or found[2])
    if found := re.match(r"module '(\w+)' has no attribute '(\w+)'", message):
        return kind, message, _hint(_ATTRIBUTES, f"{found[1]}.{found[2]}")
    if found := re.match(r"'(Text|Hit|Spawned|Piped)' object has no attribute '(\w+)'", message):
        return kind, message, _unknown_attribute(found[1], found[2])
    if found := re.match(r"'(dict|list|set|str|tuple)' object has no attribute '(\w+)'", message):
        return kind, message, _uncalled_method(found[1], found[2])
    return kind, message, _hint(_MESSAGES, f"{kind}: {message}")


def _uncalled_method(kind: str, name: str) -> list[str]:
    """Return what to write for a method that was passed on, as in `max(totals, key=totals.get)`."""
    if not hasattr(_BUILT_IN[kind], name):
        return []
    return [f"A method can be called here and not passed on: write lambda x: value.{name}(x)."]


_BUILT_IN = {each.__name__: each for each in (dict, list, set, str, tuple)}


def _hint(table: dict[str, str], text: str) -> list[str]:
    return [hint for pattern, hint in table.items() if re.match(pattern, text)][:1]


_SYNTAX = {
    "yield": "Collect the values in a list and return it.",
    "the 'del' statement": "Assign None to a variable; d.pop(key) removes an item, x[1:3] = [] a slice.",
    "class inheritance": (
        "Write the class without bases, and raise ValueError('...') for an exception of your own."
    ),
    "method decorators": "Write an ordinary method, or a function outside of the class.",
    "async context managers": (
        "Leave semaphores, locks and time-outs out: give the coroutines to asyncio.gather; how many run "
        "together is bounded for you."
    ),
    "async (for|comp)": "Use: for x in await asyncio.gather(*coroutines).",
    "exception groups": "Use except, with asyncio.gather(..., return_exceptions=True).",
    "type aliases": "Assign the type: X = int.",
    "Wildcard": "Import the names one by one.",
}

_PARALLEL = "Give the coroutines to asyncio.gather(*coroutines), which returns their results in order."
_UNBOUNDED = "Leave it out: give all coroutines to asyncio.gather; how many run together is bounded for you."
_NO_TIMEOUT = (
    "Await the call, which ends by itself; asyncio.gather(..., return_exceptions=True) keeps errors apart."
)
_NO_LOOP = "Use await at the top level, or asyncio.run(main())."

_ATTRIBUTES = {
    r"asyncio\.(create_task|ensure_future|TaskGroup|as_completed|Task)$": _PARALLEL,
    r"asyncio\.(Bounded)?(Semaphore|Lock|Queue|Event|Condition|to_thread)$": _UNBOUNDED,
    r"asyncio\.(wait_for|wait|timeout|shield)$": _NO_TIMEOUT,
    r"asyncio\.(\w*loop|Future)$": _NO_LOOP,
    r"asyncio\.": "asyncio has gather, run and sleep here.",
    r"re\.subn$": "Use re.sub and count with re.findall.",
    r"re\.(X|VERBOSE)$": "Write the pattern without spaces and comments.",
    r"collections\.OrderedDict$": "A dict keeps its order.",
    r"os\.": NO_SYSTEM[0].upper() + NO_SYSTEM[1:] + ".",
}

_MODULE_HINTS = {
    "fdstore": "fd, fds, create, ask, spawn and pipe are there without an import.",
    "statistics": "sum(x) / len(x) is the mean, sorted(x)[len(x) // 2] the median.",
    "string": "Write the characters out, as 'abcdefghijklmnopqrstuvwxyz'.",
    "textwrap": "Use split, join and slices of str.",
    "heapq": "Use sorted(x, key=...)[:n], or bisect.insort.",
    "operator": "Use a lambda.",
    "enum": "Use constants.",
    "io": "Split a str with splitlines(); csv.reader takes a list of lines.",
    "concurrent": _PARALLEL,
    "threading": _PARALLEL,
    "multiprocessing": _PARALLEL,
    "logging": "Use print.",
    "pprint": "Use print(json.dumps(x, indent=1)).",
    "contextlib": "Use try and except.",
    "traceback": "Use print(repr(error)).",
}

_NAMES = {
    r"(read_fd|read_file)$": "Use fd('fd:1').page(1), .lines(1, 100), .chars(1, 500) or .text().",
    r"(search_fd|grep)$": "Use fd('fd:1').search(pattern).",
    r"list_fds$": "Use fds().",
    r"(put_fd|create_fd|write_fd)$": "Use create(text).",
    r"(exit|quit)$": "Write exit(), which ends the program.",
    r"(input|help|breakpoint)$": "Programs run without a user.",
    r"(globals|vars|dir)$": "Use locals() at the top level, or the attributes by name.",
    r"callable$": "Call it in try and except TypeError.",
    r"issubclass$": "Compare types, or use isinstance.",
    r"super$": "Classes have no bases here.",
    r"(staticmethod|classmethod)$": "Write a function outside of the class.",
    r"(bytearray|memoryview)$": "Use bytes, or a list of int.",
    r"(ascii)$": "Use repr.",
    r"(compile|__import__)$": "Write the code itself.",
    r"(IOError|EnvironmentError|ConnectionError)$": "Use OSError.",
    r"(ExceptionGroup|UnicodeError|EOFError|GeneratorExit|\w*Warning)$": "Use ValueError or Exception.",
}

_TEXT_ATTRIBUTES = (
    "total_chars, total_lines, total_pages, source, kind, state, fd, ref, page(n), line(n), "
    "lines(first, last), chars(first, last), text(), search(pattern), split(chars=n), "
    "count, find, startswith, endswith, splitlines, split(sep)"
)
_RECORDS = {
    "Hit": "A Hit has line, text, chars, groups, and the lists before and after of search(..., context=n).",
    "Spawned": "The result of spawn has answer, fd, state and exit_code.",
    "Piped": "The result of pipe has fd and exit_code; fd.text() is the output.",
}

_MESSAGES = {
    "(TypeError|AttributeError): .*'coroutine'": (
        "Write await before the call, or give the coroutines to asyncio.gather."
    ),
    "TypeError: '(str|list|Text|NoneType)' object can't be awaited": (
        "Only ask, spawn, pipe and the program's functions are awaited, not fd, create and a Text's methods."
    ),
    "TypeError: .*type Text is not JSON": "A Text is not a str: text() of it is one, and ref names it.",
    r"TypeError: (a Text is |.*(['\"]Text['\"]|(not|from|type) Text\b(?!;)|Text found))": (
        "A Text is not a str: text() of it is one."
    ),
    r"TypeError: callable replacement is not yet supported in re\.sub": (
        "Loop over re.finditer and join the parts between the matches' start() and end()."
    ),
    r"NotImplementedError: gather\(\)": "Use try and except in a function of your own that awaits one call.",
    r"re\.PatternError: .*backtracking": "Write the pattern without references back and nested repeats.",
    "SyntaxError: Source is too deeply nested": "Build the value in a loop.",
    "ValueError: Exceeds the limit": "Use hex(x), or the number's logarithm.",
}


def _unknown_name(name: str, failed: FailedCode) -> list[str]:
    if hint := _hint(_NAMES, name):
        return hint
    known = {*prelude.NAMES, *(function.partition(".")[0] for function in failed.functions)}
    own = list(dict.fromkeys(_names_in(failed.code)))[:MAX_OWN_NAMES]
    others = dict.fromkeys(each for each in [*own, *known, *dir(builtins)] if each != name)
    if close := similar_names(name, others):
        return [f"Similar names: {', '.join(close)}."]
    return [f"There are: {', '.join(sorted(known))}."]


def _names_in(code: str) -> list[str]:
    """Return the names that code gives a meaning, as far as its tokens tell."""
    tokens = tokens_of(code)
    if tokens is None:
        return []
    before = ["", *tokens.texts]
    after = [*tokens.texts[1:], ""]
    return [
        name
        for name, last, following in zip(tokens.texts, before, after, strict=False)
        if (last in ("def", "class", "import", "as", "for") or following in ("=", ":=", "in"))
        and name.isidentifier()
    ]


def _unknown_module(name: str) -> list[str]:
    root = name.partition(".")[0]
    return [*([_MODULE_HINTS[root]] if root in _MODULE_HINTS else []), f"The modules here are {MODULES}."]


def _unknown_attribute(kind: str, name: str) -> list[str]:
    if kind != "Text":
        return [_RECORDS[kind]]
    if hasattr(str, name):
        return [f"A Text is not a str: use text().{name}(...). It has {_TEXT_ATTRIBUTES}."]
    return [f"A Text has {_TEXT_ATTRIBUTES}."]


def _lines_of_raise(code: str) -> list[int]:
    """Return where exceptions are made of something else than one str."""
    tokens = tokens_of(code)
    lines: list[int] = []
    for begin, end in tokens.statements() if tokens else ():
        assert tokens is not None
        if tokens.texts[begin] != "raise" or tokens.text(begin + 2) != "(":
            continue
        closing = tokens.closed_by[begin + 2]
        if begin + 3 < closing < end and not all(map(_is_str, tokens.level(begin + 3, closing))):
            lines.append(tokens.line(begin))
    return sorted(set(lines))[:5]


def _is_str(token: str) -> bool:
    """Return whether a token is one of a str, or begins an f-string."""
    return token[-1] in "'\"" and "b" not in token.partition(token[-1])[0].lower()
