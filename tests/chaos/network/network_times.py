"""`quick_times`, and the time-outs of connections in the same proportion: on these networks they matter."""

from __future__ import annotations

from fdstore.store.streams import streams
from fdstore.wire import connection_options, retry
from fdstore.wire._async import runner as async_runner
from fdstore.wire._sync import runner
from tests.chaos.quick_times import FASTER

connection_options.SOCKET_TIMEOUT_S /= FASTER
connection_options.CONNECT_TIMEOUT_S /= FASTER
for module in (retry, runner, async_runner):
    vars(module)["SOCKET_TIMEOUT_S"] = connection_options.SOCKET_TIMEOUT_S
STREAM_LEASE_S = streams.LEASE_S / FASTER / 3
