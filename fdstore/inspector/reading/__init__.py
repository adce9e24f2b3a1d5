"""Processes as people see them: conversations as entries, and what a process waits for.

    entries         ConversationEntry: one thing that happened, with its time
    build_entries   journal records in, entries out (pure)
    steps           a call with its result, and every other entry alone (pure)
    pending         what a process waits for now (pure)
    conversation    a page of the conversation of a process, read from Redis

`fdstore log`, `run`, `attach`, `top` and the inspector show the same entries. Their text is of models, tools
and stored texts, so it is hostile: escape it for the terminal or page that shows it.
"""
