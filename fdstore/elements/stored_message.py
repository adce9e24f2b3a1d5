"""The message of an `fd_result`: what is stored, and how a model continues with the tools that it has."""

from __future__ import annotations

from typing import Literal

from fdstore.errors import NotText
from fdstore.records import Descriptor
from fdstore.text.media_types import MAX_VIEWABLE_BYTES

Shown = Literal["all", "first page", "part"]
"""How much of a text an `fd_result` shows."""


def stored_message(d: Descriptor, tools: frozenset[str] = frozenset(), *, shows: Shown = "first page") -> str:
    """Return the message of an `fd_result`: what is stored, and how to continue with the offered `tools`."""
    if d.kind == "bytes":
        return _message_of_bytes(d, tools)
    size = "1 page" if d.pages == 1 else f"{d.pages} pages of at most {d.page_size} characters"
    match d.state:
        case "sealed":
            whole = " and shown whole" if shows == "all" else ""
            said = f"The text is stored as {d.fd} ({size}){whole}."
        case "open":
            said = f"{d.fd} is still being written ({size} so far)."
        case "broken":
            said = f"{d.fd} broke off ({d.reason or 'unknown reason'}); what came before is stored ({size})."
    return f"{said}{_offer(_ways_to_read(d, tools, shows))}"


def _message_of_bytes(d: Descriptor, tools: frozenset[str]) -> str:
    match d.state:
        case "sealed":
            said = f"{d.fd} holds {d.bytes} bytes of {d.media_type}."
        case "open":
            said = f"{d.fd} is still being written ({d.bytes} bytes of {d.media_type} so far)."
        case "broken":
            reason = d.reason or "unknown reason"
            said = f"{d.fd} broke off ({reason}); {d.bytes} bytes of {d.media_type} are stored."
    return f"{said}{_offer(_ways_to_use_bytes(d.fd, d.media_type, d.bytes, tools))}"


def not_text_advice(error: NotText, tools: frozenset[str]) -> str:
    """Return what a model that has these tools can do with bytes that it cannot read; "" if nothing.

    >>> not_text_advice(NotText("fd:1", "audio/mpeg", 100), frozenset({"fd_to_file"}))
    'save it with fd_to_file(fd="fd:1", file_path="...")'
    """
    if error.problem:
        tools -= {"read_fd"}
    return _joined(_ways_to_use_bytes(error.fd, error.media_type, error.size_bytes, tools))


def _ways_to_use_bytes(fd: str, media_type: str, size_bytes: int, tools: frozenset[str]) -> list[str]:
    ways = []
    if "read_fd" in tools and size_bytes <= MAX_VIEWABLE_BYTES.get(media_type, -1):
        ways.append(f'look at it with read_fd(fd="{fd}")')
    if "pipe" in tools:
        ways.append(f'pass it to a command with pipe(commands=["..."], in_fd="{fd}")')
    if "fd_to_file" in tools:
        ways.append(f'save it with fd_to_file(fd="{fd}", file_path="...")')
    return ways


def _offer(ways: list[str]) -> str:
    offer = _joined(ways)
    return f" {offer[0].upper()}{offer[1:]}." if offer else ""


def _joined(ways: list[str]) -> str:
    return ", or ".join(filter(None, [", ".join(ways[:-1]), *ways[-1:]]))


def _ways_to_read(d: Descriptor, tools: frozenset[str], shows: Shown) -> list[str]:
    ways: list[str] = []
    if shows == "all":
        tools = tools - {"read_fd", "search_fd"}
    if "read_fd" in tools and d.state == "open":
        ways.append(f'wait for more with read_fd(fd="{d.fd}", start={d.pages}, wait_seconds=10)')
    elif "read_fd" in tools and shows == "part":
        ways.append(f'read it with read_fd(fd="{d.fd}")')
    elif "read_fd" in tools and d.pages > 1:
        ways.append(f'read on with read_fd(fd="{d.fd}", start=2)')
    if "search_fd" in tools:
        ways.append(f'find lines with search_fd(fd="{d.fd}", pattern="...")')
    if "fd_to_file" in tools:
        ways.append(f'save it with fd_to_file(fd="{d.fd}", file_path="...")')
    return ways
