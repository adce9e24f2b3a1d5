"""The page of errors: every class of `fdstore.errors`, with its text for sample arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generated_files import ROOT

from fdstore import errors
from fdstore.errors import FDStoreError
from reference import markdown

INTRODUCTION = """
All errors are subclasses of `fdstore.FDStoreError`; the classes are in `fdstore.errors`. Each has a `type`,
a word that does not change: models see it in [`fd_error`](elements.md#fd_error), `--json` prints it, logs
name it. Classes of one type are one kind of failure. The text says what is so and what to do. The arguments
of the class are also attributes of the error, and its `args`, so errors survive pickling. Servers and
pipelines have a few more classes, with types of this page.
"""


PAGE = ROOT / "docs/reference/errors.md"


def types() -> set[str]:
    """Return the types of errors that the page has."""
    return set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))


def page() -> str:
    blocks = [markdown.paragraphs(INTRODUCTION), "## By type"]
    kinds: dict[str, list[type[FDStoreError]]] = {}
    for error in errors.all_errors():
        kinds.setdefault(error.type, []).append(error)
    if gone := types() - kinds.keys():
        said = f"no class has {', '.join(sorted(gone))}: a type stays"
        raise SystemExit(f"{said}; one that no release has is removed from {PAGE.relative_to(ROOT)} by hand")
    rows = []
    for kind in sorted(kinds):
        names = ", ".join(f"[`{each.__name__}`](#{each.__name__.lower()})" for each in kinds[kind])
        remedies = " ".join(dict.fromkeys(each.remedy for each in kinds[kind]))
        rows.append([f"`{kind}`", names, remedies])
    blocks += [markdown.table(["type", "classes", "what to do"], rows), "## By class"]
    for error in errors.all_errors():
        blocks += description(error)
    return markdown.page("Errors", blocks)


def description(error: type[FDStoreError]) -> Iterator[str]:
    yield f"### {error.__name__}"
    parents = [each for each in error.__bases__ if each is not FDStoreError]
    signature = ", ".join(error.fields())
    kind = f"`{error.__name__}({signature})`, type `{error.type}`"
    if parents:
        kind += f", a subclass of `{parents[0].__name__}`"
    yield markdown.paragraph(f"{kind}. {markdown.prose(error.__doc__ or '')}")
    yield markdown.fence(str(error(*error.sample)), "output")
