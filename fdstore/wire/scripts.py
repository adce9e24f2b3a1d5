"""The Lua scripts: one file for each atomic operation, called by their SHA, understood by one function.

Rules live in Python; Lua does what must be atomic and checks everything before its first write. A
script answers `ok` and facts, or the type of an error and its facts; `outcome` turns the latter
into the typed error.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from fdstore.text.index import GROUP_PAGES
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Batch, Command, Value

READS = frozenset(
    {
        *("EXISTS", "GET", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSTRLEN", "INFO"),
        *("LLEN", "LRANGE", "PING", "SCARD", "SMEMBERS", "STRLEN", "TIME", "TYPE", "XRANGE", "XREAD"),
        *("ZCARD", "ZRANGE", "ZRANGEBYSCORE", "ZSCORE"),
    }
)
"""Commands whose lost reply leaves nothing in doubt."""

CONSTANTS = f"local GROUP_PAGES = {GROUP_PAGES}\n\nlocal MAX_INTEGER = {MAX_INTEGER}"
"""What the scripts share with Python, for those that use it."""

_READING_SCRIPTS = frozenset({"look"})
_by_sha: dict[Value, Script] = {}


class Script(msgspec.Struct, frozen=True):
    """One script: `script("close")(keys, *args)` is the command that runs it."""

    name: str
    source: str
    sha: str

    def __call__(self, keys: tuple[str, ...], *args: Value) -> Command:
        return ("EVALSHA", self.sha, len(keys), *keys, *args)


@cache
def script(name: str) -> Script:
    """The script in `lua/<name>.lua`, with what it needs of `lua/common.lua` put before it, or where it
    says so: Redis makes those functions anew for each call."""
    folder = resources.files("fdstore.store") / "lua"
    shared, own = ((folder / f"{file}.lua").read_text("utf-8") for file in ("common", name))
    first, _, rest = own.rpartition("-- common.lua\n")
    source = first + with_shared(f"{CONSTANTS}\n\n{shared}", rest)
    made = Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
    _by_sha[made.sha] = made
    return made


def with_shared(shared: str, own: str) -> str:
    """A source after those paragraphs of `shared` whose names are used in it, or in one of them.

    >>> with_shared("local A = 1\\n\\nlocal B = A\\n\\nlocal C = 3", "return B")
    'local A = 1\\n\\nlocal B = A\\n\\nreturn B'
    """
    source = own
    for part in reversed(shared.split("\n\n")):
        names = re.findall(r"^local (?:function )?(\w+)", part, re.MULTILINE)
        if any(re.search(rf"\b{name}\b", source) for name in names):
            source = f"{part}\n\n{source}"
    return source


LENT_S = 1
"""After how long a key goes that a transaction did not put away. Inside of one, time stands still."""


def as_eval(command: Command) -> Command:
    """The same call with the script's text, for a server that does not know its SHA yet."""
    return ("EVAL", _by_sha[command[1]].source, *command[2:]) if command[0] == "EVALSHA" else command


def hset_if_accepted(decide: Command, tell: Command, key: str, lent: str, fields: list[Value]) -> Batch:
    """Two calls of a script that store these fields in the hash `key` if the first one decides so. They do
    not pass through Lua, which takes four times as long as storing them.

    Meanwhile the hash waits under `lent`, and under its own name there is a string, which takes no fields;
    the first call puts it back, the second one says what it holds now. So whatever keeps the script from that
    keeps the fields away too, also that the server does not know it, and the last RENAME puts the hash back.
    Nobody ever sees it gone: it is back when the transaction is over. Nor does a torn log keep it away
    (lua/common.lua says what that is): it is back before the fields come, which are most of the log.
    """
    return [
        ("MULTI",),
        ("RENAMENX", key, lent),
        ("SET", key, "", "EX", LENT_S, "NX"),
        decide,
        ("HSET", key, *fields),
        tell,
        ("RENAME", lent, key),
        ("EXEC",),
    ]


def decision_in(reply: list[Any]) -> list[Any]:
    """What the script answered that was lent a key: one reply of the transaction's, or the only one if it was
    done at once."""
    return next((part for part in reply if isinstance(part, list)), reply)


def as_one_script(commands: Batch) -> Command:
    """What a transaction of these commands does as one, with one reply that can be lost in place of many.
    They take one key each, and may come in parts; or a script is lent a key, and then takes the fields
    itself, after its own arguments."""
    if commands[0][0] == "RENAMENX":
        *_, (_, _, *fields), tell, _ = commands
        return as_eval((*tell, *fields))
    arguments = [part for name, _, *more in commands for part in (name, len(more), *more)]
    return as_eval(script("at_once")(tuple(str(command[1]) for command in commands), *arguments))


def name_of(command: Command) -> str:
    """What a command does, in a word."""
    known = _by_sha.get(command[1]) if command[0] == "EVALSHA" else None
    return known.name if known else str(command[0])


def only_reads(command: Command) -> bool:
    """Whether the command changes nothing."""
    return command[0] in READS or name_of(command) in _READING_SCRIPTS


def text(value: Any) -> str:
    """A reply's bytes as text. Raises `UnicodeDecodeError`: what others may have damaged is decoded under
    `decoding.decoding`."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
