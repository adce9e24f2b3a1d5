"""Recompute every counter of the store from the stored keys.

Needs only a function that sends one command, so it runs on fakes and real servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.slices import lines_of, pages_of

Execute = Callable[..., Any]
ENDED = {"exited", "failed", "cancelled"}


_READ_ALL = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, {}
  if kind == 'hash' then
    value = redis.call('HGETALL', key)
  elseif kind == 'set' then
    value = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  end
  found[#found + 1] = { key, kind, redis.call('PTTL', key), value }
end
return found
"""


def lasting_keys(execute: Execute, pattern: str = "*") -> list[bytes]:
    """Return the keys that do not expire by themselves."""
    return [key for key in execute("KEYS", pattern) if execute("PTTL", key) == -1]


class Stored:
    """The keys of a server as they are now, read in one request: answers the commands that the checks here
    send."""

    def __init__(self, execute: Execute) -> None:
        self._keys = {key: rest for key, *rest in execute("EVAL", _READ_ALL, 0)}

    def __call__(self, command: str, key: bytes | str, *rest: Any) -> Any:
        if command == "KEYS":
            return list(self._keys)
        kind, pttl, value = self._keys.get(key.encode() if isinstance(key, str) else key, (b"none", -2, []))
        match command:
            case "TYPE":
                return kind
            case "PTTL":
                return pttl
            case "EXISTS":
                return int(kind != b"none")
            case "HGETALL" | "SMEMBERS":
                return value
            case "HGET":
                return dict(zip(value[::2], value[1::2], strict=True)).get(rest[0].encode())
            case "HLEN":
                return len(value) // 2
            case "ZRANGE":
                return value[::2]
            case "ZSCORE":
                return dict(zip(value[::2], value[1::2], strict=True)).get(rest[0].encode())
        raise AssertionError(command)


def _hash(execute: Execute, key: str) -> dict[str, str]:
    flat = execute("HGETALL", key)
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}


def _members(replies: list[bytes]) -> set[str]:
    return {reply.decode() for reply in replies}


def check_keys(execute: Execute, prefix: str = "fdstore") -> None:
    """Check that every counter, holder and total of every tree matches the stored keys, without leftovers."""
    keys = _members(execute("KEYS", "*"))
    for tree in sorted(key for key in keys if re.fullmatch(re.escape(prefix) + r":\{[^}]*\}", key)):
        _check_tree(execute, tree, {key for key in keys if key.startswith(tree)}, f"{prefix}:trees")
    words = {key.removesuffix(":search:words") for key in keys if key.endswith("}:search:words")}
    assert words <= keys


def _check_tree(execute: Execute, tree: str, keys: set[str], trees: str) -> None:
    counted = _hash(execute, tree)
    processes = _members(execute("ZRANGE", f"{tree}:processes", 0, -1))
    records = {process: _hash(execute, f"{tree}:{process}") for process in processes}
    tables = {process: _hash(execute, f"{tree}:{process}:fds") for process in processes}
    born = {key.removeprefix(f"{tree}:") for key in keys if re.fullmatch(r".*:fd:\d+", key)}
    stored = {key.replace(":fd:", "/") for key in born}

    assert execute("ZSCORE", trees, tree.partition("{")[2].rstrip("}")) is not None
    assert _members(execute("SMEMBERS", f"{tree}:contents")) == stored
    assert {content for table in tables.values() for content in table.values()} == stored
    agents = [record for record in records.values() if record.get("kind") != "asks"]
    assert int(counted["processes"]) == len(agents)
    assert int(counted["live"]) == sum(record["state"] not in ENDED for record in agents)
    assert int(counted["fds"]) == len(stored)
    states = {
        content: execute("HGET", f"{tree}:{content.replace('/', ':fd:')}", "state") for content in stored
    }
    for process in processes:
        names = {fd.removeprefix("name:") for fd in tables[process] if fd.startswith("name:")}
        assert _members(execute("ZRANGE", f"{tree}:{process}:names", 0, -1)) == names
        _check_programs(execute, tree, process)
        numbers = _members(execute("SMEMBERS", f"{tree}:{process}:writes"))
        written = {f"{process}/{number}" for number in numbers}
        assert written == {
            c for c, state in states.items() if state == b"open" and c.startswith(f"{process}/")
        }
    _check_words(execute, tree, processes)
    _check_questions(execute, tree, records)
    size = 0
    for content in stored:
        record = f"{tree}:{content.replace('/', ':fd:')}"
        holders = {process for process, table in tables.items() if content in table.values()}
        listed = _members(execute("SMEMBERS", f"{record}:holders"))
        assert (listed or {content.partition("/")[0]}) == holders
        size += _check_content(execute, record)
    assert int(counted["bytes"]) == size
    of_cold = [said for name in born if (said := _hash(execute, f"{tree}:{name}")).get("tier") == "cold"]
    assert int(counted.get("cold_fds", 0)) == len(of_cold)
    assert int(counted.get("cold_bytes", 0)) == sum(int(said["bytes"]) for said in of_cold)
    suffixes = ("", ":pages", ":index", ":holders", ":events", ":sums", ":reads")
    parts = {f"{tree}:{name}{part}" for name in born for part in suffixes}
    # the counter of reads may be begun while its content goes; it expires
    assert {key for key in keys if re.search(r":fd:\d+", key) and not key.endswith(":reads")} <= parts


