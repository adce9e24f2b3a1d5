"""The program of docs/how-to/frameworks/smolagents.md runs with the real smolagents."""

from __future__ import annotations

from collections.abc import Callable

from fdstore.client import Store


def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    run_example: Callable[[str], str], store: Store
) -> None:
    printed = run_example("smolagents")

    assert '<fd_result fd="fd:1"' in printed
    assert "\nline 900 of the build\n" in printed
    assert "line 500 " not in printed
    assert "Done." in printed
    [tree] = store.trees()
    stored = store.process(tree.id).read("fd:1", read_all=True).text
    assert stored == "".join(f"line {number} of the build\n" for number in range(1, 1001))
