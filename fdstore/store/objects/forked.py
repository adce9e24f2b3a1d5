"""The object store for a process that was forked: a helper process makes the calls of `object_store`.

One request and one reply at a time pass through its pipes, each as MessagePack after its length. The helper
ends with the process that started it, whose end closes the pipe.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from typing import IO, Any

import msgspec

from fdstore.errors import FDStoreError, MissingExtra, ObjectStoreUnavailable
from fdstore.store.objects import object_store
from fdstore.store.objects.object_store import ObjectMissing, shown

CALLS = frozenset({"get_range", "size_of", "put", "put_file", "digest_of", "delete", "list_below"})

_lock = threading.Lock()
_helpers: dict[int, subprocess.Popen[bytes]] = {}
"""The helper of each process; a fork copies those of its parents, which it must not use."""


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def call(name: str, url: str, *arguments: Any) -> Any:
    """Make a call of `object_store` in the helper. Raises what it raises."""
    with _lock:
        helper = _helpers.get(os.getpid())
        if helper is None or helper.poll() is not None:
            helper = _helpers[os.getpid()] = subprocess.Popen(
                [sys.executable, "-m", "fdstore.store.objects.forked"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert helper.stdin is not None
        assert helper.stdout is not None
        try:
            _send(helper.stdin, (name, url, *arguments))
            kind, value = _receive(helper.stdout)
        except (OSError, EOFError) as error:
            helper.kill()
            raise ObjectStoreUnavailable(shown(url), "the helper of this process ended") from error
        except BaseException:  # interrupted: a later call would receive its reply
            helper.kill()
            raise
    match kind:
        case "ok":
            return value
        case "missing":
            raise ObjectMissing(value)
        case "extra":
            raise MissingExtra(*value)
    raise ObjectStoreUnavailable(shown(url), value)


def put_pieces(url: str, path: str, pieces: Iterable[bytes]) -> None:
    """As `object_store.put_pieces`, through a temporary file."""
    with tempfile.NamedTemporaryFile(prefix="fdstore-cold-") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        call("put_file", url, path, file.name)


def _send(pipe: IO[bytes], value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    pipe.write(len(data).to_bytes(8) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    head = pipe.read(8)
    size = int.from_bytes(head)
    data = pipe.read(size) if len(head) == 8 else b""
    if len(head) < 8 or len(data) < size:
        raise EOFError
    return msgspec.msgpack.decode(data)


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    while True:
        try:
            name, url, *arguments = _receive(requests)
        except EOFError:
            return
        try:
            if name not in CALLS:
                raise ValueError(name)
            found = getattr(object_store, name)(url, *arguments)
            if name == "list_below":
                found = [(each.path, each.size, each.written_at) for some in found for each in some]
            reply: tuple[str, Any] = ("ok", found)
        except ObjectMissing as error:
            reply = ("missing", str(error))
        except MissingExtra as error:
            reply = ("extra", error.args)
        except ObjectStoreUnavailable as error:
            reply = ("failed", error.problem)
        except (FDStoreError, OSError, ValueError, TypeError) as error:
            reply = ("failed", f"{type(error).__name__}: {error}")
        _send(replies, reply)


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
