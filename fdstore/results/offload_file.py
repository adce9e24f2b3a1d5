"""Offload an output that is in a file: stored in bounded memory, and shown as an `fd_result`."""

from __future__ import annotations

from typing import BinaryIO

from fdstore.results.context import Context
from fdstore.results.fd_results import display_of, render_fd
from fdstore.results.tool_outcome import Offloaded
from fdstore.store.contents import contents, descriptors
from fdstore.store.processes import savings, tool_calls
from fdstore.telemetry.counts import count
from fdstore.text.tokens import SAMPLE_CHARS, estimate_tokens
from fdstore.wire.operation import Operation

SAMPLE_BYTES = 5000
"""The bytes of each block that are kept to estimate the tokens of the file."""


def offload_file(
    context: Context, file: BinaryIO, source: str, call_id: str | None = None
) -> Operation[Offloaded]:
    r"""Store a binary file as text, whatever its size, and return it as the model is to see it. Bytes that
    are not UTF-8 are shown as `\xNN`. Under a `call_id` it is stored once.

    Raises `InvalidArgument` if the id belongs to another call, `QuotaExceeded`, `PathRefused`.
    """
    slot = None
    if call_id is not None:
        slot = f"{call_id}/file"
        yield from tool_calls.identify(context.handle, slot, tool_calls.request_of("offload_file", source))
    sample = _Sample(file)
    descriptor = yield from contents.ingest(
        context.handle,
        sample,  # type: ignore[arg-type]  # only `read` is used
        source,
        context.config.default_page_size,
        "backslashreplace",
        media_type="text/plain",
        call_id=slot,
    )
    display = display_of(context.policy_of(source))
    rendered = yield from render_fd(context, descriptor.fd, display)
    shown = rendered.text
    descriptor = yield from descriptors.stat(context.handle, descriptor.fd)
    count("fdstore_result_chars_total", "true", by=descriptor.chars)
    count("fdstore_kept_out_chars_total", by=max(0, descriptor.chars - len(shown)))
    if context.meter is not None:
        tokens = sample.tokens_of(descriptor.chars)
        yield from savings.count_kept(
            context.handle, context.meter, source, descriptor.chars, tokens, shown, slot
        )
    return Offloaded(shown, descriptor, facts=rendered.facts)


class _Sample:
    """A file that keeps some of each block that is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._kept = b""

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        if len(self._kept) < SAMPLE_CHARS:
            self._kept += block[:SAMPLE_BYTES]
        return block

    def tokens_of(self, chars: int) -> int:
        """Estimate the tokens of all `chars` characters by what was kept."""
        text = self._kept.decode("utf-8", "replace")
        return round(estimate_tokens(text) * chars / len(text)) if text else 0
