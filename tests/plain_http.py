"""Requests of tests by HTTP without TLS: to load the certificates for it takes 30 ms each time."""

from __future__ import annotations

from functools import partial

import httpx2

get, post, delete = (partial(each, verify=False) for each in (httpx2.get, httpx2.post, httpx2.delete))
stream = partial(httpx2.stream, verify=False)
