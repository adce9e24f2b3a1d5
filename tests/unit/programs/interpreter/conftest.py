"""A session that tests of ordinary code and ordinary exceptions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fdstore.programs.interpreter.session import Session


@pytest.fixture(scope="module")
def shared() -> Iterator[Session]:
    with Session(functions=["read_log", "large", "github.issues"]) as session:
        yield session
