"""Write contents to files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from fdstore.errors import FDStoreError
from fdstore.files.target import Target, TargetIdentity
from fdstore.model.records import ContentKind, Descriptor, Export
from fdstore.store.contents.contents import part_of, whole_of
from fdstore.store.contents.locating import fetch_part
from fdstore.store.contents.resolving import (
    content_info,
    explain_if_gone,
    reads_content,
    retry_if_gone,
)
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.trees.export_quota import LEFT_AS_IT_IS, Allowance
from fdstore.text.selection import AnyPart
from fdstore.wire.operation import Disk, Operation


class Written(NamedTuple):
    """The output of an export: the number of characters (0 of bytes), and whether it is text or bytes."""

    chars: int
    kind: ContentKind


@reads_content
def write_part(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    write: Callable[[bytes], object],
    *,
    begin: Callable[[Descriptor], None] | None = None,
) -> Operation[Written]:
    """Pass a part of a content (all of it for None) to `write`, in order and in bounded memory: each call
    gets whole characters of UTF-8, or bytes of bytes. `begin` gets the descriptor first, and may raise.
    Return what was written.

    Raises `Conflict` if a name means another content before all is written, `NotFound`.
    """
    return (yield from explain_if_gone(handle, fd, lambda: _write_part(handle, fd, part, write, begin=begin)))


def _write_part(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    write: Callable[[bytes], object],
    allowance: Allowance | None = None,
    *,
    begin: Callable[[Descriptor], None] | None = None,
) -> Operation[Written]:
    """As `write_part`, after the `allowance` has reserved room for each piece. Raises `ContentGone`."""
    chars = size_bytes = 0

    def take(run: list[bytes]) -> Operation[None]:
        nonlocal chars, size_bytes
        data = b"".join(run)
        size_bytes += len(data)
        if info.descriptor.kind == "text":
            chars += len(data) if data.isascii() else len(data.decode("utf-8"))
        if allowance:
            yield from allowance.add(len(data))
        yield Disk(lambda: write(data), must_end=True)

    info, span = yield from (part_of(handle, fd, part) if part else whole_of(handle, fd))
    if begin:
        begin(info.descriptor)
    yield from fetch_part(info, span, take)
    d = info.descriptor
    if part is None and d.state == "sealed" and (size_bytes, chars) != (d.bytes, d.chars):
        raise ValueError(f"its pages have {size_bytes} bytes, not {d.bytes}")
    return Written(chars, info.descriptor.kind)


@reads_content
def export(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    target: Target,
    mode: Literal["write", "append"],
    progress: Callable[[int], None] | None = None,
    plan: Callable[[TargetIdentity, Export], Operation[None]] | None = None,
    allowance: Allowance | None = None,
) -> Operation[Export]:
    """Write a part of a content (all of it for None) to a file, exactly, in bounded memory. `progress` is
    called with the bytes written so far, `plan` before the file is renamed into place. `allowance` reserves
    the bytes before they are written, and may refuse."""

    def attempt() -> Operation[Export]:
        written = 0

        def write(data: bytes) -> None:
            nonlocal written
            target.write(data)
            written += len(data)
            if progress:
                progress(written)

        if allowance:
            size_bytes = None if part else (yield from content_info(handle, fd)).descriptor.bytes
            yield from allowance.begin(size_bytes)
        try:
            # inside the try: if a cancellation arrives during __enter__, __exit__ still releases the file
            yield Disk(target.__enter__, must_end=True)
            chars, kind = yield from _write_part(handle, fd, part, write, allowance)
            if allowance:
                yield from allowance.settle()
            mark: TargetIdentity = yield Disk(target.mark, must_end=True)
            done = Export(
                fd=fd,
                file_path=target.path,
                mode=mode,
                char_count=chars,
                size_bytes=mark.size_bytes,
                kind=kind,
            )
            if plan:
                yield from plan(mark, done)
            yield Disk(target.commit, must_end=True)
        finally:
            target.__exit__(None, None, None)
        return done

    try:
        return (yield from retry_if_gone(handle, fd, attempt))
    except LEFT_AS_IT_IS:
        raise
    except FDStoreError:
        if allowance:
            yield from allowance.refund()
        raise
