"""A griffe extension: fdstore's docstrings as Markdown, and the fields of records as code.

The docstrings are plain text for `help()`: sentences, lines of "name  meaning", indented code and doctests.
On the site names become lists, code and doctests blocks, a `<` is a `<`, and names of errors and records are
links to them.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal

import griffe

import fdstore
from fdstore import errors

ROW = re.compile(r"([\w`][^ ]*(?:, [^ ]+)*) {2,}(\S.*)")
"""A name, as `url` or `a, b`, and its meaning, which later lines continue with an indentation."""

Kind = Literal["text", "rows", "code", "doctest"]

CODE = re.compile(r"(`+[^`]*`+)")

AMBIGUOUS = {"Process", "Store", "StreamWriter", "ToolResult", "Toolset"}
"""Names of classes of which there are two."""

LINKS = {
    f"`{name}`": f"[`{name}`][fdstore.{name}]"
    for name in fdstore.__all__
    if name[0].isupper() and name not in AMBIGUOUS
} | {
    f"`{name}`": f"[`{name}`][{name.lower()}]"
    for name in errors.__all__
    if name[1].islower() and name[0].isupper()
}
"""Names in sentences, and their links: of errors to the headings of their page."""


class Markdown(griffe.Extension):
    """Rewrite the docstring of every object of fdstore that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        text = as_markdown(obj.docstring.value) if obj.docstring is not None else ""
        if isinstance(obj, griffe.Class) and is_struct(obj):
            text += f"\n\n{fields(obj)}"
        if text:
            obj.docstring = griffe.Docstring(text, parent=obj)


def as_markdown(text: str) -> str:
    """Return a docstring as Markdown."""
    return "\n\n".join(block(kind, lines) for kind, lines in parts(text.split("\n")))


def parts(lines: list[str]) -> list[tuple[Kind, list[str]]]:
    """Split a docstring into sentences, rows of names with their meanings, code and doctests."""
    found: list[tuple[Kind, list[str]]] = []
    kind: Kind | None = None
    column, gap = 0, False
    for line in lines:
        if not line.strip():
            kind, gap = None, True
            continue
        row = ROW.fullmatch(line)
        if row and kind != "doctest":
            column = row.start(2)
        now = kind_of(line, kind, row is not None, column)
        if found and found[-1][0] == now == "code" and gap:
            found[-1][1].extend(["", line])
        elif found and kind == now:
            found[-1][1].append(line)
        else:
            found.append((now, [line]))
        kind, gap = now, False
    return found


def kind_of(line: str, before: Kind | None, is_row: bool, column: int) -> Kind:
    """Return what a line is, after a line of the kind `before`; None: after a blank line."""
    if before == "doctest" or line.startswith(">>> "):
        return "doctest"
    if line.startswith("  ") and before == "rows":
        return "rows"
    if line.startswith("    "):
        return "code"
    # a long name leaves one space before its meaning
    is_aligned = before == "rows" and line[column - 1 : column] == " " and " " not in line[: column - 1]
    return "rows" if is_row or is_aligned else "text"


def block(kind: Kind, lines: list[str]) -> str:
    """Return a part of a docstring as Markdown."""
    match kind:
        case "doctest":
            return fence("\n".join(lines), "pycon")
        case "code":
            return fence(textwrap.dedent("\n".join(lines)))
        case "rows":
            return "\n".join(item(line) for line in lines)
        case "text":
            return "\n".join(escaped(line) for line in lines)


def item(line: str) -> str:
    """Return a name with its meaning, or more of that, as a line of a list."""
    if line.startswith(" "):
        return f"  {escaped(line.strip())}"
    names, meaning = re.split(r"(?<!,) +", line, maxsplit=1)
    shown = ", ".join(f"`{name.strip('`')}`" for name in names.split(", "))
    return f"- {shown}: {escaped(meaning)}"


def escaped(line: str) -> str:
    """Return a line of a paragraph without markup that it does not mean."""
    parts = CODE.split(line)
    parts[1::2] = [LINKS.get(part, part) for part in parts[1::2]]
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return re.sub(r"^(\s*)#", r"\1\#", "".join(parts))


def fence(code: str, language: str = "") -> str:
    if not language:
        try:
            ast.parse(code)
            language = "python"
        except SyntaxError:
            language = "text"
    return f"```{language}\n{code}\n```"


def is_struct(found: griffe.Class) -> bool:
    """Whether a class is a record: a Struct of msgspec, directly or not."""
    bases = [str(base) for base in found.bases]
    return any(base.rpartition(".")[2] in ("Struct", "NamedTuple") for base in bases) or any(
        is_struct(base) for base in parents(found)
    )


def parents(found: griffe.Class) -> Iterator[griffe.Class]:
    """Yield the base classes that can be resolved."""
    for base in found.bases:
        path = getattr(base, "canonical_path", str(base))
        try:
            resolved = found.modules_collection[path]
        except (KeyError, griffe.AliasResolutionError):
            continue
        if isinstance(resolved, griffe.Alias):
            resolved = resolved.final_target
        if isinstance(resolved, griffe.Class):
            yield resolved


def fields(found: griffe.Class) -> str:
    """Return the fields of a record as they are declared, inherited ones first."""
    lines = list(dict(rows(found)).values())
    return fence("\n".join(lines), "python") if lines else ""


def rows(found: griffe.Class) -> Iterator[tuple[str, str]]:
    """Yield the names of a record's fields, with their declarations."""
    for parent in parents(found):
        if is_struct(parent):
            yield from rows(parent)
    for name, member in found.members.items():
        is_field = isinstance(member, griffe.Attribute) and "property" not in member.labels
        if is_field and member.annotation is not None and not name.startswith("_"):
            default = "" if member.value is None else f" = {default_of(found, name, str(member.value))}"
            yield name, f"{name}: {kind(member.annotation)}{default}"


def default_of(found: griffe.Class, name: str, source: str) -> str:
    """Return a default as it is written, or its value if it is the name of another one."""
    if not isinstance(ast.parse(source, mode="eval").body, ast.Name | ast.Attribute):
        return source
    record = getattr(import_module(found.module.path), found.name)
    return repr(inspect.signature(record).parameters[name].default)


def kind(annotation: Any) -> str:
    """Return a type without what `Annotated` adds to it."""
    text = str(annotation)
    if "Annotated[" not in text:
        return text
    return ast.unparse(_Plain().visit(ast.parse(text, mode="eval")))


class _Plain(ast.NodeTransformer):
    """Replaces each `Annotated[TYPE, ...]` by its type."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        is_annotated = isinstance(node.value, ast.Name) and node.value.id == "Annotated"
        return node.slice.elts[0] if is_annotated and isinstance(node.slice, ast.Tuple) else node
