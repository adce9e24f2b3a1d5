"""Texts for the measurements: five kinds that agents store, in any size.

    logs      lines of about 75 characters, ASCII
    source    source code of Python's standard library
    json      one line of JSON without any LF
    cjk       Chinese, Japanese and emoji, in lines of a few hundred bytes
    mixed     lines of logs and of cjk, at random

They are the same in every run. A large one repeats a block of about 2 MB; Redis does not compress, so that
makes no difference.
"""

from __future__ import annotations

import io
import json
import random
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_BYTES = 2_000_000

LOGS, SOURCE, JSON, CJK, MIXED = "logs", "source", "json", "cjk", "mixed"

_LEVELS = ("INFO",) * 14 + ("DEBUG",) * 4 + ("WARNING", "ERROR")
_MESSAGES = (
    "request {n} took {m} ms",
    "worker {m} picked up job {n}",
    "cache miss for key user:{n}:profile, loading it from shard {m}",
    "connection {m} closed by peer after {n} bytes",
    "retrying upload of part {m} of object {n}, the last answer was 503 Service Unavailable",
)
_PHRASES = (
    "今日は良い天気ですね。",
    "数据库连接已经关闭，",
    "エラーが発生しました😀",
    "请稍后重试🚀",
    "処理が完了しました",
    "用户没有权限访问这个文件🔒",
)


def of_kind(kind: str, size_bytes: int) -> str:
    """Return a text of this kind, of `size_bytes` in UTF-8, or up to 3 less to end at a whole character."""
    block = _block(kind)
    text = block * (size_bytes // len(block) + 1)
    if text.isascii():
        return text[:size_bytes]
    return text.encode()[:size_bytes].decode("utf-8", "ignore")


def log_file(size_bytes: int) -> BinaryIO:
    """Return a binary file of logs that is generated while it is read, and so uses no disk and no memory."""
    return io.BufferedReader(_Logs(size_bytes))


class _Logs(io.RawIOBase):
    def __init__(self, size_bytes: int) -> None:
        self._block = memoryview(_block(LOGS).encode())
        self._size = size_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        into = memoryview(buffer)
        start = self._position % len(self._block)
        piece = self._block[start : start + min(len(into), self._size - self._position)]
        into[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


@cache
def _block(kind: str) -> str:
    return _MAKERS[kind]()


def _until_full(line: Callable[[], str]) -> str:
    lines, size = [], 0
    while size < BLOCK_BYTES:
        lines.append(line())
        size += len(lines[-1].encode())
    return "".join(lines)


def _logs() -> str:
    chance = random.Random(1)

    def line() -> str:
        n, m = chance.randrange(10**6), chance.randrange(1000)
        text = chance.choice(_MESSAGES).format(n=n, m=m)
        return f"2031-05-01T12:{n % 60:02d}:{m % 60:02d} {chance.choice(_LEVELS)} {text}\n"

    return _until_full(line)


def _source() -> str:
    texts, size = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if size >= BLOCK_BYTES:
            break
        texts.append(path.read_text("utf-8"))
        size += path.stat().st_size
    return "".join(texts)


def _json() -> str:
    chance = random.Random(2)

    def item() -> str:
        n = chance.randrange(10**6)
        return (
            json.dumps({"id": n, "name": f"item {n}", "price": n / 100, "tags": ["a", "b"], "gone": None})
            + ","
        )

    return "[" + _until_full(item)


def _cjk() -> str:
    chance = random.Random(3)
    return _until_full(lambda: "".join(chance.choices(_PHRASES, k=chance.randrange(3, 20))) + "\n")


def _mixed() -> str:
    chance = random.Random(4)
    kinds = [_block(kind).splitlines(keepends=True) for kind in (LOGS, CJK)]
    return _until_full(lambda: chance.choice(chance.choice(kinds)))


_MAKERS: dict[str, Callable[[], str]] = {
    LOGS: _logs,
    SOURCE: _source,
    JSON: _json,
    CJK: _cjk,
    MIXED: _mixed,
}
