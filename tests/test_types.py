"""A user's type checker accepts the code of documents and reports wrong calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

import fdstore
from fdstore.tools.catalogue import BUILT_IN
from tests.documents import blocks_of
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", *(f"docs/how-to/own-loop{part}.md" for part in ("", "-functions", "-more")))

USE = """\
from typing import assert_type

import fdstore
import fdstore.aio


def first_hit(proc: fdstore.Process, fd: fdstore.FdLike) -> fdstore.Hit | None:
    found: fdstore.SearchResult = proc.search(fd, "ERROR")
    return found.hits[0] if found.hits else None


def of_a_store(store: fdstore.Store) -> None:
    assert_type(store.survey(), fdstore.Survey)
    assert_type(store.survey().unreadable, list[fdstore.Unreadable])
    assert_type(store.tree("triage"), fdstore.TreeRecord)
    assert_type(store.processes(), list[fdstore.ProcessRecord])


def of_a_process(proc: fdstore.Process) -> None:
    assert_type(proc.read("fd:1"), fdstore.Slice)
    assert_type(proc.read("fd:1").mode, fdstore.Mode)
    assert_type(proc.create("x"), fdstore.Descriptor)
    assert_type(proc.create("x").origin, fdstore.Origin | None)
    assert_type(proc.export("fd:1", "out"), fdstore.Export)
    assert_type(proc.open_stream(), fdstore.StreamWriter)
    proc.read("fd:1", mode="word")  # type: ignore[arg-type]


def of_tools(proc: fdstore.Process, names: list[fdstore.ToolName]) -> None:
    tools = fdstore.Toolset(proc, enabled=names)
    assert_type(tools.call("read_fd", {}), fdstore.ToolResult)
    assert_type(tools.offload("x").descriptor, fdstore.Descriptor | None)
    tools.definitions_for("gemini")  # type: ignore[arg-type]
    fdstore.Toolset(proc, enabled=["read_fd", "fork"])  # type: ignore[list-item]
    fdstore.Toolset(proc, enabled=["red_fd"])  # type: ignore[list-item]


async def awaited() -> None:
    async with await fdstore.aio.connect() as store:
        proc = await store.process("triage")
        assert_type(await proc.read("fd:1"), fdstore.Slice)
        assert_type(await proc.open_stream(), fdstore.aio.StreamWriter)
        tools = fdstore.aio.Toolset(proc, enabled=["read_fd"])
        assert_type(await tools.call("read_fd", {}), fdstore.ToolResult)
        assert_type(await tools.offload("x"), fdstore.Offloaded)
        async for piece in proc.follow("fd:1"):
            assert_type(piece, str)
"""


def python_of(document: str) -> str:
    blocks = blocks_of((ROOT / document).read_text("utf-8"))
    return "\n".join(block.text for block in blocks if block.language == "python")


def check(folder: Path, sources: Mapping[str, str]) -> None:
    """Check files as a user would in `folder`."""
    for name, source in sources.items():
        (folder / name).write_text(source)
    # a cache of its own, which outlives the test: without it the documents take ten seconds
    command = ["mypy", "--strict", "--config-file=", "--cache-dir", str(ROOT / ".mypy_cache" / "users")]

    done = subprocess.run(
        [sys.executable, "-m", *command, *sources],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough("a type checker of its own; `make lint` has the types too")
def test_a_strict_type_checker_accepts_right_calls_and_rejects_wrong_ones(tmp_path: Path) -> None:
    check(tmp_path, {"use.py": USE})


@pytest.mark.thorough(
    "the same calls in the documents, which import an SDK whose types take most of the time"
)
def test_a_strict_type_checker_accepts_the_documents(tmp_path: Path) -> None:
    check(tmp_path, {f"document_{number}.py": python_of(name) for number, name in enumerate(DOCUMENTS)})


def test_the_tool_names_known_to_a_type_checker_match_those_of_a_custom_loop() -> None:
    assert set(get_args(fdstore.ToolName)) == BUILT_IN.keys() - {"fork"}
