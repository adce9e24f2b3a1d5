"""A store of either kind, of `fdstore.connect` or of `fdstore.aio.connect`, and operations on it."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import fdstore.aio
from fdstore.client import Store
from fdstore.errors import FDStoreError, InvalidArgument, WrongEventLoop
from fdstore.wire.operation import Operation

AnyStore = Store | fdstore.aio.Store
T = TypeVar("T")


def check_store(store: AnyStore) -> AnyStore:
    """Return a store. Raises `InvalidArgument` for anything else."""
    if not isinstance(store, (Store, fdstore.aio.Store)):
        raise InvalidArgument("store", "a connected store is needed, as fdstore.connect() returns it")
    return store


def run(store: AnyStore, operation: Operation[T]) -> T:
    """Run an operation, blocking. Raises `InvalidArgument` if the store is of asyncio."""
    if not isinstance(store, Store):
        problem = "it is of asyncio, and this call blocks; give the store of fdstore.connect()"
        raise InvalidArgument("store", problem)
    return store.run(operation)


async def run_async(store: AnyStore, operation: Operation[T]) -> T:
    """`run`, awaited: with a store of asyncio, or with a blocking one in a thread."""
    if isinstance(store, Store):
        return await asyncio.to_thread(store.run, operation)
    try:
        return await store.run(operation)
    except WrongEventLoop as error:  # raised before the operation began, which may do without a store
        return run_without(error, operation)


def run_without(error: FDStoreError, operation: Operation[T]) -> T:
    """Run an operation whose requests fail with an error."""
    try:
        next(operation)
        while True:
            operation.throw(error)
    except StopIteration as done:
        result: T = done.value
        return result
