"""What pages state of the providers of models: the variables of their SDKs."""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.model.providers import PROVIDERS, SPEAKERS, Provider
from fdstore.testing.server import API_KEY, DIALECTS
from reference import markdown

TUTORIAL_SERVER = "http://127.0.0.1:8765"


def _sdks() -> Iterator[tuple[Provider, list[str]]]:
    """Yield a row for each SDK, with the names of the providers that have its variables."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in SPEAKERS.values():
        found.setdefault(PROVIDERS[name].variables, []).append(name)
    for names in found.values():
        yield PROVIDERS[names[0]], names


def variables() -> str:
    """Return the table of the variables of each SDK."""
    return markdown.table(["variable", "meaning"], _variable_rows())


def _variable_rows() -> Iterator[list[str]]:
    for row, names in _sdks():
        of = " or ".join(f'`provider = "{name}"`' for name in names)
        if row.keys:
            yield [" or ".join(f"`{each}`" for each in row.keys), f"The key, with {of}."]
        yield [f"`{row.url}`", f"The server, with {of}; without it `{row.own_url}`."]


def scripted() -> str:
    """Return the names of the variables that direct the SDKs of a process to a scripted model."""
    *others, last = (f"`{each}`" for row, _ in _sdks() for each in (row.url, *row.keys[:1]))
    return f"{', '.join(others)} and {last}"


def exports() -> str:
    """Return what the scripted model of the tutorial prints when it is served."""
    lines = []
    for row, _ in _sdks():
        values = [f"{row.url}={TUTORIAL_SERVER}{DIALECTS[row.api].below}"]
        values += [f"{key}={API_KEY}" for key in row.keys[:1]]
        lines.append(f"export {' '.join(values)}")
    return markdown.fence("\n".join(lines), "text")
