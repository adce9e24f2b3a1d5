"""Load the Lua scripts, one file for each atomic operation, and build the commands that run them.

Logic lives in Python; Lua contains only what must be atomic, and checks everything before its first write.
The header of a script is its signature: it names its keys and arguments, in Lua as in the call.
A script replies `ok` and values, or the type of an error and its facts; `store.outcomes` raises the typed
error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from fdstore.wire.operation import Batch, Command, Value
from fdstore.wire.script_constants import IN_LUA

READS = frozenset(
    {
        *(
            "EXISTS",
            "GET",
            "GETRANGE",
            "HEXISTS",
            "HGET",
            "HGETALL",
            "HKEYS",
            "HLEN",
            "HMGET",
            "HSCAN",
            "HSTRLEN",
            "INFO",
        ),
        *("LLEN", "LRANGE", "OBJECT", "PING", "SCARD", "SMEMBERS", "SRANDMEMBER", "STRLEN", "TIME", "TYPE"),
        *("XRANGE", "XREAD", "ZCARD", "ZRANGE", "ZRANGEBYSCORE", "ZSCORE"),
    }
)
"""Commands that only read: a lost reply leaves nothing in doubt."""

_CONSTANTS = "\n\n".join(f"local {name} = {value}" for name, value in IN_LUA.items())

_READING_SCRIPTS = frozenset({"cold_room", "names", "python_read", "resolve"})
_by_sha: dict[Value, Script] = {}

NUMBER, REST = ":number", "..."
"""What the header of a script adds to the name of an argument that is a number, and to that of the last one,
if it stands for all that follow."""

_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"^local (?:function )?(\w+)", re.MULTILINE)
_HEADER = re.compile(r"^-- (KEYS|ARGV) (\S.*(?:\n--      \S.*)*)", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """One script: `script("close")(tree=..., fd=...)` is the command that runs it, with what the header of
    its file names: `keys`, `arguments`, and the `rest`, a sequence ("" if it takes none)."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    rest: str = ""

    def __call__(self, **given: Any) -> Command:
        names = (*self.keys, *self.arguments)
        rest: Sequence[Value] = given.pop(self.rest, ()) if self.rest else ()
        if given.keys() != set(names):
            raise TypeError(f"{self.name} takes {', '.join(names)}, not {', '.join(given)}")
        return ("EVALSHA", self.sha, len(self.keys), *(given[name] for name in names), *rest)


@cache
def script(name: str) -> Script:
    """Return the script in `lua/<name>.lua`, with the functions it needs from `lua/common.lua` inserted at
    its line `-- common.lua`, by default at the top: Redis creates those functions again for each call."""
    folder = resources.files("fdstore.store") / "lua"
    shared, own = ((folder / f"{file}.lua").read_text("utf-8") for file in ("common", name))
    keys, arguments, rest = signature(own)
    first, _, second = own.rpartition("-- common.lua\n")
    source = locals_of(keys, arguments, rest) + first + with_shared(f"{_CONSTANTS}\n\n{shared}", second)
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    names = tuple(each.removesuffix(NUMBER) for each in arguments)
    loaded = Script(name, source, sha, keys, names, rest)
    _by_sha[loaded.sha] = loaded
    return loaded


