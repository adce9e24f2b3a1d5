"""ReAct of DSPy reads line 900 of a long log that never enters its trajectory."""

import dspy
from dspy.utils import DummyLM

import fdstore


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


tools = fdstore.Toolset(fdstore.connect().process(), enabled=["read_fd", "search_fd"], python=[read_log])


def dspy_tool(name: str, description: str, input_schema: dict) -> dspy.Tool:
    run = lambda **arguments: tools.call(name, arguments).text  # noqa: E731
    return dspy.Tool(run, name, description, input_schema["properties"])


steps = [("read_log", {}), ("read_fd", {"fd": "fd:1#L900"}), ("finish", {})]
said = [{"next_thought": "Go on.", "next_tool_name": n, "next_tool_args": a} for n, a in steps]
model = DummyLM([*said, {"reasoning": "I read it.", "answer": "Done."}])  # use your model here
signature = dspy.Signature("question -> answer", tools.instructions)
react = dspy.ReAct(signature, tools=[dspy_tool(**each) for each in tools.definitions])
with dspy.context(lm=model):
    found = react(question="What is in line 900?")
print(*found.trajectory.values(), found.answer, sep="\n")
