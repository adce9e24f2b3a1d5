"""A worker on the machine of the process FDSTORE_TEST_MACHINE, with the times of `network_times`."""

from __future__ import annotations

import os

from fdstore.agents.runtime import queue
from fdstore_workers import app
from tests.chaos import quick_worker
from tests.chaos.network import network_times as network_times
from tests.chaos.network.machine import join
from tests.chaos.quick_times import FASTER

app.SOCKET_TIMEOUT_S /= FASTER
queue.SEND_TIMEOUT_S = max(queue.SEND_TIMEOUT_S / FASTER, 0.5)


def main() -> None:
    join(int(os.environ["FDSTORE_TEST_MACHINE"]))  # before anything starts a thread
    quick_worker.main()
