"""The memory of hooks about a store that is away. A hook is a new process for each event, so a small file in
the data directory has the outage (see `wire.breaker`): one event waits for the store, the following ones do
not.

The file is a hint. It may be missing, damaged or of another time; then the store is tried.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from fdstore.errors import FDStoreError, StoreUnavailable
from fdstore.setup.url_options import shown_url
from fdstore.wire.breaker import PAUSES_S, Outage, begin_outage, is_unanswered


@contextmanager
def leave_alone_if_away(
    folder: Path, url: str | None, clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """Run a block that uses the store at `url` (None: the embedded server), and remember in `folder` whether
    it answered. Raises `StoreUnavailable` without running it during the pause after an outage."""
    path = folder / f"hook-outage-{sha256((url or '').encode()).hexdigest()[:16]}.json"
    began, outage = clock(), _read(path)
    if outage is not None:
        if 0 < outage.retry_at - began <= PAUSES_S[-1]:
            where = "the embedded server" if url is None else shown_url(url)
            raise StoreUnavailable(where, outage.describe(began))
        _write(path, outage.failed_again(began))  # other hooks leave the store alone meanwhile
    try:
        yield
    except FDStoreError as error:
        if is_unanswered(error):
            now = clock()
            _write(path, begin_outage(began, now) if outage is None else outage.failed_again(now))
        else:
            _remove(path, outage)
        raise
    _remove(path, outage)


def _read(path: Path) -> Outage | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Outage)
    except (OSError, msgspec.DecodeError):
        return None


def _write(path: Path, outage: Outage) -> None:
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(msgspec.json.encode(outage))
        new.replace(path)


def _remove(path: Path, outage: Outage | None) -> None:
    if outage is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)