def signature(own: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the keys and the arguments that the header of a script names, and the name of its rest.

    >>> signature("-- KEYS tree\\n-- ARGV fd count:number\\n--      ids...\\nreturn fd")
    (('tree',), ('fd', 'count:number'), 'ids')
    """
    found = {kind: tuple(names.replace("\n--", "").split()) for kind, names in _HEADER.findall(own)}
    keys, arguments = found.get("KEYS", ()), found.get("ARGV", ())
    if arguments and arguments[-1].endswith(REST):
        return keys, arguments[:-1], arguments[-1].removesuffix(REST)
    return keys, arguments, ""


def locals_of(keys: tuple[str, ...], arguments: tuple[str, ...], rest: str) -> str:
    """Return the line of Lua that gives the keys and arguments of a script their names. `ids_from` is where
    the rest `ids` begins in ARGV; a number that is none is nil.

    >>> locals_of(("tree",), ("fd", "count:number"), "ids")
    'local tree, fd, count, ids_from = KEYS[1], ARGV[1], tonumber(ARGV[2]), 3\\n'
    """
    values = {key: f"KEYS[{at}]" for at, key in enumerate(keys, 1)}
    for at, each in enumerate(arguments, 1):
        name = each.removesuffix(NUMBER)
        values[name] = f"ARGV[{at}]" if name == each else f"tonumber(ARGV[{at}])"
    if rest:
        values[f"{rest}_from"] = str(len(arguments) + 1)
    return f"local {', '.join(values)} = {', '.join(values.values())}\n" if values else ""


def with_shared(shared: str, own: str) -> str:
    """Prepend to a source the paragraphs of `shared` whose names it uses, directly or indirectly.

    >>> with_shared("local A = 1\\n\\nlocal B = A\\n\\nlocal C = 3", "return B")
    'local A = 1\\n\\nlocal B = A\\n\\nreturn B'
    """
    source, words = own, set(_WORD.findall(own))
    for part, names, its_words in reversed(_paragraphs(shared)):
        if not words.isdisjoint(names):
            source = f"{part}\n\n{source}"
            words |= its_words
    return source


@cache
def _paragraphs(shared: str) -> list[tuple[str, list[str], frozenset[str]]]:
    """Return the paragraphs of a source, each with the names that it defines and all of its words."""
    parts = shared.split("\n\n")
    return [(part, _DEFINED.findall(part), frozenset(_WORD.findall(part))) for part in parts]


LENT_S = 1
"""TTL in seconds of the placeholder key, which a torn transaction may leave. No key expires inside a
transaction."""


def as_eval(command: Command) -> Command:
    """Return the same call with the script's source, for a server that does not know its SHA."""
    return ("EVAL", _by_sha[command[1]].source, *command[2:]) if command[0] == "EVALSHA" else command


class LoadedScripts:
    """The scripts that a server has: all, until it turns out to lack one, as after a restart. From then on
    the first call of each is sent with its source, so that each costs one round trip and not two."""

    def __init__(self) -> None:
        self._sent: set[Value] | None = None

    def forget(self) -> None:
        """Note that the server lacks a script, and so perhaps all others."""
        self._sent = set()

    def with_sources(self, batch: Batch) -> Batch:
        """Return the batch with the sources of those scripts that the server may lack."""
        if self._sent is None:
            return batch
        found: Batch = []
        for command in batch:
            if command[0] == "EVALSHA" and command[1] not in self._sent:
                self._sent.add(command[1])
                command = as_eval(command)
            found.append(command)
        return found


def though_full(command: Command, expire_s: int | None = None) -> Command:
    """Return a call that runs a command of one key also if Redis has no memory left: for what makes room, and
    what must go on meanwhile. Redis refuses only the first write of a script. Its reply is the command's. A
    server that does not know the script runs it after the rest of its batch: nothing there may need it."""
    name, key, *arguments = command
    expires = "" if expire_s is None else expire_s
    return script("though_full")(key=key, expire_s=expires, command=name, arguments=arguments)


def hset_if_accepted(decide: Command, tell: Command, key: str, lent: str, fields: list[Value]) -> Batch:
    """Return a transaction that stores fields in the hash `key` if a script accepts them. The fields bypass
    Lua, which takes four times as long as storing them.

    RENAMENX moves the hash to `lent`, and SET puts a string under `key`, so HSET fails with WRONGTYPE
    unless the first call of the script (`decide`) accepted the batch and renamed the hash back. So if the
    script refuses, fails, or is unknown to the server, no field is stored, and the last RENAME moves the
    hash back. The second call (`tell`) records the new totals. Clients never see the hash missing: it is
    back at the end of the transaction. Nor does a torn log lose it (see lua/common.lua): it is renamed back
    before the fields, which are most of the log.
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
    """Return the script's reply from a transaction of `hset_if_accepted`, or the reply itself if the
    transaction was sent as one script."""
    return next((part for part in reply if isinstance(part, list)), reply)


def as_one_script(commands: Batch) -> Command:
    """Return one script call equivalent to a transaction of these commands, so that a single reply can be
    lost instead of many. The commands have one key each; or they come from `hset_if_accepted`, whose script
    accepts the fields as additional arguments."""
    if commands[0][0] == "RENAMENX":
        *_, (_, _, *fields), tell, _ = commands
        return as_eval((*tell, *fields))
    arguments = [part for name, _, *more in commands for part in (name, len(more), *more)]
    keys = [str(command[1]) for command in commands]
    return as_eval(("EVALSHA", script("at_once").sha, len(keys), *keys, *arguments))


def name_of(command: Command) -> str:
    """Return the name of a command, or of the script that it runs."""
    known = _by_sha.get(command[1]) if command[0] == "EVALSHA" else None
    return known.name if known else str(command[0])


def is_read(command: Command) -> bool:
    """Return whether the command changes nothing."""
    return command[0] in READS or command[:2] == ("CONFIG", "GET") or name_of(command) in _READING_SCRIPTS


def text(value: Any) -> str:
    """Decode a reply as text. Raises `UnicodeDecodeError`; decode values that may be damaged under
    `record_format.decoding`."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
