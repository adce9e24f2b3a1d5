"""The page of the workers: which there are, and what each does now."""

from __future__ import annotations

from fdstore import settings
from fdstore.store.views.workers_now import WorkersNow, workers_now
from fdstore.web.page import Page, View


async def load(view: View) -> WorkersNow:
    """Load the workers of the store."""
    store = view.store
    has_queue = settings.read().broker_url is None and "+cluster:" not in store.url
    return await store.run(workers_now(store.prefix, has_queue=has_queue))


PAGES = [Page("/workers", "workers.html", load, live_s=1.0)]
