"""Program files, written and loaded."""

from __future__ import annotations

import pytest

from fdstore.agents.loop.program_loader import Program, load
from fdstore.errors import InvalidProgram

MODEL = '[model]\nname = "claude-x"\n'


@pytest.fixture
def write(tmp_path):
    """Write a file under the test's folder; a program gets a [model] unless it has one."""

    def write(name: str, text: str = ""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if "[model]" in text or not name.endswith(".toml") else MODEL + text)
        return path

    return write


@pytest.fixture
def root(write):
    """Load a one-file bundle and return its root program."""

    def root(text: str = "") -> Program:
        bundle = load(write("agent.toml", text))
        return bundle.programs[bundle.root]

    return root


@pytest.fixture
def load_error(write):
    """Return the key and problem of the error for a program file."""

    def load_error(text: str) -> tuple[str, str]:
        path = write("agent.toml", text)
        with pytest.raises(InvalidProgram) as caught:
            load(path)
        return caught.value.argument.removeprefix(str(path)).removeprefix(": "), caught.value.problem

    return load_error
