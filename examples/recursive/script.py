"""The scripted models of this example: the agent's, which writes a program, and the one that is asked."""

from fdstore.testing import Reply, Request, call, element, say, turn

PROGRAM = """
import asyncio
from collections import Counter

letters = fd("fd:1")
parts = letters.split(chars=100_000)
question = (
    "Which things do the writers complain about? One line for each: heating, water, telephone or lift, "
    "a colon, and how many complain about it."
)
answers = await asyncio.gather(*[ask(question, part) for part in parts])

complaints = Counter()
for answer in answers:
    for line in answer.splitlines():
        about, count = line.split(": ")
        complaints[about] += int(count)
print(len(parts), "parts,", sum(part.total_chars for part in parts) == letters.total_chars)
print(complaints.most_common())
"""


def agent(request: Request) -> Reply:
    if request.turn_number == 0:
        text = element(request.system, "fd_result")
        plan = f"The letters have {text['total_lines']} lines. A program asks about all parts of them."
        return turn(say(plan), call("run_python", code=PROGRAM))
    found = element(request.last_text(), "python_result").body.splitlines()
    counts = [pair.strip("()").split(", ") for pair in found[-1].strip("[]").split("), (")]
    most, total = counts[0][0].strip("'"), sum(int(count) for _, count in counts)
    return say(f"{total} tenants complain, most of them ({counts[0][1]}) about the {most}.")


def asked(request: Request) -> Reply:
    """Count as the model that is asked would: by what it reads in its part."""
    *texts, _ = [block["text"] for block in request.messages[0]["content"]]
    part = "".join(texts)
    signs = {"heating": "heating", "water": "ceiling", "telephone": "telephone", "lift": "lift"}
    return say("\n".join(f"{about}: {part.count(sign)}" for about, sign in signs.items() if sign in part))


script = {"You answer questions": agent, "You count things": asked}
