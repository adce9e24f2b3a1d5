"""Write the pictures of docs/how-to/inspector.md and deciding.md: `make screenshots`.

They show what `fdstore demo` did, beside a few other trees, workers and a pipeline that failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, FloatRect, Locator, sync_playwright

import fdstore
from fdstore.agents.loop.conversation import Assistant, Entry, Result, Start, encode_entry
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.agents.runtime.run_process import run_process
from fdstore.client import Store
from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdContent
from fdstore.files.permissions import Permissions
from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import Descriptor, ModelPrice
from fdstore.store.clock import redis_now
from fdstore.store.keys import process_keys
from fdstore.store.processes import journal, leases, processes
from fdstore.store.views import worker_registry
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.testing import Request, ScriptedModel, call, fail, say, turn
from tests.browser.conftest import find_browser
from tests.on_redis.inspector.inspected import Served
from tests.on_redis.inspector.journals import pipe, ready_child
from tests.on_redis.inspector.questions import agent_of, ask

MARGIN = 12  # pixels

LIGHT: dict[str, Any] = {"viewport": {"width": 1180, "height": 760}, "color_scheme": "light"}
DARK = LIGHT | {"color_scheme": "dark"}
LOW = LIGHT | {"viewport": {"width": 1180, "height": 500}}
TALL = LIGHT | {"viewport": {"width": 1180, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 760}, "color_scheme": "light"}

ROWS = {"program": "run_python"}
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
        part = FdContent(fd=large.fd, pages=large.pages, mode="page", start=first, count=count)
        return ResultFacts(shown=(part,))

    return [
        Start(system="", content="What broke the build?"),
        Assistant(content=calls, stop_reason="tool_use"),
        *(Result(call=f"t{a}", content="...", facts=shown(a, n)) for a, n in parts),
    ]


SERVICES = ("auth", "billing", "cart", "catalogue", "checkout", "search", "stock", "users")


def service_log(service: str) -> str:
    """Return the log of a service since yesterday."""
    return f"service {service}\n" + "".join(map(log_line, range(1, 2_001)))


def deploy(stage: str) -> str:
    """Deploy the release to a stage."""
    raise TimeoutError(f"{stage}: 3 of 4 replicas answered within 120 s; last error: connection refused")


def survey(request: Request) -> Any:
    """The answers of a model that reads the logs of all services, one after the other."""
    number, step = divmod(request.turn_number, 2)
    if number == len(SERVICES):
        return say("Two services are slower since 16:31: billing and stock. Both wait for the same disk.")
    if step == 0:
        return call("service_log", service=SERVICES[number])
    return call("search_fd", fd=f"fd:{number + 1}", pattern="WARN .* 9\\d\\d ms")


def release(request: Request) -> Any:
    """The answers of a model that deploys to three stages at once, and then breaks off."""
    if request.turn_number == 0:
        stages = ("eu-1", "eu-2", "us-1")
        return turn(say("All three at once."), *(call("deploy", stage=stage) for stage in stages))
    return fail(400, message="prompt is too long: 213462 tokens > 200000 maximum")


def run_agents(store: Store) -> None:
    """Run an agent with long results, and one that fails."""
    here = "tests.browser.screenshots"
    system = "You look after a shop."
    for name, script, task, python in (
        ("survey", survey, "Which services became slower since yesterday, and why?", "service_log"),
        ("release", release, "Deploy release 4.2 to all stages, and tell what failed.", "deploy"),
    ):
        program = Program(
            name=name,
            model="any",
            system=system,
            tools=("read_fd", "search_fd"),
            python=(f"{here}:{python}",),
            price=ModelPrice(input=3, output=15, currency="USD"),
        )
        with ScriptedModel(script) as model:
            launch_root(store, Bundle(root=name, programs={name: program}), task, name)
            run_process(
                store,
                name,
                worker="build-1:2210",
                model=lambda _: AnthropicModel(api_key=model.api_key, base_url=model.base_url),
                wake=lambda process: None,
                permissions=Permissions(),
            )


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
    made = pipe(proc, "grep -n ERROR", "cut -d: -f1-2", "sort -u", in_fd="fd:1", tee=(1,))
    attempt = store.run(leases.claim(process_keys(store.prefix, made.process), "build-2:4120", 600))
    assert attempt is not None
    child = ready_child(proc, "Find the first error.")
    store.run(leases.claim(process_keys(store.prefix, child.id), "build-1:2210", 600))
    run_agents(store)
    triage = next(tree.id for tree in store.trees() if tree.id.startswith("triage-"))
    counter = next(tree.id for tree in store.trees() if tree.id.startswith("counter-"))
    return {
        "tree": f"/tree/{triage}",
        "trees": "/",
        "process": "/process/release",
        "conversation": f"/process/{triage}?from=2#conversation",
        "program": f"/process/{counter}?from=2",
        "pipeline": f"/process/{triage}.1",
        "descriptor": f"/process/{reader.id}/fd/{large.fd[3:]}?q=error",
        "workers": "/workers",
        "health": "/health",
    }


def register_workers(store: Store) -> None:
    """Register two workers, as long as a registration may last."""
    sandbox = "allowed: grep, sort, cut; commands run in bubblewrap 0.11: no network, read-only system"
    now_s = store.run(redis_now())
    for number, worker in enumerate(("build-1:2210", "build-2:4120")):
        load = WorkerLoad(slots=8, busy=2 - number, since=now_s - 7000)
        alive_s = worker_registry.LONGEST_S - 1
        store.run(worker_registry.register_worker(store.prefix, worker, alive_s, now_s, sandbox, load=load))
    store.run(worker_registry.acquire_sweep(store.prefix, "build-1:2210", 3600))


def around(part: Locator) -> FloatRect:
    """Return the place of a part of a page, with a margin."""
    box = part.bounding_box()
    assert box is not None
    return {
        "x": box["x"] - MARGIN,
        "y": box["y"] - MARGIN,
        "width": box["width"] + 2 * MARGIN,
        "height": box["height"] + 2 * MARGIN,
    }


def ask_people(store: Store) -> None:
    """Let two agents wait for people: one with a question about a text, one with a call that wants a yes."""
    shop = store.process("shop")
    shop.create("version 41: new prices\nversion 42: new search\n", source="changes.md")
    first, second = (agent_of(shop, ("t1", name, {})) for name in ("ask_person", "deploy"))
    ask(shop, first, text="Which version goes to the shop tonight?", choices=("41", "42"), fd="fd:1")
    ask(shop, second, tool="deploy", arguments={"version": 41, "machines": "all"})


def take(
    browser: Browser, url: str, folder: Path, name: str, path: str, options: dict[str, Any], part: str = ""
) -> None:
    """Write the picture of a page, or of a part of it."""
    page = browser.new_page(base_url=url, **options)
    if path.endswith("export.html"):  # a browser would save it
        saved = folder / "export.html"
        saved.write_bytes(page.request.get(path).body())
        page.goto(saved.resolve().as_uri())
        saved.unlink()
    else:
        page.goto(path)
        page.locator("#reading" if "/fd/" in path else "#live").wait_for(state="visible")
        if "/fd/" in path:
            page.locator(".row mark").wait_for(state="visible")
    if row := ROWS.get(name):
        page.locator("#rows a", has_text=row).click()
        page.locator("#rows a[aria-current]", has_text=row).wait_for(state="visible")
        page.locator("#live").wait_for(state="visible")
    file = folder / f"{name}.png"
    if part:
        page.screenshot(path=file, full_page=True, clip=around(page.locator(part)))
    else:
        page.screenshot(path=file)
    page.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with PrivateServer() as server, tempfile.TemporaryDirectory() as out, sync_playwright() as playwright:
        environment = {**os.environ, "FDSTORE_URL": server.url}
        command = [sys.executable, "-m", "fdstore", "demo", "--prefix", "fdstore", "-o", out]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)
        with fdstore.connect(server.url) as store:
            paths = fill(store)
        with (
            Served(server.url) as served,
            closing(playwright.chromium.launch(executable_path=find_browser())) as browser,
        ):
            shoot = partial(take, browser, served.url, folder)
            shoot("strip", "/", LOW)
            with fdstore.connect(server.url) as store:
                register_workers(store)
            for name, path in paths.items():
                shoot(name, path, LOW if name == "descriptor" else LIGHT)
            shoot("process-dark", paths["process"], DARK)
            shoot("phone", paths["trees"], PHONE)
            for name, scheme in (("saved", LIGHT), ("saved-dark", DARK)):
                shoot(name, "/tree/survey", scheme, part="section.saved")
            shoot("export", "/tree/release/export.html", LIGHT)
            with fdstore.connect(server.url) as store:
                ask_people(store)
        with (
            Served(server.url, may_answer=True) as served,
            closing(playwright.chromium.launch(executable_path=find_browser())) as browser,
        ):
            take(browser, served.url, folder, "questions", "/questions", TALL)
    for each in sorted(folder.glob("*.png")):
        print(each, f"{each.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
