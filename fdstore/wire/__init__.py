"""Runs operations on Redis: sockets, time-outs, repeats, and where each request goes.

Written once, awaiting, in `_async`; `make generate` makes `_sync` of it. Three files are written for each:

    link.py       one connection: a protocol of the event loop, a socket
    support.py    sleeping, calls that may wait for a disk, where connections come from
    __init__.py
"""
