"""An agent loop of your own: the anthropic SDK, one function of yours, and fdstore's `Toolset`."""

import subprocess
import sys
from pathlib import Path

import anthropic
from anthropic.types import MessageParam, ToolResultBlockParam

import fdstore

HERE = Path(__file__).parent


def run_tests() -> str:
    """Run all tests; return their verbose output."""
    command = [sys.executable, "-m", "unittest", "-v", "test_prices"]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return f"exit code {done.returncode}\n{done.stdout}"


def read_source() -> str:
    """Read the program under test."""
    return (HERE / "prices.py").read_text()


def main() -> None:
    proc = fdstore.connect().process()
    tools = fdstore.Toolset(
        proc,
        enabled=["read_fd", "search_fd", "fd_to_file"],
        python=[run_tests, read_source],
        export_root="out",
    )
    client = anthropic.Anthropic()
    question = 'Why do the tests fail? Write your report in <ref id="report">...</ref>, save it as report.md.'
    messages: list[MessageParam] = [{"role": "user", "content": tools.wrap_input(question)}]
    while True:
        reply = client.messages.create(
            model="claude-sonnet-5-5",
            max_tokens=4096,
            system=tools.instructions,
            tools=tools.definitions,
            messages=messages,
        )
        messages.append({"role": "assistant", "content": reply.content})
        tools.take_references(reply.content)
        results: list[ToolResultBlockParam] = []
        for block in reply.content:
            if block.type == "text":
                print(block.text)
            if block.type == "tool_use":
                result = tools.call(block.name, block.input, call_id=block.id)
                shown = str(result.content)
                print(f"  {block.name} {block.input} -> {len(shown)} characters: {shown.splitlines()[0]}")
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block.id,
                        "content": result.content,
                        "is_error": result.is_error,
                    }
                )
        if not results:
            break
        messages.append({"role": "user", "content": results})

    print(f"\nStored in {proc.id}:")
    for content in proc.list():
        print(f"  {content.fd:<10} {content.chars:>7} characters  {content.source}")


if __name__ == "__main__":
    main()
