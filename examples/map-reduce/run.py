"""Summarize documents on two workers; kill one of them while it works."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fdstore
from fdstore.model.records import ProcessRecord

ENDED_BEFORE_THE_KILL = 10


def main() -> None:
    documents = sorted(path.name for path in Path("documents").iterdir())
    task = "Write an overview of " + ", ".join(documents)
    with fdstore.connect(prefix="map-reduce") as store, open("run.log", "wb") as log:
        # a prefix has keys and a queue of its own: no other worker takes part
        environment = {**os.environ, "FDSTORE_URL": store.url, "FDSTORE_PREFIX": store.prefix}
        worker = [sys.executable, "-m", "fdstore", "worker", "-c", "4"]
        workers = [subprocess.Popen(worker, env=environment, stdout=log, stderr=log) for _ in range(2)]
        root = f"overview-{secrets.token_hex(3)}"
        run = subprocess.Popen(
            [sys.executable, "-m", "fdstore", "run", "overview.toml", "--name", root, "-p", task],
            env=environment,
            stderr=log,
        )
        try:
            kill_a_worker(store, root, run)
            code = run.wait()
        finally:
            for each in workers:
                each.terminate()
                each.wait()
        report(store.tree(root).members)
    sys.exit(code)


def kill_a_worker(store: fdstore.Store, root: str, run: subprocess.Popen[bytes]) -> None:
    """Kill a worker that runs a summarizer, once some have ended."""
    while run.poll() is None:
        time.sleep(0.02)
        agents = [
            each for each in store.processes() if each.id.startswith(root) and each.program == "summarizer"
        ]
        running = [each for each in agents if each.state == "running"]
        if running and sum(each.state == "exited" for each in agents) >= ENDED_BEFORE_THE_KILL:
            _, _, name = str(running[0].worker).rpartition(":")  # HOST:PID-SUFFIX
            os.kill(int(name.partition("-")[0]), signal.SIGKILL)
            print(f"Killed a worker that ran {running[0].id}.\n", flush=True)
            return


def report(agents: Sequence[ProcessRecord]) -> None:
    """Print what the tree has cost, and what was lost with the worker."""
    tokens = sum(each.input_tokens + each.output_tokens for each in agents)
    failed = [each.id for each in agents if each.state != "exited"]
    print(f"\n{len(agents)} agents, {tokens} tokens, failed: {', '.join(failed) or 'none'}")
    print(f"Lost with the worker, continued by the other: {sum(each.losses > 0 for each in agents)}")


if __name__ == "__main__":
    main()
