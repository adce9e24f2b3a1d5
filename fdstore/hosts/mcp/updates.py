"""Updates of open streams: clients hear that a content they subscribed to has grown or ended.

A watch waits in Redis for the content's events, as any follower does, and reports at most every `EVERY_S`
seconds, since clients read the content again each time. It ends with the content. Clients of 2025 subscribe
URI by URI on their connection; those of 2026 open a stream for several, which is served by the SDK's bus.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from fdstore.errors import FDStoreError, InvalidArgument, NotFound
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.protocol_errors import TooManyWatches
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.model.records import Descriptor
from fdstore.store.addresses import Address, parse_uri
from fdstore.store.streams.completion import BLOCK_S, wait_for_change

EVERY_S = 0.4
"""The shortest time between two updates of one content."""

MAX_WATCHES = 64
"""Watches of one server. Each open content that is watched holds a connection to Redis."""


class Updates:
    """The watches of a server. `close` ends them."""

    def __init__(self, toolsets: Toolsets) -> None:
        self._toolsets = toolsets
        self._count = 0
        self._subscribed: dict[tuple[int, str], asyncio.Task[None]] = {}

    async def _look(self, access: Access, address: Address, seen: Descriptor | None = None) -> Descriptor:
        """Return a descriptor now, or when it differs from `seen`, after `BLOCK_S` seconds at the latest."""
        process = await self._toolsets.process(access, address.process)
        wait_s = 0.0 if seen is None else BLOCK_S
        return await process.store.run(wait_for_change(process.handle, address.fd, seen, wait_s))

    async def _watch(self, access: Access, address: Address, seen: Descriptor) -> AsyncIterator[None]:
        """Yield whenever a content has changed since `seen`, until it has ended or is closed. An outage
        of the store is waited out."""
        self._count += 1
        try:
            while seen.state == "open":
                before = seen
                try:
                    seen = await self._look(access, address, before)
                except NotFound:
                    return
                except FDStoreError:
                    await asyncio.sleep(BLOCK_S)
                if seen != before:
                    yield
                    await asyncio.sleep(EVERY_S)
        finally:
            self._count -= 1

    def _require_room(self, count: int) -> None:
        if self._count + count > MAX_WATCHES:
            raise TooManyWatches(MAX_WATCHES)

    async def listen(
        self, access: Access, context: Any, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve a stream of updates (2026). URIs that the caller may not read, or that name no content, are
        left out of the acknowledgement. Raises `TooManyWatches`."""
        wanted = params.notifications
        uris = list(dict.fromkeys(wanted.resource_subscriptions or ()))
        self._require_room(len(uris))
        # read the states before confirming the subscription: later changes are then all reported
        found = {uri: descriptor for uri in uris if (descriptor := await self._find(access, uri))}
        honored = wanted.model_copy(update={"resource_subscriptions": list(found)})
        bus = InMemorySubscriptionBus()

        async def publish(uri: str, seen: Descriptor) -> None:
            async for _ in self._watch(access, parse_uri(uri), seen):
                await bus.publish(ResourceUpdated(uri=uri))

        handler = ListenHandler(bus)

        async def end() -> None:
            await self._toolsets.stopping.wait()
            handler.close()

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            for uri, seen in found.items():
                group.start_soon(publish, uri, seen)
            result = await handler(context, params.model_copy(update={"notifications": honored}))
            group.cancel_scope.cancel()
        return result

    async def _find(self, access: Access, uri: str) -> Descriptor | None:
        try:
            return await self._look(access, parse_uri(uri))
        except (InvalidArgument, NotFound):
            return None

    async def subscribe(self, access: Access, session: ServerSession, uri: str) -> None:
        """Report updates of a content on the client's connection (2025), until it unsubscribes or leaves.
        Raises `InvalidArgument`, `NotFound` also for what the caller may not read, `TooManyWatches`."""
        address = parse_uri(uri)
        self._require_room(1)
        seen = await self._look(access, address)
        # the SDK hands a handler only the session of its request; what outlives that is the connection
        connection = session._connection
        key = (id(connection), uri)
        if key in self._subscribed:
            return

        async def report() -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the client has left
                async for _ in self._watch(access, address, seen):
                    await session.send_resource_updated(uri)

        task = asyncio.create_task(report(), name="fdstore updates")
        task.add_done_callback(lambda _: self._subscribed.pop(key, None))
        self._subscribed[key] = task
        connection.exit_stack.callback(task.cancel)

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        """End the reports that `subscribe` began; without any, do nothing."""
        task = self._subscribed.get((id(session._connection), uri))
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End all subscriptions."""
        tasks = list(self._subscribed.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
