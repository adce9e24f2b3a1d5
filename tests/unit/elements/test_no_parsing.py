"""Only `fdstore/elements/` writes and reads elements: what the product did, it knows as facts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import fdstore
import fdstore_workers

ELEMENT = re.compile(r"</?(?:fd_|process_|message>|preview|tail)")

NAMED = {
    "tools/instructions.py": "the system prompt explains what an `fd_result` is",
    "hosts/mcp/server.py": "the same, for MCP clients",
    "hosts/hooks/host_tool.py": "the description of a tool names what its output becomes",
}
"""Modules that may name elements, by their paths in `fdstore/`, and why."""


def literals(module: Path) -> Iterator[str]:
    """Yield the strings of a module, without its docstrings: these show examples."""
    tree = ast.parse(module.read_text())
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) and id(node) not in shown else None
        if isinstance(value, (str, bytes)):
            yield value if isinstance(value, str) else value.decode("latin-1")


def modules_with_elements() -> set[str]:
    found = set()
    for package in (fdstore, fdstore_workers):
        root = Path(package.__file__).parent
        for module in root.rglob("*.py"):
            path = module.relative_to(root).as_posix()
            if path.startswith("elements/") or not ELEMENT.search(module.read_text()):
                continue
            if any(map(ELEMENT.search, literals(module))):
                found.add(path)
    return found


def test_no_other_module_holds_the_beginning_of_an_element() -> None:
    assert modules_with_elements() == NAMED.keys()


def test_elements_are_read_only_where_facts_cannot_come_along() -> None:
    root = Path(fdstore.__file__).parent
    users = {
        module.relative_to(root).as_posix()
        for module in root.rglob("*.py")
        if "elements.parse import" in module.read_text()
    }

    # the messages of a user's own loop, and results that the framework hands on as texts; the names of tools
    # in messages are those that the gateway offers; people are shown the texts in a result without its tags
    assert users == {
        "tools/clear_messages.py",
        "inspector/reading/result_card.py",
        "integrations/haystack.py",
        "hosts/gateway/rewriting.py",
    }
