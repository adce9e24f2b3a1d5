"""The examples of docstrings, found without importing anything and run as a reader would type them.

Async examples run as in `python -m asyncio`: `await` is allowed in any expression. Output is compared as in
doctest; `...` matches any text.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import io
import tomllib
import traceback
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = (ROOT / "fdstore", ROOT / "workers" / "fdstore_workers")
OF_A_STORE = ("store.", "proc.", "proc,", "fdstore.connect", "tools.")
"""The words that show that an example needs a store."""


class Docstring(NamedTuple):
    """The examples of one docstring; `name` is where it stands, as `fdstore.aio.Store.process`."""

    name: str
    module: str
    text: str

    @property
    def examples(self) -> list[doctest.Example]:
        return doctest.DocTestParser().get_examples(self.text, self.name)

    @property
    def needs_store(self) -> bool:
        return any(word in each.source for each in self.examples for word in OF_A_STORE)

    @property
    def is_awaited(self) -> bool:
        return any("await " in each.source or "async " in each.source for each in self.examples)


@cache
def docstrings() -> list[Docstring]:
    """All docstrings with examples but those of adapters, which run with their frameworks."""
    ours = adapters()
    return [
        found
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        if path not in ours
        for found in _docstrings_of(path, package.parent)
    ]


def adapters() -> list[Path]:
    """The adapters of agent frameworks: modules of `fdstore/integrations` with an extra of their name, which
    is not installed here."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    others = {"all"}
    while more := {name for each in others for name in _extras_in(extras[each])} - others:
        others |= more
    folder = ROOT / "fdstore" / "integrations"
    return [path for path in sorted(folder.glob("*.py")) if path.stem.replace("_", "-") in {*extras} - others]


def _extras_in(requirements: list[str]) -> list[str]:
    """The extras of ours that an extra installs too."""
    ours = [each for each in requirements if each.startswith("fdstore[")]
    return [name for each in ours for name in each[len("fdstore[") : -1].split(",")]


def docstrings_of(module: str) -> Iterator[Docstring]:
    """The docstrings with examples of one module."""
    yield from _docstrings_of(ROOT.joinpath(*module.split(".")).with_suffix(".py"), ROOT)


def _docstrings_of(path: Path, parent: Path) -> Iterator[Docstring]:
    source = path.read_text("utf-8")
    if ">>> " in source:
        module = ".".join(path.relative_to(parent).with_suffix("").parts).removesuffix(".__init__")
        yield from _docstrings_in(ast.parse(source), module, module)


def _docstrings_in(node: Any, name: str, module: str) -> Iterator[Docstring]:
    text = ast.get_docstring(node)
    if text and ">>> " in text:
        yield Docstring(name, module, text)
    for inner in node.body:
        if isinstance(inner, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _docstrings_in(inner, f"{name}.{inner.name}", module)


def run(found: Docstring, names: dict[str, Any], loop: asyncio.AbstractEventLoop | None = None) -> None:
    """Run the examples with the names of their module and `names`; fail where one prints something else."""
    world = {**vars(import_module(found.module)), "__name__": "__main__", **names}
    checker = doctest.OutputChecker()
    for each in found.examples:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if loop else 0
        code = compile(each.source, f"<{found.name}>", "single", flags, dont_inherit=True)
        printed, raised = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            try:
                result = eval(code, world)
                if loop and asyncio.iscoroutine(result):
                    loop.run_until_complete(result)
            except Exception as error:
                if each.exc_msg is None:
                    raise
                raised = traceback.format_exception_only(error)[-1]
        got, wanted = printed.getvalue(), each.want
        if each.exc_msg is not None:
            got, wanted = raised or "no error", each.exc_msg
        options = doctest.ELLIPSIS
        for option, is_on in each.options.items():
            assert option != doctest.SKIP, f"{found.name} has an example that does not run"
            options |= option if is_on else 0
        assert checker.check_output(wanted, got, options), (
            f"{found.name}, line {each.lineno + 1}:\n>>> {each.source}"
            + checker.output_difference(each, got, options)
        )
