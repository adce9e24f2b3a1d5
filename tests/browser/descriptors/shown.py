"""The store that the tests of this folder look at, and functions that read it from the page."""

from __future__ import annotations

from typing import NamedTuple

from playwright.sync_api import Page

from fdstore.client import Process, Store

LINE_CHARS = 40
BIG_LINES = 500_000
"""Lines of `fd:1`, 20 MB."""

HOSTILE = (
    "<script>document.title = 'ran'</script>\n"
    "<img src=x onerror=\"document.title='ran'\">\n"
    "</textarea></pre></div><svg onload=\"document.title='ran'\">\n"
    "\x1b[31mred\x1b[0m \u202eevil\u202c zero\u200bwidth \x07bell\r\n"
    "&lt;b&gt; &amp; 'quotes\" {{ 7*7 }}\n"
    "javascript:alert(1) \U0001f600 end\n"
)


class Inspected(NamedTuple):
    """A running inspector: its address, and the store it shows."""

    url: str
    store: Store
    process: Process

    def fd(self, path: str) -> str:
        return f"{self.url}/process/triage/fd/{path}"


def big_line(number: int) -> str:
    level = "ERROR" if number % 50_000 == 0 else "info"
    return f"{number:>8} {level} of the build".ljust(LINE_CHARS - 1) + "\n"


def first_line(page: Page) -> int:
    """The number of the first line that is to be seen."""
    return int(
        page.evaluate(
            """() => {
                const box = document.querySelector("#reader .text");
                const top = box.getBoundingClientRect().top;
                const rows = Array.from(box.querySelectorAll(".row[data-line]"));
                return rows.find((row) => row.getBoundingClientRect().bottom > top + 1).dataset.line;
            }"""
        )
    )


def check_text(page: Page) -> None:
    """The rows in the document are lines of `fd:1`, in order and without gaps."""
    rows = page.evaluate(
        """() => Array.from(document.querySelectorAll("#reader .row[data-line]"),
            (row) => [Number(row.dataset.line), row.querySelector(".tx").textContent])"""
    )
    assert [line for line, _ in rows] == list(range(rows[0][0], rows[-1][0] + 1))
    assert all(text + "\n" == big_line(line) for line, text in rows)
    assert len(rows) < 3000, "pages far from the window are removed"
