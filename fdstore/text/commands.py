"""Parse pipelines as models write them, one command per text without a shell, and interpret exit codes.

    ["grep -n 'ERROR|WARN'", "sort", "uniq -c"]   ->   three stages, each an argv

Words are split by the quoting rules of POSIX (shlex). Shell syntax (`|`, `>`, `;`, `&`, `$(..)`, a second
line) has no meaning here and would become an argument of the wrong program, so it is refused, with advice. In
quotes it is plain text.

Exit codes are those of a shell: 128+n means that signal n ended the stage. Stages count from 1.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from fdstore.errors import InvalidArgument, UnknownProgram, quoted
from fdstore.model.records import Record

MAX_STAGES = 32
MAX_COMMAND_BYTES = 128 * 1024 - 1
"""The maximum length of a command: the longest argument that Linux accepts."""

SIGPIPE_CODE = 128 + 13
"""The exit code of a stage that was ended because its reader closed."""

LAST_SIGNAL = 64

_QUOTED = re.compile(r"""\\.|'[^']*+'|"[^"\\]*+(?:\\.[^"\\]*+)*\"""", re.DOTALL)
_PIPES = re.compile(rf"{_QUOTED.pattern}|\|+", re.DOTALL)
"""What is quoted, and the pipes outside of it."""

_IN_DOUBLE_QUOTES = re.compile(r"(?<!\\)(?:\\\\)*(\$\(|`)")
_SHELL = re.compile(r"&&|\|\||[0-9]*(?:>>|<<|>&|>|<)|[|;&`]|\$\(|\r?\n")

_ADVICE = {
    "|": "make each command an item of its own in the list; the items are the pipeline",
    ">": "output and errors are descriptors already; fd_to_file writes one to a file",
    "<": "give the input as in_fd",
    "$(": "nothing is substituted; put the text itself there",
    ";": "run one pipeline after the other",
}


class Command(Record, frozen=True, kw_only=True):
    """One stage of a pipeline: the program and its arguments, as passed to the system."""

    argv: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.argv[0]


def parse(lines: Sequence[str], allowed: Iterable[str]) -> tuple[Command, ...]:
    """Return the stages of a pipeline, in order.

    Raises `InvalidArgument`, which names the stage, for an invalid command, and `UnknownProgram` for a
    program that is not in `allowed`; a path is never allowed.

    >>> [command.argv for command in parse(["grep -c 'a b'", "wc -l"], ["grep", "wc"])]
    [('grep', '-c', 'a b'), ('wc', '-l')]
    """
    if isinstance(lines, str):
        raise InvalidArgument("commands", "must be a list with one command an item, not a text")
    if not lines:
        raise InvalidArgument("commands", "is empty; name at least one command")
    if len(lines) > MAX_STAGES:
        raise InvalidArgument("commands", f"has {len(lines)} stages; a pipeline has at most {MAX_STAGES}")
    programs = tuple(allowed)
    return tuple(_stage(number, line, programs) for number, line in enumerate(lines, start=1))


