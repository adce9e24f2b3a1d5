"""Every Struct that a function of the product decodes or converts to is prepared when its module is imported.

Types that are known by a variable alone (of a hash, an element, the arguments of a tool) are prepared where
they are collected.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
IN_FUNCTIONS = {"msgspec.convert", "msgspec.json.decode", "msgspec.msgpack.decode"}
PREPARING = {"prepare", "Hash", "msgspec.json.Decoder", "msgspec.msgpack.Decoder"}
WORDS = ("Struct", "msgspec", "prepare", "Hash")
"""Each module with a Struct or one of these calls has one of them."""
LAST_WORDS = {each.rpartition(".")[2] for each in IN_FUNCTIONS | PREPARING}


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, bool]]:
    """Yield the calls of a module, with the class each stands in and whether a function makes it."""
    left = [(tree, "", False)]
    while left:
        node, cls, in_function = left.pop()
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.Call):
                yield each, cls, in_function
            name = each.name if isinstance(each, ast.ClassDef) else cls
            is_function = isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            left.append((each, name, in_function or is_function))


def names(node: ast.AST, cls: str) -> set[str]:
    return {cls if name == "cls" else name for name in re.findall(r"\w+", ast.unparse(node))}


@pytest.mark.thorough("it reads the whole source")
def test_every_struct_that_functions_decode_is_prepared() -> None:
    texts = [
        path.read_text("utf-8")
        for part in ("fdstore", "workers")
        for path in (ROOT / part).rglob("*.py")
        if "bench" not in path.parts
    ]
    # to parse the others takes time
    trees = [ast.parse(text) for text in texts if any(word in text for word in WORDS)]
    structs = {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Struct" in "".join(map(ast.unparse, node.bases))
    }
    decoded, prepared = set(), set()
    for tree in trees:
        for call, cls, in_function in calls(tree):
            if getattr(call.func, "attr", getattr(call.func, "id", "")) not in LAST_WORDS:
                continue  # nothing of it needs to be written out, which takes time
            named = [each.value for each in call.keywords if each.arg == "type"] + call.args[1:2]
            function = ast.unparse(call.func)
            if in_function and function in IN_FUNCTIONS and named:
                decoded |= names(named[0], cls)
            elif not in_function and function in PREPARING:
                prepared |= {name for each in call.args for name in names(each, cls)}

    assert len(decoded & structs) > 10
    assert decoded & structs <= prepared
