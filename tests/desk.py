"""A desk: files of the kinds that people have, in folders and archives, made in no time."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.unit.files.documents_made import DOCUMENTS
from tests.unit.files.packing import tar_of, zip_of

LINE = "a line of words that people write, and one more\n"


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE words (word)")


FILES: dict[str, Callable[[str], bytes]] = {
    "app.log": lambda line: (line * 500).encode(),
    "notes.md": lambda line: f"# Notes\n\n{line}".encode(),
    "people.csv": lambda line: b"name,age\n" + b"Ann,41\nBob,17\n" * 200,
    "found.json": lambda line: b'{"results": [' + b'{"a": 1},' * 200 + b"{}]}",
    "events.jsonl": lambda line: b'{"event": "start", "n": 1}\n' * 300,
    "tool.py": lambda line: b"import os\n\n\ndef main() -> None:\n    print(os.name)\n" * 20,
    "page.html": lambda line: f"<!doctype html><html><body><p>{line}</p></body></html>".encode(),
    "config.toml": lambda line: b"[server]\nport = 80\n",
    "latin.txt": lambda line: "caf\xe9 cr\xe8me\n".encode("latin-1") * 50,
    "wide.txt": lambda line: (line * 20).encode("utf-16"),
    "old.log.gz": lambda line: gzip.compress((line * 500).encode()),
    "older.log.bz2": lambda line: bz2.compress((line * 500).encode()),
    "oldest.log.xz": lambda line: lzma.compress((line * 500).encode()),
    "logs.tar.gz": lambda line: tar_of(("a/b.log", line.encode()), ("a/c.csv", b"a,b\n1,2\n"), mode="w:gz"),
    "mail.zip": lambda line: zip_of({"one.txt": line.encode(), "two/report.pdf": DOCUMENTS[".pdf"]}),
    **{f"report{suffix}": lambda line, data=data: data for suffix, data in DOCUMENTS.items()},  # type: ignore[misc]
    "photo.png": lambda line: b"\x89PNG\r\n\x1a\n" + bytes(900),
    "program": lambda line: Path(sys.executable).resolve().read_bytes()[:4096],
    "table.parquet": lambda line: b"PAR1\x15" + b"\xff" * 200 + b"PAR1",
    "backup.7z": lambda line: b"7z\xbc\xaf\x27\x1c" + bytes(100),
    "noise.bin": lambda line: bytes(range(256)) * 8,
}
"""Name of a file -> its bytes, from a line of text."""


def make_desk(folder: Path, copies: int = 1, large_bytes: int = 0) -> None:
    """Fill a folder with `copies` of each kind, in folders, and with two logs of `large_bytes` in all, one of
    them packed."""
    for number in range(copies):
        below = folder / f"part {number}" / "more"
        below.mkdir(parents=True)
        for name, make in FILES.items():
            (below / name).write_bytes(make(f"{number}: {LINE}"))
        database(below / "words.sqlite3")
    if large_bytes:
        block = LINE.encode() * (1 << 14)
        with (folder / "large.log").open("wb") as file:
            for _ in range(large_bytes // 2 // len(block)):
                file.write(block)
        with gzip.open(folder / "packed.log.gz", "wb", compresslevel=1) as packed:
            for _ in range(large_bytes // 2 // len(block)):
                packed.write(block)
