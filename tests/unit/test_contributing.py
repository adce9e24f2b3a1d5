"""CONTRIBUTING.md names files that exist: its table is followed by people who do not know the code yet."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
TABLE = TEXT[TEXT.index("## Find the table") : TEXT.index("## Tests")]
PLACEHOLDER = re.compile(r"(?:VERB|SCRIPT|NAME|PAGE|HOST)")
ROOTS = (ROOT, ROOT / "fdstore", ROOT / "tests", ROOT / "workers" / "fdstore_workers")
SOURCES = (ROOT / "fdstore", ROOT / "workers", ROOT / "tests")


def named() -> list[str]:
    found = re.findall(r"`([\w./-]+(?:/|\.(?:py|md|toml|json|yaml|txt|in|html)))`", TABLE)
    return [name for name in found if not PLACEHOLDER.search(name)]


def is_there(name: str) -> bool:
    """Return whether a path exists; a bare name is of any folder of the source."""
    if any((root / name).exists() for root in ROOTS):
        return True
    return "/" not in name and any(any(root.rglob(name)) for root in SOURCES)


def test_the_table_names_files_that_exist() -> None:
    names = named()

    assert len(names) > 60
    assert [name for name in names if not is_there(name)] == []


def test_it_is_one_page() -> None:
    assert TEXT.count("\n") <= 150


def test_the_rooms_of_the_kernel_exist() -> None:
    [rooms] = re.findall(r"\*\*The kernel\*\* .*?`([a-z ]+)`", TEXT)

    assert [room for room in rooms.split() if not (ROOT / "fdstore" / room).is_dir()] == []
