"""The asyncio version of `fdstore`: every call that uses Redis is a coroutine.

    import fdstore.aio

    store = await fdstore.aio.connect()
    proc = await store.process("triage")
    d = await proc.create(text)
    page = await proc.read(d.fd, start=2)

A store belongs to the event loop it was connected in. Files are read and written in threads. Arguments,
results and errors are those of `fdstore`. In the examples `store` is connected, `proc` is a new process in
it, `tools` its toolset, and `build.log` a file of 5000 lines; they run in `python -m asyncio`.
"""

from fdstore.client._async.process import Process
from fdstore.client._async.store import Store, connect
from fdstore.client._async.writer import StreamWriter
from fdstore.toolset._async import Toolset

__all__ = ["Process", "Store", "StreamWriter", "Toolset", "connect"]
