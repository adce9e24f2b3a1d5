"""The client library: a store, its processes, their descriptors and streams.

`_async` is the source; `_sync` is generated from it (`make generate`). Both share `write_buffer`. This
package exports the blocking client; `fdstore.aio` exports the asyncio client.
"""

from fdstore.client._sync.process import Process
from fdstore.client._sync.store import Store, connect
from fdstore.client._sync.writer import StreamWriter

__all__ = ["Process", "Store", "StreamWriter", "connect"]
