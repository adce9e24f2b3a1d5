"""The elements that pages of hosts print are those of the calls above them, though no host runs here."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Store
from fdstore.tools.catalogue import READING_TOOLS
from tests.documents import check_output

PAGES = Path(__file__).parents[3] / "docs" / "how-to"
CALL = re.compile(
    r"^(?P<call>(?P<tool>\w+)\([^\n]*\))\n\n(?P<shown><(?P<element>fd_\w+) .*?^</(?P=element)>\n)",
    re.MULTILINE | re.DOTALL,
)
ERROR = "src/module_839.c:212:9: error: 'ttl' undeclared (first use in this function)\n"
FAILURE = """\
test_orders.py::test_order_27411 FAILED [ 68%]
    E   AssertionError: total is 10.00, not 9.99: the rounding of the discount
"""


def build() -> str:
    lines = [f"[{number}] cc -O2 -c src/module_{number % 977}.c\n" for number in range(1, 60_001)]
    lines[41_876] = ERROR
    return "".join(lines)


def log_of_tests() -> str:
    lines = [
        f"test_orders.py::test_order_{number:05} PASSED [{number // 400:3}%]\n" for number in range(1, 40_001)
    ]
    lines[27_410] = FAILURE
    return "".join([*lines, "==== 1 failed, 39999 passed in 61.20s ====\n", "exit code 0\n"])


TEXTS = {
    "mcp.md": ("make", build),
    "gateway.md": ("lines", lambda: "".join(f"line {number}\n" for number in range(1, 200_001))),
    "claude-code.md": ('Bash: make test; echo "exit code $?"', log_of_tests),
}
"""Page -> the source and the text of its first descriptor."""


def arguments_of(call: str) -> dict[str, Any]:
    parsed = ast.parse(call, mode="eval").body
    assert isinstance(parsed, ast.Call)
    return {str(each.arg): ast.literal_eval(each.value) for each in parsed.keywords}


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_prints_the_elements_of_its_calls(name: str, store: Store) -> None:
    page = PAGES / name
    source, text = TEXTS[name]
    tools = Toolset(store.process("shop"), enabled=["read_fd", "search_fd"])
    stored = tools.offload(text(), source=source)

    calls = list(CALL.finditer(page.read_text("utf-8")))

    assert len(calls) >= 2
    for found in calls:
        printed = stored  # of a tool that is not ours
        if found["tool"] in READING_TOOLS:
            printed = tools.call(found["tool"], arguments_of(found["call"]))
        check_output(page, found["shown"], f"{printed.content}\n", frame="{}")
