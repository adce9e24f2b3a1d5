"""Cases that do not apply to a framework, with reasons: the same list is on the page of frameworks."""

EXCEPTIONS = {
    ("Agno", "direct results"): (
        "the caller gets the text, but so does a later run, from the history, which no hook sees"
    ),
    ("Agno", "held back"): "a run is given its tools once",
    ("Agent Framework", "direct results"): "no tool of it ends a run with its result",
    ("Anthropic tool runner", "approval"): "the runner has none",
    ("Anthropic tool runner", "direct results"): "no tool of it ends a run with its result",
    ("Anthropic tool runner", "held back"): "the runner is given its tools once",
    ("Claude Agent SDK", "approval"): "a person is asked within the run",
    ("Claude Agent SDK", "agent in a tool"): (
        "its subagents share the process; a function that runs another `query` gives it the thread"
    ),
    ("Claude Agent SDK", "store away"): "the result passes, and Claude Code writes a long one to a file",
    ("Claude Agent SDK", "direct results"): "no tool of it ends a run with its result",
    ("Claude Agent SDK", "held back"): "it is given its tools once",
    ("CrewAI", "approval"): "a person is asked at the terminal, within the run",
    ("CrewAI", "images"): "its tools return text",
    ("CrewAI", "many blocks"): "its tools return text",
    ("CrewAI", "stored images"): "its tools return text",
    ("CrewAI", "store of asyncio"): "its hooks are not awaited",
    ("CrewAI", "held back"): "it is given its tools once",
    ("Google ADK", "agent in a tool"): (
        "an agent is a tool by `AgentTool`, and shares the process; a function that runs "
        "another runner has another session, and no callback surrounds it"
    ),
    ("Haystack", "approval"): "its hooks ask within the run, which waits for the answer",
    ("Haystack", "direct results"): (
        "from 3.4 on the caller gets the text, with the hook as `after_run` too; older ones have no such hook"
    ),
    ("Haystack", "agent in a tool"): (
        "its hooks have no end that always runs; the page says how to pass `hook_context`"
    ),
    ("Haystack", "held back"): (
        "its hooks see the tools of a request when they are chosen, and its system prompt is given once"
    ),
    ("LlamaIndex", "approval"): "a tool waits for a person's event itself, within its run",
    ("LlamaIndex", "held back"): "it is given its tools once",
    ("OpenAI Agents SDK", "held back"): (
        "it asks which tools are enabled before the input of a request is known, whose texts are stored too"
    ),
    ("Pydantic AI", "direct results"): "no tool of it ends a run with its result",
    ("Strands", "direct results"): "no tool of it ends a run with its result",
}
"""By the adapter and the case."""
