"""Pages that are longer or shorter than the index of their content says are never shown as a part of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process
from fdstore.errors import DamagedRecord

Execute = Callable[..., Any]
TEXT = "".join(f"line {number}\n" for number in range(1000))
PAGES = "fdstore:{triage}:triage:fd:1:pages"


def longer(page: bytes) -> bytes:
    return page + b"more"


def shorter(page: bytes) -> bytes:
    return page[:7]


@pytest.mark.parametrize("number", [1, 5, 8])
@pytest.mark.parametrize("change", [longer, shorter])
def test_no_part_has_a_page_of_another_length(
    proc: Process, execute: Execute, tmp_path: Path, number: int, change: Callable[[bytes], bytes]
) -> None:
    pages = proc.create(TEXT, page_size=1000).pages
    whole = execute("HGET", PAGES, number)
    execute("HSET", PAGES, number, change(whole))
    reads = [
        lambda: proc.read("fd:1", read_all=True),
        lambda: proc.export("fd:1", tmp_path / "out.txt"),
        lambda: proc.read("fd:1", start=1, count=pages),
        lambda: proc.read("fd:1", mode="char", start=1, count=len(TEXT)),
        lambda: proc.read("fd:1", mode="line", start=1, count=1000),
    ]

    assert pages == 9
    for read in reads:
        with pytest.raises(DamagedRecord, match=r"fd:1 of process triage cannot be read: (its )?pages have"):
            read()
    assert not (tmp_path / "out.txt").exists()
    execute("HSET", PAGES, number, whole)


@pytest.mark.parametrize("change", [longer, shorter])
def test_the_last_page_too(proc: Process, execute: Execute, change: Callable[[bytes], bytes]) -> None:
    proc.create(TEXT, page_size=1000)
    whole = execute("HGET", PAGES, 9)
    execute("HSET", PAGES, 9, change(whole))

    with pytest.raises(DamagedRecord, match=r"its pages have \d+ characters, not 8890"):
        proc.read("fd:1", read_all=True)
    execute("HSET", PAGES, 9, whole)


def test_a_text_that_is_whole_is_read_as_before(proc: Process, tmp_path: Path) -> None:
    proc.create(TEXT, page_size=1000)

    assert proc.read("fd:1", read_all=True).text == TEXT
    assert proc.export("fd:1", tmp_path / "out.txt").char_count == len(TEXT)
