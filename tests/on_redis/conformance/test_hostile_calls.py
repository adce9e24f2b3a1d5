"""More than ten thousand hostile calls: each gives a typed error or a correct answer, its result parses, and
a refused call changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore import FDConfig, errors
from fdstore.client import Store
from fdstore.results.tool_outcome import Started, ToolResult
from fdstore.results.wrapping import store_references
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset.build import linked_programs
from tests.elements import elements
from tests.on_redis.conformance.calling import PROCESS_TOOLS, TEXT_TOOLS, context_of
from tests.on_redis.conformance.hostile_values import anything, arguments_of
from tests.properties import examples
from tests.servers import values_in
from tests.thorough import sample

EXAMPLES = 950
"""For each tool."""

TYPES = {
    kind.type
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.FDStoreError)
}
PLAIN = ("pick", "sql_fd")
"""The tools whose results are texts of others, as they are, if they are short."""

MANY_KEYS = 60


class HostileCaller:
    """Calls tools of a toolbox with stored contents and a directory, and compares everything stored."""

    def __init__(self, store: Store, client: redis.Redis, folder: Path) -> None:
        self.store = store
        self._client = client
        self._root = folder / "root"
        (self._root / "sub").mkdir(parents=True)
        (self._root / "in.txt").write_text("in")
        (self._root / "link").symlink_to(folder / "secret")
        (folder / "secret").write_text("secret")
        os.mkfifo(self._root / "fifo")
        (folder / "adder.toml").write_text('[model]\nname = "any"\n')
        self._linked = linked_programs({"adder": folder / "adder.toml"})
        self._folder = folder
        self.begin()

    def begin(self) -> None:
        """Reset the store to the contents that the calls refer to."""
        self._client.flushall()
        proc = self.store.process("triage")
        config = FDConfig(max_direct_output_chars=200, default_page_size=40, max_read_chars=3000)
        roots = {"export_root": self._root, "preload_root": self._root}
        enabled, commands = [*TEXT_TOOLS, "sql_fd", *PROCESS_TOOLS], ("grep", "sort")
        context = context_of(proc, enabled, config=config, linked=self._linked, commands=commands, **roots)
        self._toolbox = Toolbox(context, [pick])
        proc.create("".join(f"line {number}\n" for number in range(1, 30)), page_size=40)
        proc.create("</fd_content>\0ERROR \N{GRINNING FACE}\r\n" * 9, page_size=7)
        self.store.run(store_references(context, '<ref id="plan">dig\nfill</ref>'))
        proc.child(share=["fd:1"])
        made = self.store.run(self._toolbox.start("pipe", {"commands": ["sort"], "in_fd": "fd:1"}))
        assert 'process="triage.2"' in made.content
        self.state = self._look()

    def call(self, name: Any, arguments: Any) -> ToolResult | Started:
        result = self.store.run(self._toolbox.start(name, arguments))
        before, self.state = self.state, self._look()
        if isinstance(result, ToolResult) and result.is_error:
            assert self.state == before, f"{name} was refused and changed something"
        if len(self.state) > MANY_KEYS or b"fdstore:{triage}:triage:fd:1" not in self.state:
            self.begin()
        return result

    def _look(self) -> dict[Any, Any]:
        """Return all stored keys and files, except the replies kept for idempotency."""
        keys = [key for key in self._client.scan_iter(count=1000) if b":op:" not in key]
        found: dict[Any, Any] = dict(values_in(self._client, keys))
        assert (self._folder / "secret").read_text() == "secret"
        for path in self._root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                found[path] = path.read_bytes()
                if path.name != "in.txt" and len(found[path]) > 10**5:
                    path.unlink()
        return found


def pick(texts: list[str], count: int = 1, level: Any = None) -> str:
    """A user's function."""
    return "|".join(texts) * min(count, 100)


@pytest.fixture
def hostile_caller(store: Store, redis_url: str, tmp_path: Path) -> Any:
    with redis.Redis.from_url(redis_url) as client:
        yield HostileCaller(store, client, tmp_path)


def check(result: ToolResult | Started, ours: bool) -> None:
    """Assert that the result can be sent to a model."""
    if isinstance(result, Started):
        return
    assert result.content.encode("utf-8") or not result.is_error
    assert len(result.content) < 10_000
    if not ours and not result.is_error:
        return
    for element in elements(result.content):
        assert (element.name == "fd_error") == result.is_error
        if result.is_error:
            assert element["type"] in TYPES - {"error"}
            assert 0 < len(element.message) < 1000


hard = settings(
    max_examples=examples(EXAMPLES),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", sample([*TEXT_TOOLS, "sql_fd", *PROCESS_TOOLS, "pick"], 5, "other tools"))
def test_any_arguments_from_a_model_get_a_result(hostile_caller: HostileCaller, name: str) -> None:
    @hard
    @given(arguments_of(name))
    def answered(arguments: Any) -> None:
        check(hostile_caller.call(name, arguments), ours=name not in PLAIN)

    answered()


@settings(hard, max_examples=examples(200))
@given(st.data())
def test_any_tool_name_from_a_model_gets_a_result(hostile_caller: HostileCaller, data: st.DataObject) -> None:
    check(hostile_caller.call(data.draw(anything), data.draw(anything)), ours=True)


@pytest.mark.parametrize(
    ("fds", "files", "kind"),
    [
        (["fd:1#L1", "fd:99"], ["in.txt"], "not_found"),
        (["fd:1#L1", "fd:1#L99"], [], "invalid_range"),
        (["fd:1#L1"], ["in.txt", "none"], "file_not_found"),
    ],
)
def test_a_spawn_refused_for_its_last_preload_stores_none_of_the_earlier_ones(
    hostile_caller: HostileCaller, fds: list[str], files: list[str], kind: str
) -> None:
    preload = {"additional_preload_fds": fds, "additional_preload_files": files}

    result = hostile_caller.call("spawn", {"program_name": "adder", "query": "Add.", **preload})

    assert isinstance(result, ToolResult)
    assert [element["type"] for element in elements(result.content)] == [kind]
