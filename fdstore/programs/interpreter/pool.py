"""The interpreter processes of this process: each serves one session, then ends.

They are started by threads of their own. The sandbox ends an interpreter with the thread that started it, as
the kernel takes that for the end of the parent, and a thread of a caller may end before its session.

A fork has pools of its own and leaves those of its parent alone: closing one would end the parent's sessions.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fdstore.programs.interpreter import confinement
from fdstore.programs.interpreter.events import InterpreterEnded
from fdstore.programs.interpreter.processor_time import ProcessorClock, find_clock
from fdstore.setup.optional_packages import require

if TYPE_CHECKING:
    import pydantic_monty

PACKAGE = "pydantic_monty"
EXTRA = "python"

MAX_PROCESSES = 4096
"""More than a machine carries: how many sessions there are is decided by those who begin them."""

STARTERS = 4
"""Processes that start at the same time."""

MAX_STARTS = 3
"""The most starts of a process that ends before it has loaded its session."""

START_S = 120.0
"""A process that has not started by then is given up; some 20 ms are usual."""

SMALLEST_BYTES = 256 << 20
"""Sessions of up to so much memory share a pool, those of up to twice as much another, and so on."""


class InterpreterProcess:
    """A process that serves one session."""

    def __init__(self, session: pydantic_monty.MontySession) -> None:
        self.session = session
        self._owner = os.getpid()
        self._pid = session.worker_pid
        # by number another process could be hit, once the pool has waited for this one
        self._pidfd = os.pidfd_open(self._pid) if self._pid is not None and sys.platform == "linux" else None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def inherited(self) -> bool:
        """Return whether this is a fork of the process that owns it."""
        return os.getpid() != self._owner

    @property
    def ended(self) -> bool:
        """Return whether the pool has given the process up. Not for use while it runs code."""
        return self.session.worker_pid is None

    def find_clock(self) -> ProcessorClock | None:
        """Return the clock of its processor time, once it has run code."""
        return find_clock(self._pid)

    def kill(self) -> None:
        """End the process, from any thread. What it runs fails."""
        if self.inherited:
            return
        with self._lock, suppress(ProcessLookupError):
            if self._closed or self._pid is None:
                return
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            else:
                os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and forget it. Idempotent."""
        if self.inherited:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pidfd is not None:
                os.close(self._pidfd)
        self.session.__exit__(None, None, None)


class Pools:
    """The pools of one process, by the memory of their sessions."""

    def __init__(self, *, load_again: bool = False) -> None:
        self._pools: dict[int, pydantic_monty.Monty] = {}
        self._processes: weakref.WeakSet[InterpreterProcess] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._starters = ThreadPoolExecutor(STARTERS, "fdstore-interpreter-start")
        self._load_again = load_again

    def start(self, memory_bytes: int, settings: dict[str, Any]) -> InterpreterProcess:
        """Start a process. Raises `InterpreterEnded`."""
        try:
            return self._starters.submit(self._start, memory_bytes, settings).result(START_S)
        except TimeoutError:
            # a sandbox that is killed while it is set up may leave a process that holds its pipes open
            raise InterpreterEnded(f"the interpreter did not start within {START_S:.0f} s") from None

    def _start(self, memory_bytes: int, settings: dict[str, Any]) -> InterpreterProcess:
        size = SMALLEST_BYTES
        while size < memory_bytes:
            size *= 2
        with self._lock:
            if self._load_again:
                _load_again()
                self._load_again = False
            pool = self._pools.get(size)
            if pool is None:
                pool = self._pools[size] = _make_pool(size)
        process = InterpreterProcess(_check_out(pool, settings))
        self._processes.add(process)
        return process

    def inherit(self) -> Pools:
        """Return the pools of a fork, and see to it that these are never closed in it."""
        for kept in (*self._pools.values(), *(process.session for process in self._processes)):
            # one more reference than there is, or the end of this process would close them
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        return Pools(load_again=self._load_again or bool(self._pools))


def _check_out(pool: pydantic_monty.Monty, settings: dict[str, Any]) -> pydantic_monty.MontySession:
    """Return a session in a new process. One that is killed before it serves has run nothing, so another is
    started."""
    import pydantic_monty

    for _ in range(MAX_STARTS - 1):
        with suppress(pydantic_monty.MontyCrashedError):
            return pool.checkout(**settings).__enter__()
    return pool.checkout(**settings).__enter__()


def _make_pool(memory_bytes: int) -> pydantic_monty.Monty:
    import pydantic_monty

    return pydantic_monty.Monty(
        binary_path=confinement.binary_path(confinement.find_engine(), memory_bytes),
        min_processes=0,
        max_processes=MAX_PROCESSES,
        max_checkouts_per_worker=1,
    ).__enter__()


class _CopyFinder:
    """Finds the extension module of the interpreter's package in a copy of its file."""

    def __init__(self, module: str, copy: str) -> None:
        self._module, self._copy = module, copy

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._module:
            return None
        loader = ExtensionFileLoader(name, self._copy)
        return importlib.util.spec_from_file_location(name, self._copy, loader=loader)


def _load_again() -> None:
    """Import the interpreter's package again: its threads serve every session, and a fork has none of them.

    The loader knows a library by its file, so this one is a copy.
    """
    extension = f"{PACKAGE}._monty"
    file = sys.modules[extension].__file__
    if file is None or not hasattr(os, "memfd_create"):
        raise RuntimeError("a fork of a process that has run programs cannot run any; start a new process")
    descriptor = os.memfd_create(PACKAGE)
    with open(file, "rb") as source, open(descriptor, "wb") as copy:
        copy.write(source.read())
        copy.flush()
        finder = _CopyFinder(extension, f"/proc/self/fd/{descriptor}")
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
        sys.meta_path.insert(0, finder)
        try:
            __import__(PACKAGE)
        finally:
            sys.meta_path.remove(finder)


def start(memory_bytes: int, **settings: Any) -> InterpreterProcess:
    """Start an interpreter, in some 20 ms. Raises `MissingExtra`."""
    require((PACKAGE,), EXTRA)
    return _pools.start(memory_bytes, settings)


_pools = Pools()


def _renew() -> None:
    global _pools
    _pools = _pools.inherit()


os.register_at_fork(after_in_child=_renew)
