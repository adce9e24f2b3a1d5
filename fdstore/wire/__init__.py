"""Run operations on Redis: connections, time-outs, retries, and routing in a Cluster.

The asynchronous runners in `_async` are the source; `make generate` generates the blocking ones in `_sync`.
Three files exist in both by hand:

    link.py       one connection: a protocol of the event loop, a socket
    support.py    sleeping, calls that do disk I/O, the connection pool
    __init__.py
"""
