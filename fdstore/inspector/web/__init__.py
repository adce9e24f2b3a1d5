"""The inspector: pages for a browser that show trees, processes, descriptors, workers and the store's
health.

A page is a function that returns its data, and a template that shows them:

    fdstore/inspector/web/workers.py                       fdstore/inspector/web/templates/workers.html

        class Workers(Record): ...                   {% extends "base.html" %}
        async def load(request: PageRequest):        {% block content %}
            return await request.store.run(...)      {{ page.workers }}
        PAGES = [                                    {% endblock %}
            WebPage("/workers", "workers.html", load, live_s=2.0)
        ]

`app` lists the modules with pages. Each page is served three times: as HTML, as JSON (`/workers.json`:
the same data, encoded by msgspec), and, with `live_s`, as events (`/workers.live`), which
`static/live.js` merges into the page that is shown. `PageRequest` has the store, the arguments of the
path and the query. A function raises the errors of the library; `app` shows them with a fitting status. A
module may also have `ROUTES`.

Rules. The URL is the state of a page: forms use GET, and all pages work without JavaScript. All texts
are hostile: templates escape them and show control characters (`rendering`); nothing is marked as safe
except our own styles in an exported run, no content becomes an attribute `href`, `src` or `style`, and
the CSP forbids inline scripts and styles (`guard`). Work is bounded: a page reads a window of what
exists, by an index, and links to the next. Pages never write: the store is opened for looking; `kill` and
`questions` alone, if allowed, open another for one request.

`run_export` makes a page of another kind: a whole run in one file, which the command `export-run` writes and
the inspector sends. It shares templates, whose links come from `links`.
"""
