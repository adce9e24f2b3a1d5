"""A redis-cli for machines without one: the forms of its replies, and its prompt.

Only what people need to look at a store. As redis-cli does, replies are printed raw where standard output is
not a terminal, and commands are read from standard input where that is not one.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fdstore.errors import InvalidArgument
from fdstore.wire.raw_commands import RawConnection, StatusReply

_ESCAPES = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x07: "\\a", 0x08: "\\b"}
_STATUS = (b"OK", b"PONG", b"QUEUED")
"""Replies taken for the kind "status", which is not quoted: redis-py does not tell it from strings."""


def quote(value: bytes) -> str:
    r"""Quote a string as redis-cli does: what is not printable ASCII as an escape.

    >>> print(quote(b'a "b"\n\xc3\xa9'))
    "a \"b\"\n\xc3\xa9"
    """
    shown = (_ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}") for byte in value)
    return f'"{"".join(shown)}"'


def format_reply(reply: Any, indent: str = "") -> str:
    """Return a reply for a person.

    >>> print(format_reply([b"fds", 3, None, [b"a"]]))
    1) "fds"
    2) (integer) 3
    3) (nil)
    4) 1) "a"
    """
    match reply:
        case None:
            return "(nil)"
        case bytes():
            is_status = isinstance(reply, StatusReply) or reply in _STATUS
            return reply.decode() if is_status else quote(reply)
        case bool() | int():
            return f"(integer) {reply:d}"
        case list() if reply:
            width = len(str(len(reply)))
            within = indent + " " * (width + 2)
            lines = [f"{n:>{width}}) {format_reply(each, within)}" for n, each in enumerate(reply, 1)]
            return f"\n{indent}".join(lines)
        case list():
            return "(empty array)"
        case _:
            return f"(error) {reply}"


def raw_reply(reply: Any) -> bytes:
    """Return a reply for a program: strings as they are, one element a line."""
    match reply:
        case None:
            return b""
        case bytes():
            return reply
        case list():
            return b"\n".join(raw_reply(each) for each in reply)
        case _:
            return str(reply).encode()


def json_reply(reply: Any) -> str:
    """Return a reply as JSON; what is not UTF-8 in a string as backslash escapes.

    >>> json_reply({b"fds": 3})
    '{"fds": 3}'
    """

    def plain(value: Any) -> Any:
        match value:
            case bytes():
                return value.decode(errors="backslashreplace")
            case dict():
                return {str(plain(key)): plain(each) for key, each in value.items()}
            case list() | set() | frozenset():
                return [plain(each) for each in value]
            case None | bool() | int() | float():
                return value
            case _:
                return str(value)

    return json.dumps(plain(reply), ensure_ascii=False)


def split_command(line: str) -> list[str]:
    """Split a typed line into words. Raises `InvalidArgument` for an open quote."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InvalidArgument("the command", f"{str(error).lower()}; close the quote") from error


def prompt(
    connection: RawConnection, name: str, show: Callable[[Any], None], say: Callable[[str], None]
) -> None:
    """Read commands at a prompt and show their replies until `quit` or the end of input. Ctrl-C ends what a
    command still prints, or clears the line."""
    import readline  # noqa: F401 - gives `input` editing and a history

    while True:
        try:
            words = split_command(input(f"{name}> "))
            if words and words[0].lower() in ("quit", "exit"):
                return
            for reply in connection.send(words) if words else ():
                show(reply)
        except EOFError:
            return
        except KeyboardInterrupt:
            say("")
        except InvalidArgument as error:
            say(str(error))


def read_commands(lines: Iterable[str]) -> Iterator[list[str]]:
    """Split lines into commands, as they come. Raises `InvalidArgument` for an open quote."""
    return (words for line in lines if (words := split_command(line)))


def run(connection: RawConnection, commands: Iterable[Sequence[str]], show: Callable[[Any], None]) -> bool:
    """Send commands one after the other. Return False if the server answered one with an error."""
    good = True
    for words in commands:
        for reply in connection.send(words):
            show(reply)
            good = good and not isinstance(reply, Exception)
    return good
