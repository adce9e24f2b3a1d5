"""The page of the workers: which there are, and what each does now."""

from __future__ import annotations

from fdstore.inspector.web.page import PageRequest, WebPage
from fdstore.setup import settings
from fdstore.store.views.workers_now import WorkersNow, workers_now


async def load(request: PageRequest) -> WorkersNow:
    """Load the workers of the store."""
    store = request.store
    has_queue = settings.read().broker_url is None and "+cluster:" not in store.url
    return await store.run(workers_now(store.prefix, has_queue=has_queue))


PAGES = [WebPage("/workers", "workers.html", load, live_s=1.0)]
