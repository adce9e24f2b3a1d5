"""Fills in what pages written by hand state of the code: `make generate`.

    python .ci/generate_statements.py            writes the pages that are stale
    python .ci/generate_statements.py --check    exits with 1 if one is stale, and names it

A page names the statement before it, in a comment that no reader of the rendered page sees:

    A process has a lease of <!-- lease_s -->15<!-- / --> seconds.

What stands between the two comments is written by this program. A table or another block has its comments on
lines of their own. `STATEMENTS` of `.ci/reference/statements.py` has the name of each, and makes its text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping

from generated_files import ROOT, update
from reference.statements import STATEMENTS

FOLDERS = ("docs", "deploy", "examples")
_MARKED = re.compile(r"<!-- ([a-z][a-z0-9_]*) -->(.*?)<!-- / -->", re.DOTALL)
_BEGIN = re.compile(r"<!-- [a-z][a-z0-9_]* -->")


def fill(page: str, statements: Mapping[str, str]) -> str:
    """Return a page with the present text of each statement that it names.

    Raises `ValueError` for a name that no statement has, and for one without its end.

    >>> fill("a lease of <!-- lease_s -->10<!-- / --> s", {"lease_s": "15"})
    'a lease of <!-- lease_s -->15<!-- / --> s'
    """

    def filled(found: re.Match[str]) -> str:
        name, old = found.groups()
        if name not in statements:
            raise ValueError(f"no statement has the name {name!r}; statements.py lists them")
        if _BEGIN.search(old):
            raise ValueError(f"the statement {name!r} has no end, `<!-- / -->`")
        text = statements[name]
        return (
            f"<!-- {name} -->\n{text.strip()}\n<!-- / -->"
            if "\n" in old
            else f"<!-- {name} -->{text}<!-- / -->"
        )

    new = _MARKED.sub(filled, page)
    if new.count("<!-- / -->") != len(_MARKED.findall(new)) or len(_BEGIN.findall(new)) != len(
        _MARKED.findall(new)
    ):
        raise ValueError("a comment that begins or ends a statement stands alone")
    return new


def pages() -> Iterator[tuple[str, str]]:
    """Return the pages that name statements, with what they are to say."""
    names = [ROOT / "README.md", *(path for each in FOLDERS for path in sorted((ROOT / each).rglob("*.md")))]
    for path in names:
        text = path.read_text("utf-8")
        if "<!-- / -->" in text:
            name = str(path.relative_to(ROOT))
            try:
                yield name, fill(text, STATEMENTS)
            except ValueError as error:
                raise SystemExit(f"{name}: {error}") from None


if __name__ == "__main__":
    sys.exit(update(pages(), check="--check" in sys.argv[1:]))
