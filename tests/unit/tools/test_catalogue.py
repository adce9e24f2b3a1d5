"""The facts of the built-in tools agree with each other."""

from __future__ import annotations

import pkgutil

import pytest

from fdstore.errors import InvalidArgument
from fdstore.tools import built_in
from fdstore.tools.catalogue import BUILT_IN, PROCESS_TOOLS, READING_TOOLS
from fdstore.tools.needs import PYTHON, SQL
from fdstore.toolset.build import described_context

TOOLS = list(BUILT_IN.values())


def test_each_file_of_the_package_is_a_tool_of_its_name() -> None:
    assert {module.name for module in pkgutil.iter_modules(built_in.__path__)} == BUILT_IN.keys()


def test_tools_are_listed_by_position_those_on_descriptors_first() -> None:
    assert [tool.position for tool in TOOLS] == sorted({tool.position for tool in TOOLS})
    on_processes = [tool.name in PROCESS_TOOLS for tool in TOOLS]
    assert on_processes == sorted(on_processes)


def test_what_is_offered_for_reading_changes_nothing_that_is_stored() -> None:
    assert READING_TOOLS[:2] == ("read_fd", "search_fd")
    assert "list_fds" in READING_TOOLS
    assert {BUILT_IN[name].effect for name in READING_TOOLS} == {"reads"}


@pytest.mark.parametrize(
    "name", [tool.name for tool in TOOLS if tool.agents_only or tool.needs not in (None, PYTHON, SQL)]
)
def test_an_own_loop_is_told_what_a_tool_lacks(name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        described_context(enabled=[name], config=None)

    tool = BUILT_IN[name]
    assert caught.value.argument == (tool.needs.argument if tool.needs else "enabled")
    assert name in caught.value.problem


def test_files_are_stored_with_put_fd_and_own_texts_with_write_fd() -> None:
    both = described_context(enabled=["put_fd", "write_fd"], config=None, preload_root=".")
    alone = described_context(enabled=["put_fd"], config=None)

    put, write = BUILT_IN["put_fd"], BUILT_IN["write_fd"]

    assert ("file" in put.describe(both), "file" in write.describe(both)) == (True, False)
    assert put.explain(both) == '- store a file on disk: put_fd(file="build.log")'
    assert write.explain(both).startswith('- write a text yourself: write_fd(data="...")')
    assert put.explain(alone) == '- store a whole text: put_fd(text="...")'
