"""Return the processes that a dead worker process held, without waiting for the leases to expire.

This does immediately what the sweep would do later. The claim is compared: a process that another worker has
claimed meanwhile is left alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from fdstore.client import Store
from fdstore.errors import STORE_FAILURES, FDStoreError
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases
from fdstore_workers.supervisor import HeldProcess
from fdstore_workers.sweeper import carry_out, losses_allowed

log = logging.getLogger("fdstore.worker")

RETRY_EVERY_S = 0.5


def release_held(store: Store, wake: Callable[[str], None], held: Iterable[HeldProcess]) -> int:
    """Count a loss for each process that is still held, against it if it is to blame, and wake other
    workers; fail pipelines.

    Returns the number of processes. Retries store failures until the leases have expired.
    """
    until = time.monotonic() + leases.LEASE_S
    count = 0
    for each in held:
        while True:
            try:
                count += _give_back_one(store, wake, each)
            except STORE_FAILURES as error:
                if time.monotonic() >= until:
                    log.warning("%s is left to the sweep: %s", each.process, error)
                    return count
                time.sleep(RETRY_EVERY_S)
                continue
            except FDStoreError as error:
                log.info("%s needs no recovery: %s", each.process, error)
            break
    return count


def _give_back_one(store: Store, wake: Callable[[str], None], held: HeldProcess) -> bool:
    keys = process_keys(store.prefix, held.process)
    allowed = store.run(losses_allowed(keys))
    lapsed = store.run(leases.record_loss(keys, held.claim, allowed, is_to_blame=held.is_to_blame))
    carry_out(store, wake, keys, lapsed)
    return lapsed.decision != "nothing"