def stages_in(line: str) -> list[str]:
    """Return the commands of a pipeline that is written as in a shell. `parse` says what is wrong with them.

    >>> stages_in("grep -c 'a|b' | sort|uniq || x")
    ["grep -c 'a|b'", 'sort', 'uniq || x']
    """
    pipes = [hit for hit in _PIPES.finditer(line) if hit[0] == "|"]
    starts, ends = [0, *(hit.end() for hit in pipes)], [*(hit.start() for hit in pipes), len(line)]
    return [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def programs_in(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the programs that commands name, to allow all of them; `parse` says what is wrong with others.

    >>> programs_in(["grep -c 'a b'", "wc -l", "'"])
    ('grep', 'wc')
    """
    found = []
    for line in lines:
        with suppress(ValueError):  # quotes that do not end
            found += shlex.split(line)[:1]
    return tuple(found)


def name_problem(name: object) -> str:
    """Return why this cannot be the name of a program for commands; "" if it can.

    >>> name_problem("grep"), name_problem("/bin/grep")
    ('', 'is a path; name the program alone')
    """
    if not isinstance(name, str) or not name.isprintable() or name.split() != [name]:
        return "is not the name of a program; name it alone, without arguments"
    return "is a path; name the program alone" if "/" in name else ""


def check_tees(tees: Sequence[int], stages: int) -> tuple[int, ...]:
    """Return the numbers (from 1) of the stages whose output is kept too. Raises `InvalidArgument`."""
    for stage in tees:
        if isinstance(stage, bool) or not 1 <= stage <= stages:
            raise InvalidArgument("tee", f"stages are numbered 1 to {stages}")
    if len(set(tees)) != len(tees):
        raise InvalidArgument("tee", "each stage can be kept once")
    return tuple(tees)


def _stage(number: int, line: str, allowed: tuple[str, ...]) -> Command:
    stage = f"commands: stage {number}"
    if not isinstance(line, str):
        raise InvalidArgument(stage, "must be a text")
    if len(line) > MAX_COMMAND_BYTES or len(line.encode("utf-8", "surrogatepass")) > MAX_COMMAND_BYTES:
        problem = f"is longer than {MAX_COMMAND_BYTES} bytes; pass long text through a descriptor"
        raise InvalidArgument(stage, problem)
    if "\0" in line:
        raise InvalidArgument(stage, "holds a NUL character, which no argument can hold")
    if not line.isascii() and re.search("[\ud800-\udfff]", line):
        raise InvalidArgument(stage, "holds half of a surrogate pair, which is not text")
    try:
        argv = tuple(shlex.split(line, comments=False, posix=True))
    except ValueError as error:
        problem = f"cannot be split into words ({str(error).lower()}); quote as in a shell"
        raise InvalidArgument(stage, problem) from error
    _refuse_shell(stage, line.strip())
    if not argv or not argv[0]:
        raise InvalidArgument(stage, "is empty; name a program and its arguments")
    program = argv[0]
    if "/" in program or program not in allowed:
        raise UnknownProgram(program, allowed)
    return Command(argv=argv)


def _refuse_shell(stage: str, line: str) -> None:
    """Raise `InvalidArgument` for shell syntax; `line` has balanced quotes."""
    bare = _SHELL.search(_QUOTED.sub("_", line))
    found = bare[0] if bare else None
    if found is None:
        # a shell substitutes inside double quotes, too
        texts = (hit[0] for hit in _QUOTED.finditer(line) if hit[0].startswith('"'))
        found = next((hit[1] for text in texts if (hit := _IN_DOUBLE_QUOTES.search(text))), None)
    if found is None:
        return
    if found.isspace():
        raise InvalidArgument(stage, f"there is no shell: a command is one line; {_ADVICE['|']}")
    if ">" in found:
        kind = ">"
    elif "<" in found:
        kind = "<"
    else:
        kind = {"|": "|", "$(": "$(", "`": "$("}.get(found, ";")
    problem = f"there is no shell, so {quoted(found)} does nothing: {_ADVICE[kind]}"
    raise InvalidArgument(stage, f"{problem}. If the character itself is meant, put it in single quotes")


def pipeline_exit_code(codes: Sequence[int], *, is_unread: bool = False) -> int:
    """Return the exit code of a pipeline: that of the rightmost stage that failed, 0 if none did.

    141 means that the stage's reader closed. That is a success if the reader succeeded, as in
    `yes | head -n 1`. The last stage has no stage as its reader; `is_unread` says that all readers of its
    output closed.

    >>> pipeline_exit_code((141, 0)), pipeline_exit_code((1, 0)), pipeline_exit_code((0, 2, 0, 1))
    (0, 1, 1)
    >>> pipeline_exit_code((0, 141)), pipeline_exit_code((0, 141), is_unread=True)
    (141, 0)
    """
    return next(_failures(codes, is_unread), 0)


def fatal_signal(codes: Sequence[int], *, is_unread: bool = False) -> int | None:
    """Return the signal that killed a stage, the rightmost if several; None if there is none.

    141 does not count, except for the last stage unless its output `is_unread`: a reader that closed needed
    no more, and if it failed, its own exit code says so. A program that itself exits with 128+n counts as
    ended by signal n, as in a shell.

    >>> fatal_signal((137, 0)), fatal_signal((141, 0)), fatal_signal((1, 0))
    (9, None, None)
    """
    signals = (code - 128 for code in _failures(codes, is_unread) if 128 < code <= 128 + LAST_SIGNAL)
    return next(signals, None)


def _failures(codes: Sequence[int], is_unread: bool) -> Iterator[int]:
    """Yield the exit codes of the stages that failed, the rightmost first."""
    last = len(codes) - 1
    for position in range(last, -1, -1):
        has_closed_reader = codes[position] == SIGPIPE_CODE and (position < last or is_unread)
        if codes[position] and not has_closed_reader:
            yield codes[position]
