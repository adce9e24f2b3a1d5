"""An agent answers questions about a CSV with SQL. The rows never enter its context."""

import sys

import anthropic

import fdstore

QUESTION = "Which three customers spent more in December than in any other month, and spent the most then?"
SYSTEM = """
{fd} is a CSV of orders: {lines} lines. Ask about it with sql_fd. A long result becomes a descriptor again:
query that in the next step, and read only what you need.
"""


def main() -> None:
    question = " ".join(sys.argv[1:]) or QUESTION
    proc = fdstore.connect().process()
    orders = proc.ingest("orders.csv")
    tools = fdstore.Toolset(proc, enabled=["read_fd", "sql_fd"])
    agent = anthropic.Anthropic().beta.messages.tool_runner(
        model="claude-sonnet-5-5",
        max_tokens=4096,
        system=tools.instructions + SYSTEM.format(fd=orders.fd, lines=orders.lines),
        tools=tools.runnable(),
        messages=[{"role": "user", "content": question}],
    )
    for message in agent:
        for block in message.content:
            if block.type == "text":
                print(block.text)
            if block.type == "tool_use":
                print(f"  {block.name} {block.input}")

    print("\nDescriptors:")
    for each in proc.list():
        print(f"  {each.fd} {each.source}: {each.lines} lines, {each.chars} characters")


if __name__ == "__main__":
    main()
