"""Crews of CrewAI."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool
from pydantic import Field

from fdstore.client import Store
from fdstore.integrations.crewai import FdstoreCrew
from tests.frameworks.conformance.driver import Call, Driver, Function, Ran, Turn, blocking


class ScriptedLlm(BaseLLM):
    """Answers from a script, by native calls of tools or in its text, and keeps what it was shown."""

    is_native: bool
    script: list[list[Call]]
    requests: list[list[Any]] = Field(default_factory=list)

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.requests.append([dict(message) for message in messages])
        turn = len(self.requests) - 1
        if turn >= len(self.script):
            return (
                "Done." if self.is_native else "Thought: I now can give a great answer\nFinal Answer: Done."
            )
        calls = self.script[turn]
        if self.is_native:
            return [
                {
                    "id": f"call_{turn}_{number}",
                    "type": "function",
                    "function": {"name": each.name, "arguments": json.dumps(dict(each.arguments))},
                }
                for number, each in enumerate(calls)
            ]
        [asked] = calls
        return f"Thought: I need it\nAction: {asked.name}\nAction Input: {json.dumps(dict(asked.arguments))}"

    async def acall(self, messages: Any, *args: Any, **options: Any) -> Any:
        return self.call(messages)

    def get_context_window_size(self) -> int:
        return 1_000_000  # a small one makes CrewAI keep results in files itself

    def supports_function_calling(self) -> bool:
        return self.is_native


class CrewAI(Driver):
    name = "CrewAI"

    def adapter(self, store: Store) -> FdstoreCrew:
        return FdstoreCrew(store, self.thread, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        calls = [[call for _, call in each] for each in self.numbered(turns)]
        model = ScriptedLlm(model="scripted", script=calls, is_native=True)
        tools = [*(_tool(each) for each in self.functions), *self.ours.tools]
        agent = Agent(role="triage", goal="find it", backstory=self.ours.instructions, tools=tools, llm=model)
        task = Task(description=prompt, expected_output="text", agent=agent)
        crew = Crew(agents=[agent], tasks=[task], stream=streamed)

        def kickoff() -> Any:
            with self.ours:
                ended = crew.kickoff()
                if streamed:
                    for _ in ended:
                        pass
                    ended = ended.result
                return ended

        ended = await asyncio.to_thread(kickoff)
        shown = [message["content"] for message in model.requests[-1] if message.get("role") == "tool"]
        return Ran(
            results=shown,
            failed=[each.startswith(("Error executing tool", "<fd_error")) for each in shown],
            images=0,
            seen=str(model.requests),
            system=str(model.requests[0]),
            answer=str(ended.raw).strip(),
        )


def _tool(function: Function) -> Any:
    return tool(function.name, result_as_answer=function.is_direct)(blocking(function))
