"""Names the errors in `fdstore/errors/__init__.py`: `make generate`.

    python .ci/generate_error_names.py            writes them
    python .ci/generate_error_names.py --check    exits with 1 if they are stale, and names the file

A type checker cannot list a package, so each class of its modules is imported there by name, and stands in
`__all__`. The rest of the file is written by hand, also which functions and values are imported. The source
is read, not imported: it may use a class that is not named yet.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from generated_files import ROOT, update

PACKAGE = "fdstore.errors"
FOLDER = ROOT / "fdstore" / "errors"
FILE = "fdstore/errors/__init__.py"

T = TypeVar("T", bound=ast.stmt)

IMPORTS = re.compile(rf"^from {re.escape(PACKAGE)}\.(?:.|\n)*?(?=\n\n\n)", re.MULTILINE)
ALL = re.compile(r"^__all__ = \[\n(?:.|\n)*?^\]\n", re.MULTILINE)


def named() -> str:
    """Return the text of the file."""
    written = (ROOT / FILE).read_text("utf-8")
    imported = {name.name for each in of(ast.ImportFrom, FOLDER / "__init__.py") for name in each.names}
    exported = values(FOLDER / "__init__.py")
    imports = []
    for module in sorted(FOLDER.glob("[!_]*.py")):
        classes = {each.name for each in of(ast.ClassDef, module)}
        names = {name for name in classes | values(module) & imported if not name.startswith("_")}
        exported |= names
        if names:
            listed = "".join(f"    {name},\n" for name in ordered(names, str.lower))
            imports.append(f"from {PACKAGE}.{module.stem} import (\n{listed})")
    written = IMPORTS.sub(lambda _: "\n".join(imports), written)
    listed = "".join(f'    "{name}",\n' for name in ordered(exported, str))
    return ALL.sub(lambda _: f"__all__ = [\n{listed}]\n", written)


def of(kind: type[T], module: Path) -> list[T]:
    """Return the statements of this kind at the top of a module."""
    return [each for each in ast.parse(module.read_text("utf-8")).body if isinstance(each, kind)]


def values(module: Path) -> set[str]:
    """Return the names of the functions and values of a module that others may import."""
    assigned = [name for each in of(ast.Assign, module) for name in each.targets]
    found = {name.id for name in assigned if isinstance(name, ast.Name)}
    found |= {each.name for each in of(ast.FunctionDef, module)}
    return {name for name in found if not name.startswith("_")}


def ordered(names: Iterable[str], key: Callable[[str], str]) -> list[str]:
    """Return constants, then classes, then functions, as the linter wants them."""
    return sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), key(name)))


if __name__ == "__main__":
    sys.exit(update([(FILE, named())], check="--check" in sys.argv[1:]))
