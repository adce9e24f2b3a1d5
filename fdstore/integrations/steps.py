"""Work with a store of either kind, written once: a generator of calls of the store.

`run` executes it and blocks; `run_async` awaits it, with the store of `fdstore.aio.connect` on its event
loop, with that of `fdstore.connect` in a thread. `yield from` joins steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import fdstore.aio
from fdstore.client import Store
from fdstore.errors import FDStoreError, InvalidArgument

AnyStore = Store | fdstore.aio.Store
T = TypeVar("T")
Steps = Generator[Callable[[], Any], Any, T]
"""Yields calls of the store, and receives what each returns or raises."""


def check_store(store: AnyStore) -> AnyStore:
    """Return a store. Raises `InvalidArgument` for anything else."""
    if not isinstance(store, (Store, fdstore.aio.Store)):
        raise InvalidArgument("store", "a connected store is needed, as fdstore.connect() returns it")
    return store


def run(store: AnyStore, steps: Steps[T]) -> T:
    """Return what steps return, blocking. Raises `InvalidArgument` if the store is of asyncio."""
    if not isinstance(store, Store):
        steps.close()
        problem = "it is of asyncio, and this call blocks; give the store of fdstore.connect()"
        raise InvalidArgument("store", problem)
    try:
        step = next(steps)
        while True:
            try:
                result = step()
            except FDStoreError as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        found: T = end.value
        return found


async def run_async(store: AnyStore, steps: Steps[T]) -> T:
    """`run`, awaited; with a store of either kind."""
    if isinstance(store, Store):
        return await asyncio.to_thread(run, store, steps)
    try:
        step = next(steps)
        while True:
            try:
                result = await step()
            except FDStoreError as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        found: T = end.value
        return found
