"""The order of the tests: those of each folder are spread among those of the others.

Several processes take the files in this order. Tests of workers and faults mostly wait, those of `tests/unit`
compute: one folder after the other would leave the processors idle first, and then have too much for them.
"""

from __future__ import annotations

import itertools

import pytest

LAST_BEGINS_AT = {
    **dict.fromkeys(("tests/with_workers", "tests/chaos", "tests/on_cluster"), 0.6),
    **dict.fromkeys(("tests/acceptance", "tests/on_redis"), 0.85),
}
"""The part of the whole before the last file of a folder: one whose tests wait for long is not left alone."""


@pytest.hookimpl(trylast=True)  # of the tests that are left
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folders: dict[str, list[list[pytest.Item]]] = {}
    for _, tests in itertools.groupby(items, lambda item: item.path):
        file = list(tests)
        folders.setdefault("/".join(file[0].nodeid.split("/")[:2]), []).append(file)
    placed = []
    for folder, files in folders.items():
        span = LAST_BEGINS_AT.get(folder, 1.0) / sum(map(len, files))
        begun = itertools.accumulate(map(len, files), initial=0)
        placed += [(count * span, file) for count, file in zip(begun, files, strict=False)]
    placed.sort(key=lambda place: place[0])
    items[:] = [item for _, file in placed for item in file]
