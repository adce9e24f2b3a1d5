"""Write the pictures of docs/how-to/inspector.md: `make screenshots`.

They show what `fdstore demo` did, beside a few other trees, workers and a pipeline that failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import fdstore
from fdstore.agent.conversation import Assistant, Entry, Result, Start, encode_entry
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.records import Descriptor
from fdstore.result_facts import ResultFacts, ShownPart
from fdstore.store.keys import process_keys
from fdstore.store.processes import journal, leases, pipelines, processes
from fdstore.store.views import worker_registry
from fdstore.tools.process_task import PipeTask, SpawnTask, encode_task
from tests.browser.conftest import Served, find_browser

LIGHT: dict[str, Any] = {"viewport": {"width": 1180, "height": 760}, "color_scheme": "light"}
DARK = LIGHT | {"color_scheme": "dark"}
LOW = LIGHT | {"viewport": {"width": 1180, "height": 500}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 760}, "color_scheme": "light"}

ROWS = {"process": "quoter", "process-dark": "quoter", "program": "run_python"}
"""The step that is chosen in some pictures."""


def log_line(number: int) -> str:
    level = "ERROR" if number % 23_456 == 0 else "WARN " if number % 17 == 0 else "INFO "
    seconds = f"{number // 60 % 60:02}:{number % 60:02}.{number * 37 % 1000:03}"
    return f"16:{seconds} {level} step {number} took {number * 7919 % 1000} ms\n"


def conversation(large: Descriptor) -> list[Entry]:
    """Return the conversation of an agent that has read parts of a log."""
    parts = [(1, 1), (40, 260), (1200, 500), (large.pages, 1)]
    calls = [
        {"type": "tool_use", "id": f"t{first}", "name": "read_fd", "input": {"fd": large.fd, "start": first}}
        for first, _ in parts
    ]

    def shown(first: int, count: int) -> ResultFacts:
        last = first + count - 1
        return ResultFacts(shown=(ShownPart(fd=large.fd, pages=large.pages, page_range=(first, last)),))

    return [
        Start(system="", content="What broke the build?"),
        Assistant(content=calls, stop_reason="tool_use"),
        *(Result(call=f"t{a}", content="...", facts=shown(a, n)) for a, n in parts),
    ]


def fill(store: Store) -> dict[str, str]:
    """Fill a store; return the path of each page to show."""
    for name, count in (("nightly-build", 5), ("customer-4711", 2), ("release-notes", 1)):
        proc = store.process(name)
        proc.create("a line of a log\n" * 9_000 * count, source="build.log")
        for number in range(count):
            child = store.run(processes.create_child(proc.handle, [], state="ready"))
            if number % 2:
                reason = "" if number > 1 else "max_turns: 40 answers were given"
                store.run(processes.end(child, "failed" if reason else "exited", exit_code=0, reason=reason))
    proc = store.process("nightly-build")
    large = proc.create("".join(map(log_line, range(1, 300_001))), source="ci/build.log")
    reader = proc.child(share=[large.fd])
    store.run(journal.append(reader.handle, 0, [*map(encode_entry, conversation(large))]))
    task = PipeTask(
        commands=[["grep", "-n", "ERROR"], ["cut", "-d:", "-f1-2"], ["sort", "-u"]], page_size=4000, tee=[1]
    )
    made = store.run(
        pipelines.start(
            proc.handle, encode_task(task), title="grep -n ERROR | cut | sort", in_fd="fd:1", tees=(1,)
        )
    )
    attempt = store.run(leases.claim(process_keys(store.prefix, made.process), "build-2:4120", 600))
    assert attempt is not None
    now = time.time()
    sandbox = "allowed: grep, sort, cut; commands run in bubblewrap 0.11: no network, read-only system"
    for worker in ("build-1:2210", "build-2:4120"):
        store.run(worker_registry.register_worker(store.prefix, worker, 3600, now, sandbox))
    store.run(worker_registry.acquire_sweep(store.prefix, "build-1:2210", 3600))
    child = store.run(
        processes.create_child(
            proc.handle, [], state="ready", brief=encode_task(SpawnTask(query="Find the first error."))
        )
    )
    store.run(leases.claim(process_keys(store.prefix, child.id), "build-1:2210", 600))
    triage = next(tree.id for tree in store.trees() if tree.id.startswith("triage-"))
    counter = next(tree.id for tree in store.trees() if tree.id.startswith("counter-"))
    return {
        "trees": "/",
        "tree": f"/tree/{triage}",
        "process": f"/process/{triage}?from=2",
        "conversation": f"/process/{triage}?from=2#conversation",
        "program": f"/process/{counter}?from=2",
        "pipeline": f"/process/{triage}.1",
        "descriptor": f"/process/{reader.id}/fd/{large.fd[3:]}?q=error",
        "workers": "/workers",
        "health": "/health",
    }


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with PrivateServer() as server, tempfile.TemporaryDirectory() as out, sync_playwright() as playwright:
        environment = {**os.environ, "FDSTORE_URL": server.url}
        command = [sys.executable, "-m", "fdstore", "demo", "--prefix", "fdstore", "-o", out]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)
        with fdstore.connect(server.url) as store:
            paths = fill(store)
        served = Served(server.url)
        browser = playwright.chromium.launch(executable_path=find_browser())
        try:
            views = [
                (name, path, LOW if name == "descriptor" else LIGHT, name) for name, path in paths.items()
            ]
            views += [("process", paths["process"], DARK, "process-dark")]
            views += [("trees", paths["trees"], PHONE, "phone")]
            for _, path, options, name in views:
                page = browser.new_page(base_url=served.url, **options)
                page.goto(path)
                if "/fd/" in path:
                    page.locator(".row mark").wait_for(state="visible")
                    page.locator("#reading").wait_for(state="visible")
                else:
                    page.locator("#live").wait_for(state="visible")
                if row := ROWS.get(name):
                    page.locator("#rows a", has_text=row).click()
                    page.locator("#rows a[aria-current]", has_text=row).wait_for(state="visible")
                    page.locator("#live").wait_for(state="visible")
                page.screenshot(path=folder / f"{name}.png")
                page.close()
        finally:
            browser.close()
            served.close()
    for each in sorted(folder.glob("*.png")):
        print(each, f"{each.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
