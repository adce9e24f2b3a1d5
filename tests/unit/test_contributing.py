"""CONTRIBUTING.md names files that exist: its lists are followed by people who do not know them yet."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
LISTS = TEXT[TEXT.index("## How to add or change one") : TEXT.index("## Tests")]
PLACEHOLDER = re.compile(r"(?:VERB|TOOL|NAME|PAGE|HOST|ENVIRONMENT)")
ROOTS = (ROOT, ROOT / "fdstore", ROOT / "workers" / "fdstore_workers")
SOURCES = (ROOT / "fdstore", ROOT / "workers", ROOT / "tests")


def named() -> list[str]:
    found = re.findall(r"`([\w./-]+(?:/|\.(?:py|md|toml|json|yaml|txt|in|html)))`", LISTS)
    return [name for name in found if not PLACEHOLDER.search(name)]


def is_there(name: str) -> bool:
    """Return whether a path exists; a bare name is of any folder of the source."""
    if any((root / name).exists() for root in ROOTS):
        return True
    return "/" not in name and any(any(root.rglob(name)) for root in SOURCES)


def test_the_lists_name_files_that_exist() -> None:
    names = named()

    assert len(names) > 80
    assert [name for name in names if not is_there(name)] == []


def test_the_tour_of_the_readme_and_the_rooms_exist() -> None:
    rooms = re.findall(r"\| `([\w/]+/)` \|", TEXT)

    assert len(rooms) > 6
    assert [room for room in rooms if not (ROOT / room).is_dir()] == []
