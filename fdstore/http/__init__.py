"""HTTP, for all that speak it: `fdstore mcp`, `gateway` and `ui`, the metrics of workers, models.

    address      where a server listens, and by which names it is called
    callers      the check of Host and Origin
    connections  how many there may be, and how long clients may take
    server       a server of an ASGI app, with these limits
    client       requests to others, through the proxies of the environment

Web pages that a browser shows can send requests to this machine, so each server checks who calls it.
"""
