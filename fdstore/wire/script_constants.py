"""What the Lua scripts share with Python: `scripts` gives each script what it uses."""

from __future__ import annotations

from fdstore.model.ends import REASONS
from fdstore.model.lifecycle import ENDED, PERSON
from fdstore.text.index import GROUP_PAGES, ROW_PAGES
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.quantities import DAY_S

GOES_ON = b"\n[this page goes on in the field with a + after its number]"
"""The end of the first of two fields of a page, see `store.contents.page_fields`."""

MAX_DOUBLINGS = 6
"""The most times that the pause before a wake-up is sent again doubles while no worker claims the process."""

MAX_STREAM_LEASE_S = DAY_S
"""The longest lease of a stream."""

PROCESS_WRITES_S = 30
"""The time until the next check of a stream without a lease, since a process writes it."""

TROUBLE_SPAN_S, TROUBLE_SPANS = 300, 12
"""The span in which a tree counts failures and losses, and how many spans it keeps."""

MAX_LIST_BYTES = 65_536
"""How much is read of a list in one field: of the lanes of a call, the open questions of a process. Each has
at most some hundred items."""

MAX_LOSSES_KEPT = 20
"""How many losses of a process are written down, the last ones."""

REOPENED_FROM = 100_000
"""A new tree that is opened by a generated name gives numbers above this one: an earlier tree of that name,
which has left no memory, gave them up to it."""

IN_LUA = {
    **{each.name.upper(): f"'{each.name}'" for each in REASONS},
    "ENDED": f"{{ {', '.join(f'{each} = true' for each in sorted(ENDED))} }}",
    "GOES_ON": len(GOES_ON),
    "PERSON": f"'{PERSON}'",
    "GROUP_PAGES": GROUP_PAGES,
    "MAX_DOUBLINGS": MAX_DOUBLINGS,
    "MAX_LIST_BYTES": MAX_LIST_BYTES,
    "MAX_LOSSES_KEPT": MAX_LOSSES_KEPT,
    "MAX_INTEGER": MAX_INTEGER,
    "MAX_STREAM_LEASE_S": MAX_STREAM_LEASE_S,
    "PROCESS_WRITES_S": PROCESS_WRITES_S,
    "REOPENED_FROM": REOPENED_FROM,
    "ROW_PAGES": ROW_PAGES,
    "TROUBLE_SPANS": TROUBLE_SPANS,
    "TROUBLE_SPAN_S": TROUBLE_SPAN_S,
}
"""Each by its name in Lua."""
