"""A deep agent whose files are in fdstore: a long result is moved there, and read by its lines."""

from deepagents import create_deep_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

import fdstore
from fdstore.integrations.deepagents import FdstoreBackend


class Model(FakeMessagesListChatModel):  # a scripted model: use yours here
    def bind_tools(self, tools, **options):
        return self


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 10_001))


asks = [("read_log", {}), ("grep", {"pattern": "line 900 of", "output_mode": "content"})]
turns = [AIMessage("", tool_calls=[{"name": n, "args": a, "id": f"call_{n}"}]) for n, a in asks]
backend = FdstoreBackend(fdstore.connect(), process="files")
agent = create_deep_agent(Model(responses=[*turns, AIMessage("Done.")]), [read_log], backend=backend)
for message in agent.invoke({"messages": "What is in line 900?"})["messages"]:
    print(message.text)
