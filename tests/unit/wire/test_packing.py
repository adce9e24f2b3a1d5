"""Requests packed for the wire."""

from __future__ import annotations

import pytest

from fdstore.errors import InvalidArgument
from fdstore.wire.packing import pack


def test_a_lone_surrogate_is_refused_by_a_typed_error() -> None:
    with pytest.raises(InvalidArgument, match="lone surrogate"):
        pack([("SET", "key", "x" * 1000 + "\ud800")])
