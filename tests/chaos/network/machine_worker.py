"""A worker on the machine of the process FDSTORE_TEST_MACHINE, with the times of `network_times`."""

from __future__ import annotations

import os

from tests.chaos.network.machine import join

join(int(os.environ["FDSTORE_TEST_MACHINE"]))  # before anything starts a thread

from fdstore.runtime import queue  # noqa: E402
from fdstore_workers import app  # noqa: E402
from tests.chaos.network import network_times as network_times  # noqa: E402
from tests.chaos.quick_times import FASTER  # noqa: E402
from tests.chaos.quick_worker import main as main  # noqa: E402

app.SOCKET_TIMEOUT_S /= FASTER
queue.SEND_TIMEOUT_S = max(queue.SEND_TIMEOUT_S / FASTER, 0.5)
