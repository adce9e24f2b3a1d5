"""A worker in an environment that was made for other applications."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fdstore.client import Store
from tests.worker_process import running_worker

THEIRS = {
    "ALL_PROXY": "socks5://127.0.0.1:7891",
    "ANTHROPIC_LOG": "info",
    "CELERY_CONFIG_MODULE": "no_such_module",
    "CELERY_LOADER": "no_such_module:Loader",
    "CELERY_TRACE_APP": "1",
    "CELERY_WORKER_REVOKES_MAX": "many",
    "C_BENCH_EVERY": "often",
    "C_STRICT_APP": "1",
    "NO_PROXY": "localhost,fe80::/10",
    "PICKLE_PROTOCOL": "newest",
    "PYTHONWARNINGS": "error",
    "REMAP_SIGTERM": "SIGQUIT",
    "SSL_CERT_FILE": "/does/not/exist",
}


@pytest.mark.thorough("workers are started for it")
def test_a_worker_starts_and_ends_as_ever_among_variables_of_other_applications(
    store: Store, tmp_path: Path
) -> None:
    environ = {**os.environ, **THEIRS, "ANTHROPIC_API_KEY": "any"}

    with running_worker(tmp_path, "--url", store.url, environ=environ) as worker:
        code = worker.end()

    assert (code, "Traceback" in worker.log) == (0, False), worker.log
    assert "ends: takes nothing more" in worker.log
