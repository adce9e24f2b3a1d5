"""Makes the pages of docs/reference/ from the code: `make generate`.

    python .ci/generate_reference.py            writes them
    python .ci/generate_reference.py --check    exits with 1 if one is stale, and names it

The pages are committed, so they can be read in the repository; what they say comes from the tables, types and
functions of fdstore itself. `PAGES` names the module of each. The other pages of docs/reference/ are written
by hand, and tests compare them with the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from reference import cli, elements, errors, keys, programs, tools

TARGET = Path(__file__).parents[1] / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "elements.md": elements.page,
    "errors.md": errors.page,
    "keys.md": keys.page,
    "programs.md": programs.page,
    "tools.md": tools.page,
}


def main(arguments: list[str]) -> int:
    stale = []
    for name, make in PAGES.items():
        target, made = TARGET / name, make()
        if not target.exists() or target.read_text("utf-8") != made:
            stale.append(f"docs/reference/{name}")
            if "--check" not in arguments:
                target.write_text(made, "utf-8")
    if stale:
        print("stale:" if "--check" in arguments else "written:", *stale)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
