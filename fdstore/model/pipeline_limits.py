"""The limits of a pipeline: set in `[limits]` of a program, stored with the pipeline, kept by its worker."""

from __future__ import annotations

import msgspec


class PipelineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one run of a pipeline.

    stream_bytes         size of each output, tee and error; the bytes up to the limit are delivered
    stream_idle_seconds  time without a byte read or written
    wall_seconds         duration of the run
    """

    stream_bytes: int = 1 << 30
    stream_idle_seconds: float = 600.0
    wall_seconds: float = 3600.0

    @classmethod
    def of(cls, limits: object) -> PipelineLimits:
        """Return those of the attributes of `limits` that are limits of pipelines."""
        return msgspec.convert(limits, cls, from_attributes=True)


DEFAULTS = PipelineLimits()
