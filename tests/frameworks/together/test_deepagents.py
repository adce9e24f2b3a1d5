"""The backend in real deep agents, and in the official suite of sandboxes.

The suite is for backends with a shell, and older than deepagents 0.7. `execute` answers what can be answered
from the files. What `EXPECTED` names fails on deepagents' own `StoreBackend` too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest
import redis
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_tests.integration_tests import SandboxIntegrationTests

import fdstore
from fdstore.client import Process, Store
from fdstore.integrations.deepagents import FdstoreBackend
from fdstore.local.redis_server import PrivateServer

NEEDS_SHELL = "runs a script of a shell"
RELATIVE_PATHS = "expects relative paths of glob; since 0.7 they are absolute"
PAGES_WITHOUT_LF = (
    "expects a page without its last line end; StoreBackend keeps it, so that pages join to the file"
)
SMALL_BINARIES = (
    "expects the limit of 500 KB that sandboxes have; StoreBackend has none, and images are larger"
)
EXPECTED = {
    "test_execute_large_stdout_payload": NEEDS_SHELL,
    "test_aexecute_large_stdout_payload": NEEDS_SHELL,
    "test_ls_large_directory": NEEDS_SHELL,
    "test_ls_lists_nested_directories": "expects empty directories, which a store of keys has not",
    "test_glob": RELATIVE_PATHS,
    "test_glob_basic_pattern": RELATIVE_PATHS,
    "test_glob_with_directories": RELATIVE_PATHS,
    "test_glob_hidden_files_explicitly": RELATIVE_PATHS,
    "test_glob_with_character_class": RELATIVE_PATHS,
    "test_glob_with_question_mark": RELATIVE_PATHS,
    "test_write_existing_file_fails": "expects that write refuses to overwrite; since 0.7 it overwrites",
    "test_edit_multiple_occurrences_without_replace_all": "expects the wording of sandboxes",
    "test_aread_large_text_payload_paginated_roundtrip": PAGES_WITHOUT_LF,
    "test_write_read_download_large_text_with_escaped_content": PAGES_WITHOUT_LF,
    "test_awrite_aread_adownload_large_text_with_escaped_content": PAGES_WITHOUT_LF,
    "test_read_binary_file_1_mib_returns_error": SMALL_BINARIES,
    "test_aread_binary_file_1_mib_returns_error": SMALL_BINARIES,
}


class ShellOfFiles(FdstoreBackend, SandboxBackendProtocol):
    """The backend with commands of a shell that the suite uses on files: `cat`, `wc`, `[ -f` and `rm`."""

    @property
    def id(self) -> str:
        return "fdstore"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        match shlex.split(command):
            case ["cat", path]:
                [file] = self.download_files([path])
                output = (file.content or b"").decode()
                return ExecuteResponse(output=output, exit_code=0 if file.error is None else 1)
            case ["wc", option, path]:
                [file] = self.download_files([path])
                data = file.content or b""
                count = len(data) if option == "-c" else data.count(b"\n")
                return ExecuteResponse(output=f"{count} {path}", exit_code=0)
            case ["[", "-f", path, "]", "&&", "echo", "exists", "||", "echo", "missing"]:
                [file] = self.download_files([path])
                return ExecuteResponse(output="exists" if file.error is None else "missing", exit_code=0)
            case ["rm", "-rf", path]:
                self.delete(path)
        return ExecuteResponse(output="", exit_code=0)


class TestStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, redis_server: PrivateServer) -> Iterator[SandboxBackendProtocol]:
        redis_server.start()
        with fdstore.connect(redis_server.url) as store:
            yield ShellOfFiles(store, process="files")
            store.drop_tree("files")


def expect_failure(name: str, reason: str) -> None:
    """Mark a test of the suite, in a copy: the suite's own function is shared."""
    test = getattr(SandboxIntegrationTests, name)
    copy = FunctionType(test.__code__, test.__globals__, name, test.__defaults__, test.__closure__)
    setattr(TestStandard, name, pytest.mark.xfail(reason=reason, strict=True)(copy))