def _check_words(execute: Execute, tree: str, processes: set[str]) -> None:
    """Check that each word belongs to a process of the tree. Those of closed descriptors are left."""
    for member in _members(execute("ZRANGE", f"{tree}:search:words", 0, -1)):
        word, kind, process, *fd = member.split(" ", 3)
        assert word
        assert kind in ("task", "answer", "error", "source")
        assert process in processes
        assert bool(fd) == (kind == "source")


def _check_questions(execute: Execute, tree: str, records: dict[str, dict[str, str]]) -> None:
    """Check that the open questions are listed in the tree and at their processes, and have no answer; those
    of ended processes are withdrawn."""
    listed = _members(execute("ZRANGE", f"{tree}:questions", 0, -1))
    opened = set()
    for process, record in records.items():
        asked = _hash(execute, f"{tree}:{process}:questions")
        numbers = asked.get("open", "").split()
        assert record["state"] not in ENDED or not numbers
        opened |= {f"{process}/{number}" for number in numbers}
        assert len(set(numbers)) == len(numbers)
        assert not {f"{number}/answer" for number in numbers} & asked.keys()
        by_call = [number for name, number in asked.items() if name.startswith("call/")]
        assert sorted(map(int, by_call)) == list(range(1, int(asked.get("next", "1"))))
        assert all({number, f"{number}/asked", f"{number}/until"} <= asked.keys() for number in by_call)
    assert listed == opened


def _check_programs(execute: Execute, tree: str, process: str) -> None:
    """Check that every piece of a session and a snapshot is there, and that a session is kept for those
    processes that have it by reference."""
    key = f"{tree}:{process}:python"
    head = json.loads(execute("HGET", key, "head") or "{}")
    of = head.get("session_of", process)
    for name, stored in (("session", f"{tree}:{of}:python"), ("snapshot", key)):
        for number in range(int(head.get(f"{name}_chunks", 0))):
            assert execute("HGET", stored, f"{head[name]}/{number}") is not None
    if of != process:
        assert execute("HGET", f"{tree}:{of}:python", f"{head['session']}/held/{process}") is not None
    for name in map(bytes.decode, execute("HGETALL", key)[::2]):
        if "/held/" in name:
            version, _, holder = name.split("/")
            held = json.loads(execute("HGET", f"{tree}:{holder}:python", "head"))
            assert (held["session"], held["session_of"]) == (version, process)


def whole_pages(execute: Execute, record: str) -> dict[int, bytes]:
    """Return the pages of a content. The rest of a page may be in a field of its own, `3+`; its beginning
    then ends with a line that says so."""
    goes_on = b"\n[this page goes on in the field with a + after its number]"
    flat = execute("HGETALL", f"{record}:pages")
    values = dict(zip(map(bytes.decode, flat[::2]), flat[1::2], strict=True))
    rests = {name: values.pop(name) for name in list(values) if name.endswith("+")}
    assert (execute("HGET", record, "split") or b"0") == b"%d" % len(rests)
    for name, rest in rests.items():
        assert values[name[:-1]].endswith(goes_on)
        values[name[:-1]] = values[name[:-1]].removesuffix(goes_on) + rest
    return {int(name): value for name, value in values.items()}


def _check_content(execute: Execute, record: str) -> int:
    said = _hash(execute, record)
    for key in (record, f"{record}:pages", f"{record}:index", f"{record}:holders"):
        assert execute("PTTL", key) in (-1, -2)
    if said.get("tier") == "cold":
        assert said["state"] == "sealed"
        assert re.fullmatch(r".+-\d+-[0-9a-f]{16}", said["where"])
        assert "tail" not in said
        assert execute("EXISTS", f"{record}:pages") == 0
        # the index of at most 256 pages is with the checksums
        groups = -(-int(said["pages"]) // 256) if said.get("kind") != "bytes" else 0
        assert execute("HLEN", f"{record}:index") == (groups if groups > 1 else 0)
        assert execute("EXISTS", f"{record}:sums") == 1
        assert execute("PTTL", f"{record}:sums") == -1
        return int(said["bytes"])
    assert "where" not in said
    assert execute("EXISTS", f"{record}:sums") == 0
    if said.get("kind") == "bytes":
        return _check_bytes(execute, record, said)
    pages = {str(number): page.decode() for number, page in whole_pages(execute, record).items()}
    ordered = [pages[str(number)] for number in range(1, len(pages) + 1)]
    text = "".join(ordered)
    assert ordered == pages_of(text, int(said["page_size"]))
    assert int(said["chars"]) == len(text)
    assert int(said["bytes"]) == len(text.encode())
    assert int(said["lines"]) == len(lines_of(text))
    assert int(said["pages"]) == len(pages)
    groups = 0 if "index" in said else (len(pages) - 1) // 256 + 1
    assert execute("HLEN", f"{record}:index") == groups
    return len(text.encode())


def _check_bytes(execute: Execute, record: str, said: dict[str, str]) -> int:
    size, count = int(said["page_size"]), int(said["pages"])
    found = whole_pages(execute, record)
    pages = [found[number] for number in range(1, count + 1)]
    assert len(found) == count == max(1, -(-int(said["bytes"]) // size))
    assert all(len(page) == size for page in pages[:-1])
    # of a stream, `chars` is the position that writers and followers share
    assert said["chars"] in ("0", said["bytes"])
    assert said["lines"] == "0"
    assert len(b"".join(pages)) == int(said["bytes"])
    assert execute("EXISTS", f"{record}:index") == 0
    return int(said["bytes"])
