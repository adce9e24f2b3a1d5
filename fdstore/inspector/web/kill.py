"""Cancelling a process: a page that asks, and the request that does it. Only with `--allow kill`.

Each request opens a store of its own.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from fdstore.errors import FDStoreError
from fdstore.inspector.web.inspector import Inspector
from fdstore.inspector.web.page import PageRequest, WebPage, route
from fdstore.inspector.web.responses import as_json, problem_of, problem_page
from fdstore.inspector.web.waking import wake_workers
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record
from fdstore.store.clock import redis_now
from fdstore.store.processes import processes
from fdstore.store.processes.process_records import record


class KillRefused(FDStoreError):
    """The inspector was started without the permission to cancel processes."""

    type = "permission_error"
    says = "this inspector only reads; start it with --allow kill to cancel processes"
    http = 403


class KillPage(Record, frozen=True, kw_only=True):
    """The process that would be cancelled; `descendants`: it has created some, which are cancelled
    too."""

    process: ProcessRecord
    descendants: int
    has_ended: bool
    now_s: float


async def load(request: PageRequest) -> KillPage:
    """Load what is asked about. Raises `KillRefused`, `NotFound`."""
    if not request.inspector.options.may_kill:
        raise KillRefused()
    store = request.store
    found = await store.run(record(store.prefix, request.argument("id")))
    return KillPage(
        process=found,
        descendants=found.next_child - 1,
        has_ended=found.state in ENDED,
        now_s=await store.run(redis_now()),
    )


async def kill(request: PageRequest) -> Response:
    """Cancel a process with its descendants, and show it."""
    inspector = request.inspector
    wants_json = "application/json" in request.http.headers.get("accept", "")
    try:
        if not inspector.options.may_kill or inspector.connect_to_write is None:
            raise KillRefused()
        process = request.argument("id")
        cancelled = await inspector.within(10.0, lambda: _cancel(inspector, process))
    except FDStoreError as error:
        return problem_page(request, problem_of(error), as_data=wants_json)
    if wants_json:
        return as_json({"process": process, "cancelled": cancelled})
    return RedirectResponse(f"/process/{quote(process, safe='')}", 303)


async def _cancel(inspector: Inspector, process: str) -> tuple[str, ...]:
    assert inspector.connect_to_write is not None
    async with await inspector.connect_to_write() as store:
        done = await store.run(processes.cancel(store.prefix, process))
    await wake_workers(inspector, done.woken)
    return done.cancelled


PAGES = [WebPage("/process/{id}/kill", "kill.html", load)]
ROUTES = [route("/process/{id}/kill", kill, ["POST"])]
