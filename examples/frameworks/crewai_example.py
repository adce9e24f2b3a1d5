"""An agent of CrewAI reads line 900 of a long log that never enters its messages."""

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

import fdstore
from fdstore.integrations.crewai import FdstoreCrew

ask = "Thought: I need it\nAction: {}\nAction Input: {}"
turns = [ask.format("read_log", "{}"), ask.format("read_fd", '{"fd": "fd:1#L900"}')]


class Model(BaseLLM):  # a scripted model: use yours here
    def call(self, messages, *args, **options):
        print(*(message["content"] for message in messages[2:]), sep="\n")
        return turns.pop(0) if turns else "Thought: I now can give a great answer\nFinal Answer: Done."


@tool
def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


with FdstoreCrew(fdstore.connect(), "chat-7") as ours:
    tools = [read_log, *ours.tools]
    agent = Agent(role="r", goal="g", backstory=ours.instructions, tools=tools, llm=Model(model="scripted"))
    task = Task(description="What is in line 900?", expected_output="the line", agent=agent)
    Crew(agents=[agent], tasks=[task]).kickoff()
