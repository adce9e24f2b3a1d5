"""The copy of a text that DuckDB reads, and what kind of table it is.

    CSV, TSV and the like    its columns            Parquet              its columns
    JSON, JSON lines         its keys               any other text       line (from 1), text

Lines of other texts are written as JSON, since readers of CSV drop empty ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from fdstore.errors import NotText
from fdstore.model.records import Descriptor
from fdstore.text.media_types import BYTES_TYPE
from fdstore.text.previews import preview_of, sample_text

HEAD_BYTES = 65_536
"""The number of first bytes that tell what a text is."""

OBJECT_BYTES = 16 << 20
"""The largest object of JSON that is read with the usual memory."""

Format: TypeAlias = Literal["csv", "json", "lines", "parquet"]

READERS: dict[Format, str] = {
    "csv": "FROM read_csv('{path}', sample_size={sample})",
    "json": "FROM read_json('{path}', maximum_object_size={object_bytes})",
    "lines": "FROM read_json('{path}', format='newline_delimited', maximum_object_size={object_bytes}, "
    "columns={line: 'BIGINT', text: 'VARCHAR'})",
    "parquet": "FROM read_parquet('{path}')",
}

TYPES: dict[str, Format] = {"text/csv": "csv", "text/tab-separated-values": "csv"}


class _Line(msgspec.Struct):
    line: int
    text: str


class TableFile:
    """Writes a content, or a part of one, for DuckDB. `write` takes it in pieces of whole characters. `whole`
    is the beginning of the text that a part is of: few lines of a table look like any text."""

    def __init__(self, path: Path, *, is_json: bool = False, whole: str = "") -> None:
        self.path = path
        self.format: Format | None = "json" if is_json else None
        self._whole = whole
        self._descriptor: Descriptor | None = None
        self.file: BinaryIO = path.open("wb")
        self._kept = b""  # the head before the format is known, then a line that is not complete
        self._lines = 0
        self._encoder = msgspec.json.Encoder()

    def begin(self, descriptor: Descriptor) -> None:
        """Take the descriptor of the content, before its first piece."""
        self._descriptor = descriptor

    def write(self, piece: bytes) -> None:
        """Take a piece. Raises `NotText` for bytes that are not Parquet."""
        if self.format is None:
            piece, self._kept = self._kept + piece, b""
            if len(piece) < HEAD_BYTES:
                self._kept = piece
                return
            self.format = self._format_of(piece, is_all=False)
        self._add(piece)

    def _add(self, piece: bytes) -> None:
        if self.format != "lines":
            self.file.write(piece)
            return
        *whole, self._kept = (self._kept + piece).split(b"\n")
        lines = [_Line(number, line.decode()) for number, line in enumerate(whole, self._lines + 1)]
        self._lines += len(lines)
        self.file.write(self._encoder.encode_lines(lines))

    def close(self) -> None:
        """End the file. Raises `NotText`."""
        with self.file:
            if self.format is None:
                head, self._kept = self._kept, b""
                self.format = self._format_of(head, is_all=True)
                self._add(head)
            if self._kept:
                self.file.write(self._encoder.encode_lines([_Line(self._lines + 1, self._kept.decode())]))

    def reader(self, object_bytes: int, sample: int) -> str:
        """Return the query that reads it, with objects of JSON of up to `object_bytes`; the types of columns
        of CSV are those of the first `sample` rows, of all for -1."""
        assert self.format is not None
        values = {"{object_bytes}": str(object_bytes), "{sample}": str(sample), "{path}": str(self.path)}
        query = READERS[self.format]
        for name, value in values.items():
            query = query.replace(name, value)
        return query

    def _format_of(self, head: bytes, *, is_all: bool) -> Format:
        descriptor = self._descriptor
        assert descriptor is not None
        if head[:4] == b"PAR1":
            return "parquet"
        if descriptor.kind != "text":
            raise NotText(descriptor.fd, descriptor.media_type or BYTES_TYPE, descriptor.bytes)
        if "json" in descriptor.media_type:
            return "json"
        if known := TYPES.get(descriptor.media_type):
            return known
        text = head[:HEAD_BYTES].decode("utf-8", "ignore")
        start = text.lstrip()[:1]
        if not is_all:
            text = text[: text.rfind("\n") + 1]  # whole lines
        if _is_table(text) or (self._whole and _is_table(self._whole)):
            return "csv"
        return "json" if start in ("{", "[") else "lines"


def _is_table(text: str) -> bool:
    kind = preview_of(sample_text(text), HEAD_BYTES)
    return kind is not None and kind.kind == "table"
