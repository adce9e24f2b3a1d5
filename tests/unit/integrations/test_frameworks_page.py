"""docs/how-to/frameworks.md has a row for every adapter, and a page of its own shows its example."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib

import pytest

from fdstore.errors import MissingExtra
from tests import examples
from tests.frameworks.conformance.exceptions import EXCEPTIONS

HOW_TO = examples.ROOT / "docs" / "how-to"
TABLE = (HOW_TO / "frameworks.md").read_text("utf-8")
ADAPTERS = [path.stem for path in examples.adapters()]
RECIPES = sorted(
    {path.stem.removesuffix("_example") for path in (examples.ROOT / "examples" / "frameworks").glob("*.py")}
    - set(ADAPTERS)
)
"""Frameworks without an adapter, with a program that gives their agents a `Toolset`."""

MAX_LINES = 20


def row_of(name: str) -> list[str]:
    [row] = [line for line in TABLE.splitlines() if f"| `{name}` |" in line]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_page_shows_the_example_as_it_is(name: str) -> None:
    example = (examples.ROOT / "examples" / "frameworks" / f"{name}_example.py").read_text("utf-8")
    page = (HOW_TO / "frameworks" / f"{name.replace('_', '-')}.md").read_text("utf-8")
    code = [line for line in example.splitlines() if line and not line.startswith('"""')]

    assert f"```python\n{example}```" in page
    assert f"pip install '.[{name.replace('_', '-')}]'" in page
    assert len(code) <= MAX_LINES
    assert f"](frameworks/{name.replace('_', '-')}.md)" in row_of(name)[0]


@pytest.mark.parametrize("name", RECIPES)
def test_the_page_of_a_recipe_shows_its_program_as_it_is(name: str) -> None:
    program = (examples.ROOT / "examples" / "frameworks" / f"{name}_example.py").read_text("utf-8")
    page = (HOW_TO / "frameworks" / f"{name}.md").read_text("utf-8")

    assert f"```python\n{program}```" in page
    assert f"](frameworks/{name}.md)" in TABLE


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_table_tells_about_how_long_an_adapter_is(name: str) -> None:
    source = examples.ROOT / "fdstore" / "integrations" / f"{name}.py"
    lines = source.read_text("utf-8").count("\n")

    assert abs(int(row_of(name)[3]) - lines) <= lines / 10


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_table_begins_with_the_lower_bound_of_the_extra(name: str) -> None:
    project = tomllib.loads((examples.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirement = project["optional-dependencies"][name.replace("_", "-")][0]
    lowest = requirement.partition(">=")[2].partition(",")[0]

    assert re.search(r"\d[\d.]*", row_of(name)[0])[0] == lowest


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_without_its_framework_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"fdstore.integrations.{name}"
    source = (examples.ROOT / "fdstore" / "integrations" / f"{name}.py").read_text("utf-8")
    frameworks = re.findall(r"^    (?:from|import) (\w+)", source.partition("\ntry:\n")[2], re.MULTILINE)
    for package in {*frameworks} - {"re2"}:
        loaded = [each for each in sys.modules if each.startswith(f"{package}.")]
        for each in (package, *loaded):
            monkeypatch.setitem(sys.modules, each, None)
    monkeypatch.delitem(sys.modules, module, raising=False)

    with pytest.raises(MissingExtra, match=re.escape(f"'.[{name.replace('_', '-')}]'")):
        importlib.import_module(module)


def test_modules_that_adapters_share_need_no_framework() -> None:
    folder = examples.ROOT / "fdstore" / "integrations"
    shared = [f"shared.{path.stem}" for path in folder.glob("shared/*.py")]

    for name in ("process_name", "thread_tools", *shared):
        importlib.import_module(f"fdstore.integrations.{name}")


def test_the_page_lists_what_does_not_apply_to_an_adapter_with_the_reason() -> None:
    section = TABLE.partition("## What every adapter holds")[2]
    rows = [line for line in section.splitlines() if line.startswith("| ")]

    assert rows[1:] == [
        f"| {adapter} | {case} | {reason} |" for (adapter, case), reason in EXCEPTIONS.items()
    ]
