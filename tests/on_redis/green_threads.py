"""Read under gevent or eventlet, in a separate process, since these replace Python's sockets.

    python -m tests.on_redis.green_threads gevent|eventlet URL SILENT_URL

Prints the texts that two green threads read concurrently, and the error for a server that never answers.
"""

from __future__ import annotations

import sys

kind, url, silent_url = sys.argv[1:]
if kind == "gevent":
    import gevent.monkey

    gevent.monkey.patch_all()
    import gevent

    def run_both(*work):
        return [task.get() for task in map(gevent.spawn, work)]
else:
    import eventlet

    eventlet.monkey_patch()

    def run_both(*work):
        return [task.wait() for task in map(eventlet.spawn, work)]


import fdstore  # noqa: E402
from fdstore.errors import StoreUnavailable  # noqa: E402
from fdstore.wire import connection_options, retry  # noqa: E402

connection_options.SOCKET_TIMEOUT_S, retry.DEADLINE_S = 0.2, 0.5

with fdstore.connect(url) as store:
    proc = store.process("green")
    for word in ("one", "two"):
        proc.create(f"{word}\n" * 1000, page_size=4)

    def reader(fd, word):
        def read():
            texts = {proc.read(fd, start=number).text for number in range(1, 300)}
            return texts == {f"{word}\n"} and proc.read(fd, read_all=True).text == f"{word}\n" * 1000

        return read

    print(run_both(reader("fd:1", "one"), reader("fd:2", "two")))


def ask():
    try:
        fdstore.connect(silent_url)
    except StoreUnavailable as error:
        return str(error)


print(run_both(ask, ask))
