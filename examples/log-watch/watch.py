"""An agent follows the output of a running command, and reports its first error before it ends."""

import asyncio
import sys
from pathlib import Path

import anthropic

import fdstore.aio

COMMAND = [sys.executable, str(Path(__file__).with_name("build.py"))]
SYSTEM = """
You watch the output of a running build, {fd}. Read it from line 1 on, 20 lines at a time with
wait_seconds=30. Go on until you see the first error or the end of the output (eof="true"), then report that
in one sentence, with its line.
"""


async def run_command(output: fdstore.aio.StreamWriter) -> int:
    """Run the command and write what it prints to a stream, which ends with the command's exit code."""
    command = await asyncio.create_subprocess_exec(
        *COMMAND, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert command.stdout
    async for line in command.stdout:
        await output.write(line.decode("utf-8", "backslashreplace"))
    code = await command.wait()
    await output.end(exit_code=code)
    return code


async def main() -> None:
    async with await fdstore.aio.connect() as store, anthropic.AsyncAnthropic() as client:
        proc = await store.process()
        output = await proc.open_stream(source="build")
        build = asyncio.create_task(run_command(output))

        tools = fdstore.aio.Toolset(proc, enabled=["read_fd", "search_fd"])
        agent = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=4096,
            system=tools.instructions + SYSTEM.format(fd=output.fd),
            tools=tools.runnable(),
            messages=[{"role": "user", "content": "What is the first error?"}],
        )
        answer = await agent.until_done()
        print("".join(block.text for block in answer.content if block.type == "text"))
        seen = await proc.stat(output.fd)
        print(
            f"The build {'has ended' if build.done() else 'still runs'}; it has printed {seen.lines} lines."
        )

        code = await build
        ended = await proc.stat(output.fd)
        print(f"The build has ended with {code}; {ended.fd} is {ended.state}: {ended.lines} lines.")


asyncio.run(main())
