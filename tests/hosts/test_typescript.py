"""The programs of docs/how-to/frameworks/typescript.md, run by Node against a server with tokens."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Reply, Request, ScriptedModel, call, say, turn
from fdstore.testing.__main__ import load_script
from tests.documents import blocks_of
from tests.elements import only
from tests.hosts.mcp_servers import FDSTORE, http_server_with_tokens
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "frameworks" / "typescript"
FOLDER = ROOT / "docs" / "how-to" / "frameworks"
PAGE = "".join((FOLDER / name).read_text("utf-8") for name in ("typescript.md", "typescript-agents.md"))
BLOCKS = blocks_of(PAGE)

WITH_MODEL = ["ai_sdk", "mastra"]
PROGRAMS = ["mcp_sdk", *WITH_MODEL]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da63fcff1f"
    "0003030200efa2a75b0000000049454e44ae426082"
)
ERROR = "src/module_839.c:212:9: error: 'ttl' undeclared"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a reader who ran the first block of the page, and runs the server of its second."""
    [store, *_] = [block.text for block in BLOCKS if block.language == "sh"]
    home = tmp_path_factory.mktemp("home")
    path = f"{FDSTORE.parent}{os.pathsep}/usr/bin:/bin"
    with PrivateServer() as server:
        environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": path, "FDSTORE_URL": server.url}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", f'{store}printf %s "$MCP_TOKEN"'],
            env=environment,
            cwd=home,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        assert done.stdout.startswith("fd:1\n")
        with http_server_with_tokens(server.url) as url:
            yield {**environment, "MCP_URL": url, "MCP_TOKEN": done.stdout.removeprefix("fd:1\n")}


@pytest.fixture
def project(tmp_path: Path, node_packages: Path) -> Path:
    """A directory with the programs, and the packages that they import."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "node_modules").symlink_to(node_packages)
    return folder


def run(
    node: Path, project: Path, program: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [node, f"{program}.mts"],
        cwd=project,
        env={**environment, "MASTRA_TELEMETRY_DISABLED": "1"},  # Mastra reports its use over the network
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def scripted_model() -> ScriptedModel:
    """The model of the examples, as `python -m fdstore.testing script.py` serves it."""
    return ScriptedModel(load_script(EXAMPLES / "script.py"))


def shown(program: str) -> str:
    """Return what the page shows as the output of a program: the block without a language that follows it."""
    texts = [block.text for block in BLOCKS]
    after = BLOCKS[texts.index((EXAMPLES / f"{program}.mts").read_text("utf-8")) + 1]
    assert after.language == ""
    return after.text


def test_the_mcp_sdk_stores_a_text_and_reads_parts_of_it_as_the_page_shows(node, project, reader):
    done = run(node, project, "mcp_sdk", reader)

    assert done.returncode == 0, done.stderr
    assert re.sub(r'"fd:\d+"', '"fd:2"', done.stdout) == shown("mcp_sdk")


@pytest.mark.parametrize("program", WITH_MODEL)
def test_an_agent_finds_a_line_and_its_model_sees_the_parts_that_it_reads_as_they_are(
    program, node, project, reader
):
    with scripted_model() as model:
        done = run(node, project, program, {**reader, **model.environ})

    assert done.returncode == 0, done.stderr
    assert re.sub(r"\bfdstore_", "", done.stdout) == shown("ai_sdk")
    page, found, lines = [only(result.text) for result in model.requests[-1].tool_results()]
    assert (page.body or "").startswith("line 1 of the build\nline 2 of the build\n")
    assert found.body == f"41877:{ERROR}"
    assert lines.body == f"line 41876 of the build\n{ERROR}\nline 41878 of the build\n"
    assert "fdstore keeps large texts" in model.requests[0].system
    assert model.requests[0].system.endswith("Read only what you need.")
    assert "line 30000 of the build" not in json.dumps(model.requests[-1].raw)


@pytest.mark.parametrize("program", WITH_MODEL)
def test_a_model_sees_an_image_and_the_text_of_an_error(program, node, project, reader):
    (project / "pixel.png").write_bytes(PNG)
    put = [str(FDSTORE), "put", "build", "pixel.png"]
    stored = subprocess.run(put, cwd=project, env=reader, capture_output=True, text=True, check=True)

    def script(request: Request) -> Reply:
        [read_fd] = [name for name in request.tools if name.endswith("read_fd")]
        asked = [call(read_fd, fd=stored.stdout.strip()), call(read_fd, fd="fd:1000")]
        return say(ERROR) if request.tool_results() else turn(*asked)

    with ScriptedModel(script) as model:
        done = run(node, project, program, {**reader, **model.environ})

    assert done.returncode == 0, done.stderr
    _, missing = model.requests[-1].tool_results()
    picture = model.requests[-1].raw["messages"][-1]["content"][0]["content"]
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert image in [block.get("source") for block in picture]
    assert only(missing.text)["type"] == "not_found"
    assert missing.is_error == (program == "mastra")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_token_is_refused_with_the_reason_before_a_model_is_asked(program, node, project, reader):
    with scripted_model() as model:
        done = run(node, project, program, {**reader, **model.environ, "MCP_TOKEN": "fdst_wrong"})

    assert done.returncode == 1
    assert f"Error: {reader['MCP_URL']} refuses the token in MCP_TOKEN" in done.stderr.splitlines()
    assert done.stdout == ""
    assert not model.requests


def test_the_programs_pass_the_type_checker(node, project, node_packages):
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2023"]
    tsc = node_packages / "typescript" / "bin" / "tsc"

    done = subprocess.run(
        [node, tsc, *options, "--types", "node", *(f"{name}.mts" for name in PROGRAMS)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_page_shows_the_program_as_it_is(program):
    assert (EXAMPLES / f"{program}.mts").read_text("utf-8") in [block.text for block in BLOCKS]


def test_the_page_names_the_packages_and_versions_that_these_tests_install():
    pins = json.loads(Path(__file__).with_name("package.json").read_text("utf-8"))["dependencies"]
    installed = {
        name for line in re.findall(r"^npm install (.+)$", PAGE, re.MULTILINE) for name in line.split()
    }
    versions = dict(re.findall(r"`([@a-z/-]+) (\d[\d.]*)`", PAGE))

    assert versions
    assert versions == {name: pins[name] for name in installed}