for _name, _reason in EXPECTED.items():
    expect_failure(_name, _reason)


class ScriptedChat(FakeMessagesListChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> ScriptedChat:
        return self


def ask(name: str, call_id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


@pytest.fixture
def files(store: Store) -> Process:
    return store.process("files")


@pytest.fixture
def backend(store: Store) -> FdstoreBackend:
    return FdstoreBackend(store, process="files")


@pytest.mark.parametrize("routed", [False, True], ids=["all-files", "large-results-alone"])
def test_a_deep_agent_moves_a_large_result_to_the_store_and_reads_on_in_it(
    store: Store, routed: bool
) -> None:
    text = "".join(f"line {number} of the build\n" for number in range(1, 200_001))
    backend: Any = FdstoreBackend(store)
    if routed:
        backend = CompositeBackend(default=StateBackend(), routes={"/large_tool_results/": backend})

    def read_log() -> str:
        """Return the log of the build."""
        return text

    path = "/large_tool_results/call_1"
    model = ScriptedChat(
        responses=[
            ask("read_log", "call_1"),
            ask("read_file", "call_2", file_path=path, offset=150_000, limit=2),
            ask(
                "grep", "call_3", pattern="line 123456 of", path="/large_tool_results", output_mode="content"
            ),
            AIMessage("Done."),
        ]
    )
    agent = create_deep_agent(model, [read_log], backend=backend)

    state = agent.invoke({"messages": "Go."}, {"configurable": {"thread_id": "chat-7"}})

    moved, page, found = [m.text for m in state["messages"] if isinstance(m, ToolMessage)]
    assert path in moved
    assert len(moved) < 5000
    assert "line 150001 of the build" in page
    assert "line 150003" not in page
    assert "line 123456 of the build" in found
    [descriptor] = store.process("chat-7").list(prefix="/")
    assert store.process("chat-7").read(descriptor.fd, read_all=True).text == text


def test_each_thread_has_files_of_its_own(store: Store) -> None:
    agent = create_deep_agent(
        ScriptedChat(
            responses=[ask("write_file", "call_1", file_path="/a.txt", content="A"), AIMessage("Done.")]
        ),
        backend=FdstoreBackend(store),
    )

    for thread in ("one", "Two"):
        agent.invoke({"messages": "Go."}, {"configurable": {"thread_id": thread}})

    assert sorted(tree.id[:4] for tree in store.trees()) == ["one", "two-"]


def test_without_a_thread_the_error_says_what_to_do(store: Store) -> None:
    backend = FdstoreBackend(store)

    assert "thread_id" in str(backend.write("/a.txt", "A").error)
    assert "thread_id" in str(backend.read("/a.txt").error)


def test_an_edit_keeps_what_another_agent_writes_meanwhile(
    store: Store, files: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FdstoreBackend(store, process="files")
    backend.write("/list.txt", "milk\n")
    put, others = Process.put, ["bread\n"]

    def put_after_another(self: Process, key: str, *arguments: Any, **options: Any) -> Any:
        if others:
            put(self, key, "milk\n" + others.pop())
        return put(self, key, *arguments, **options)

    monkeypatch.setattr(Process, "put", put_after_another)
    result = backend.edit("/list.txt", "milk", "oat milk")

    assert result.error is None
    assert files.read("name:/list.txt").text == "oat milk\nbread\n"


def test_a_window_that_is_too_long_is_read_from_its_beginning(backend: FdstoreBackend) -> None:
    line = "x" * 999_999 + "\n"
    backend.write("/long.txt", line * 5 + "y" * 3_000_000)

    first = backend.read("/long.txt")
    last = backend.read("/long.txt", offset=5)

    assert (first.start_line, first.end_line, first.next_offset, first.total_lines) == (1, 1, 1, 6)
    assert (last.start_line, last.end_line, last.next_offset) == (6, 6, None)
    assert last.file_data is not None
    assert last.file_data["content"] == "y" * 2_000_000


def test_bytes_are_stored_as_they_are(backend: FdstoreBackend, files: Process, png: bytes) -> None:
    [uploaded] = backend.upload_files([("/shot.png", png)])

    assert uploaded.error is None
    assert files.read_bytes("name:/shot.png") == png
    read = backend.read("/shot.png").file_data
    assert read is not None
    assert read["encoding"] == "base64"
    assert backend.grep("PNG").matches == []
    assert "binary" in str(backend.edit("/shot.png", "a", "b").error)


def test_files_are_found_below_a_directory_and_by_pattern(backend: FdstoreBackend) -> None:
    for path in ("/src/a.py", "/src/deep/b.py", "/src2/c.py", "/readme.md"):
        backend.write(path, "TODO (1+1)\n")

    def paths(result: Any) -> list[str]:
        return sorted(match["path"] for match in result.matches)

    assert [entry["path"] for entry in backend.ls("/").entries or ()] == ["/readme.md", "/src/", "/src2/"]
    assert paths(backend.glob("*.py", "/src")) == ["/src/a.py", "/src/deep/b.py"]
    assert paths(backend.glob("/*.py", "/src")) == ["/src/a.py"]
    assert paths(backend.grep("(1+1)", "/src", "*.py")) == ["/src/a.py", "/src/deep/b.py"]
    assert paths(backend.grep("TODO", "/src/a.py")) == ["/src/a.py"]
    capped = backend.grep("TODO", max_count=2)
    assert (len(capped.matches or ()), capped.truncated) == (2, True)
    assert "traversal" in str(backend.glob("../*").error)
    assert backend.delete("/src").error is None
    assert paths(backend.glob("*")) == ["/readme.md", "/src2/c.py"]


def test_failures_of_the_store_are_errors_of_the_protocol(store: Store, redis_url: str) -> None:
    store.process("files").put("/a.txt", "A")
    with fdstore.connect(redis_url, looking=True) as read_only:
        backend = FdstoreBackend(read_only, process="files")

        assert "Error: " in str(backend.write("/a.txt", "B").error)
        assert "Error: " in str(backend.edit("/a.txt", "A", "B").error)
        assert "Error: " in str(backend.delete("/a.txt").error)


def test_files_that_were_removed_are_not_there(store: Store, backend: FdstoreBackend) -> None:
    backend.write("/a.txt", "A")
    store.drop_tree("files")

    assert backend.ls("/").entries == []
    assert "not found" in str(backend.read("/a.txt").error)
    assert backend.write("/a.txt", "B").error is None
    assert [entry["path"] for entry in backend.ls("/").entries or ()] == ["/a.txt"]


def test_the_loss_of_all_files_is_told_until_one_is_written_again(
    redis_url: str, backend: FdstoreBackend
) -> None:
    backend.write("/a.txt", "A")
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()

    assert "lost" in str(backend.ls("/").error)
    assert "lost" in str(backend.read("/a.txt").error)
    assert "lost" in str(backend.edit("/a.txt", "A", "B").error)
    assert "lost" in str(backend.delete("/a.txt").error)
    assert backend.write("/a.txt", "B").error is None
    assert [entry["path"] for entry in backend.ls("/").entries or ()] == ["/a.txt"]


def test_the_files_of_a_thread_have_limits(store: Store) -> None:
    backend = FdstoreBackend(store, process="files", limits=fdstore.TreeLimits(tree_fds=1))

    assert backend.write("/a.txt", "A").error is None
    assert "tree_fds" in str(backend.write("/b.txt", "B").error)
    assert [entry["path"] for entry in backend.ls("/").entries or ()] == ["/a.txt"]
