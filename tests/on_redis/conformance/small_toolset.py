"""Small limits, a function that repeats its argument, and the text behind a result."""

from __future__ import annotations

from fdstore import FDConfig
from fdstore.client import Process
from tests.elements import only

SMALL = FDConfig(max_direct_output_chars=20, default_page_size=10, max_input_chars=20, max_expand_chars=50)


def echo(text: str) -> str:
    """Repeat the words."""
    return text


def stored(proc: Process, shown: str) -> str:
    """Return the stored text of an `fd_result`."""
    result = only(shown)
    assert result.name == "fd_result"
    return proc.read(result["fd"], read_all=True).text
