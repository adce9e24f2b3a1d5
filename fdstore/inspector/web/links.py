"""Links of templates: to pages of the inspector, or, in an exported run, to its own anchors.

Templates use `links` for what both show. An empty string means that there is nothing to link to.

The URL of a descriptor is `/process/triage/fd/3`, and of a name `/process/triage/fd/name?key=notes/plan.md`:
a name may hold slashes, and end like the path of a twin (`.json`), so it goes into the query.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from fdstore.errors import InvalidArgument, quoted
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.web.timeline import TimelineRow
from fdstore.text.selection import fd_id


def descriptor_url(process: str, fd: str, part: str = "", **query: object) -> str:
    """Return the URL of a descriptor's page, or of a `part` of it ("download"), with this query; values
    that are None or "" are left out.

    >>> descriptor_url("triage", "fd:3", lines="120-130")
    '/process/triage/fd/3?lines=120-130'
    >>> descriptor_url("triage", "name:notes/plan.md", "download")
    '/process/triage/fd/name/download?key=notes%2Fplan.md'
    """
    kind, _, key = fd.partition(":")
    segment, named = (key, {}) if kind == "fd" else (kind, {"key": key})
    path = f"/process/{quote(process, safe='')}/fd/{quote(segment, safe='')}" + (f"/{part}" if part else "")
    values = {**named, **{name.rstrip("_"): value for name, value in query.items()}}
    text = urlencode({name: value for name, value in values.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


def fd_of(segment: str, key: str) -> str:
    """Return the descriptor that a path's segment and the query's `key` name. Raises `InvalidArgument`.

    >>> fd_of("3", ""), fd_of("name", "notes/plan.md")
    ('fd:3', 'name:notes/plan.md')
    """
    if segment in ("name", "ref"):
        if not key:
            raise InvalidArgument("key", f"a {segment} is needed, as /fd/{segment}?key=plan.md")
        return fd_id(f"{segment}:{key}")
    if key:
        raise InvalidArgument("key", f"{quoted(segment)} is a number, so it has no key")
    return fd_id(segment)


class Links:
    """Links to the pages of the inspector, whose scripts run."""

    has_scripts = True

    def process(self, process: str) -> str:
        return f"/process/{quote(process, safe='')}"

    def descriptor(self, process: str, fd: str) -> str:
        return descriptor_url(process, fd)

    def record(self, process: str, position: int) -> str:
        return f"{self.process(process)}/record/{position}"

    def asks(self, process: str, call: str) -> str:
        """Return the link to the asks of a call."""
        return f"{self.process(process)}/asks?{urlencode({'call': call})}"

    def entry_id(self, process: str, entry: ConversationEntry) -> str:
        """Return the id of the element of an entry."""
        return f"e{entry.position}-{entry.part}"

    def entry(self, process: str, entry: ConversationEntry) -> str:
        return f"{self.process(process)}?from={entry.position}#{self.entry_id(process, entry)}"

    def span(self, row: TimelineRow, position: int) -> str:
        """Return the link from a bar of the timeline to its step, or to its ask."""
        if row.asked_by:
            return f"{self.asks(row.asked_by, row.call)}&ask={position}#e0-{position}"
        return f"{self.process(row.process)}?at={position}-0#pane"


LINKS = Links()
