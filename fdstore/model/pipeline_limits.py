"""The limits of a pipeline: set in `[limits]` of a program, stored with the pipeline, kept by its worker."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fdstore.model.fields import about
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Ordinal

# bounded where clocks and waits still work: a lock refuses a time-out of more than 292 years
MAX_SECONDS = 1e9
Seconds = Annotated[float, Meta(ge=1, le=MAX_SECONDS)]
"""Of a program file."""

StreamBytes = Annotated[Ordinal, about("The most bytes that one stream may store.")]
STREAM_IDLE = about("The most seconds a stream may be silent.")
WALL_SECONDS = about("The most seconds from its start to its end.")

_Duration = Annotated[float, Meta(gt=0, le=MAX_SECONDS)]


class PipelineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one run of a pipeline. Of an output, tee or error that is too long, the bytes up to the limit
    are delivered."""

    stream_bytes: StreamBytes = 1 << 30
    stream_idle_seconds: Annotated[_Duration, STREAM_IDLE] = 600.0
    wall_seconds: Annotated[_Duration, WALL_SECONDS] = 3600.0

    @classmethod
    def of(cls, limits: object) -> PipelineLimits:
        """Return those of the attributes of `limits` that are limits of pipelines."""
        return msgspec.convert(limits, cls, from_attributes=True)


prepare(PipelineLimits)
DEFAULTS = PipelineLimits()
