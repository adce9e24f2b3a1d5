"""Prints where a tool is found that a directory adds to `fdstore.tools.built_in`, as JSON.

    python -m tests.on_redis.conformance.new_tool DIRECTORY URL

`test_new_tool` starts it in an interpreter of its own, because tools are found when fdstore is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fdstore.tools import built_in

NAME = "count_lines"

PROGRAM = f"""
[model]
name = "any"

[tools]
enabled = ["{NAME}"]
"""


def main(directory: Path, url: str) -> dict[str, object]:
    built_in.__path__.append(str(directory))

    import fdstore
    from fdstore.agents.loop.editor_schema import editor_schema
    from fdstore.agents.loop.offering import HELD_BACK
    from fdstore.agents.loop.program_loader import load
    from fdstore.agents.runtime.run_agent import make_toolbox
    from fdstore.files.permissions import Permissions
    from fdstore.hosts.gateway.options import GatewayOptions
    from fdstore.hosts.gateway.tool_list import ToolOffer
    from fdstore.hosts.mcp.access import PERMISSIONS, Access, tools_of
    from fdstore.hosts.mcp.tool_list import list_tools
    from fdstore.hosts.mcp.toolsets import Toolsets
    from fdstore.tools.process_task import SpawnTask
    from fdstore.toolset.build import do_nothing

    sys.path.insert(0, str(Path(__file__).parents[3] / ".ci"))
    import generate_tool_names
    from reference import tools as page_of_tools
    from reference.example_store import example

    found: dict[str, object] = {}
    with fdstore.connect(url) as store:
        proc = store.process("triage")
        proc.create("a\nb\nc\n")
        tools = fdstore.Toolset(proc, enabled=[NAME, "list_fds", "read_fd"])
        found["toolset"] = [each["name"] for each in tools.definitions]
        found["instructions"] = tools.instructions.splitlines()
        found["message"] = tools.offload("a line\n" * 2000, "log", "c1").content
        found["result"] = str(tools.call(NAME, {"fd": 1}).content)

        program = directory / "counter.toml"
        program.write_text(PROGRAM, "utf-8")
        bundle = load(program)
        agent = make_toolbox(
            proc.handle,
            store.prefix,
            bundle,
            bundle.programs["counter"],
            SpawnTask(query="Count."),
            wake=do_nothing,
            permissions=Permissions(),
        )
        found["agent"] = [each["name"] for each in agent.definitions]

        async def connected() -> fdstore.aio.Store:
            return await fdstore.aio.connect(url)

        access = Access(process="triage")
        [of_mcp] = [each for each in list_tools(Toolsets(connected, access), access) if each.name == NAME]
        found["mcp"] = of_mcp.model_dump(mode="json", by_alias=True, exclude_none=True)
    found["permissions"] = [each for each in PERMISSIONS if NAME in tools_of([each])]
    found["gateway"] = list(ToolOffer(GatewayOptions()).names)
    found["held_back"] = NAME in HELD_BACK
    found["editor"] = editor_schema()["properties"]["tools"]["properties"]["enabled"]["items"]["enum"]
    found["types"] = generate_tool_names.module().splitlines()
    with example() as made:
        page_of_tools.prepare(made)
        found["reference"] = "\n".join(page_of_tools.blocks(made)).splitlines()
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
