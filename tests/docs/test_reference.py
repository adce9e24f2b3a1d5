"""The reference names everything that a user can write: each name, option, key, error and variable."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import fdstore
import fdstore.aio
import fdstore.testing
from fdstore.elements.kinds import ELEMENTS
from fdstore.setup.settings import VARIABLES
from fdstore.store import keys
from tests.docs.site import ROOT, page_of, pages

REFERENCE = ROOT / "docs" / "reference"
MODULES = [*(ROOT / "fdstore").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]


@pytest.mark.parametrize("module", ["fdstore", "fdstore.aio", "fdstore.testing"])
def test_every_public_name_is_documented(module):
    anchors = set().union(*(each.anchors for each in pages().values()))
    names = [f"{module}.{name}" for name in import_module(module).__all__]

    # of errors there is a page, not one long entry
    missing = [name for name in names if name not in anchors and name != "fdstore.errors"]

    assert not missing


def test_every_public_method_is_documented_with_its_docstring():
    anchors = page_of("reference/python.md").anchors | page_of("reference/python-tools.md").anchors
    classes = (fdstore.Store, fdstore.Process, fdstore.StreamWriter, fdstore.Toolset)

    methods = [
        f"fdstore.{kind.__name__}.{name}"
        for kind in classes
        for name, value in vars(kind).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    ]

    assert len(methods) > 40
    assert not [name for name in methods if name not in anchors]


def test_every_adapter_is_documented():
    shown = page_of("reference/python-integrations.md").anchors
    modules = {file.stem for file in (ROOT / "fdstore" / "integrations").glob("*.py")}

    adapters = modules - {"__init__", "process_name", "thread_tools"}

    assert not [name for name in adapters if f"fdstore.integrations.{name}" not in shown]


def test_docstrings_are_shown_as_sentences_lists_and_code():
    html = page_of("reference/python-tools.md").path.read_text("utf-8")

    # a name and its meaning, a doctest, the fields of a record
    assert re.search(r"<li><code>enabled</code>: names of built-in tools", html)
    assert "<blockquote>" not in html
    assert re.search(r'<div class="language-pycon highlight">.*?read_fd', html)
    assert re.search(r"max_direct_output_chars\W.*int", html)


@pytest.mark.parametrize("script", ["docs_hooks.py", "reference/keys.py", "reference/markdown.py"])
def test_the_examples_of_the_generators_are_right(script):
    environ = os.environ | {"PYTHONPATH": str(ROOT / ".ci")}

    done = subprocess.run(
        [sys.executable, "-m", "doctest", ROOT / ".ci" / script], env=environ, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_element_that_the_code_renders_is_documented():
    names = {kind.name for kind in ELEMENTS}

    shown = page_of("reference/elements.md")

    assert names <= shown.anchors
    assert all(f"<{name} " in shown.text for name in names)


def test_every_key_of_the_table_is_documented():
    text = (REFERENCE / "keys.md").read_text("utf-8")
    table = re.findall(r"^    (\S.*?) {2,}(?:zset|hash|set|string|list|stream) ", keys.__doc__ or "", re.M)

    assert len(table) > 30
    assert not [pattern for pattern in table if f"| `{pattern}` |" not in text]


def test_every_variable_that_the_code_reads_is_documented():
    text = (REFERENCE / "environment.md").read_text("utf-8")
    documented = set(re.findall(r"`(_?[A-Z][A-Z_]+)`", text))

    read = {name: path for path in MODULES for name in variables_of(path)}
    declared = {each.name for said in VARIABLES.values() for each in said.values()}

    assert len(read | dict.fromkeys(declared)) > 20
    assert declared <= documented
    assert {name: path for name, path in read.items() if name not in documented} == {}


def test_every_documented_variable_is_one_that_the_code_reads_or_passes_on():
    text = (REFERENCE / "environment.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in MODULES)
    tables = set(re.findall(r"`(_?[A-Z][A-Z_]+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.M))))

    made_of_parts = {
        name for name in tables if re.fullmatch(r"OTEL_.*(TRACES|METRICS)_(EXPORTER|ENDPOINT)", name)
    }

    assert not [name for name in tables - made_of_parts if name not in source]


ENVIRONMENTS = ("env", "environ", "environb", "environment", "chosen")
"""Names under which the code has an environment."""


def variables_of(path: Path) -> Iterator[str]:
    """Yield the variables that a module reads: constants, and names of the module that stand for them."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }

    def named(node: ast.expr) -> str | None:
        value = node.value if isinstance(node, ast.Constant) else None
        value = constants.get(node.id) if isinstance(node, ast.Name) else value
        value = value.decode() if isinstance(value, bytes) else value
        return value if isinstance(value, str) and re.fullmatch(r"_?[A-Z][A-Z_]+", value) else None

    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault", value=owner), args=[key, *_]):
                found = key
            case ast.Call(func=ast.Attribute(attr="getenv"), args=[key, *_]):
                owner, found = ast.Name("environ"), key
            case ast.Call(func=ast.Name(id="_keep_absolute"), args=[key]):
                owner, found = ast.Name("environ"), key
            case ast.Subscript(value=owner, slice=key):
                found = key
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[owner]):
                found = key
            case _:
                continue
        owned = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if owned in ENVIRONMENTS and (name := named(found)):
            yield name
