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

from generated_files import update
from reference import cli, elements, errors, keys, programs, tools

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "elements.md": elements.page,
    "errors.md": errors.page,
    "keys.md": keys.page,
    "programs.md": programs.page,
    "tools.md": tools.page,
}


def main(arguments: list[str]) -> int:
    made = ((f"docs/reference/{name}", make()) for name, make in PAGES.items())
    return update(made, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
