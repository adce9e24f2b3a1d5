"""A LangChain agent reads line 900 of a long log that never enters its messages."""

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

import fdstore
from fdstore.integrations.langchain import FdstoreMiddleware


class Model(FakeMessagesListChatModel):  # a scripted model: use yours here
    def bind_tools(self, tools, **options):
        return self


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


asks = [("read_log", {}), ("read_fd", {"fd": "fd:1#L900"})]
turns = [AIMessage("", tool_calls=[{"name": n, "args": a, "id": f"call_{n}"}]) for n, a in asks]
model = Model(responses=[*turns, AIMessage("Done.")])
agent = create_agent(model, [read_log], middleware=[FdstoreMiddleware(fdstore.connect())])
for message in agent.invoke({"messages": "What is in line 900?"})["messages"]:
    print(message.text)
