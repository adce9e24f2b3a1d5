"""Hooks of coding hosts: an oversized output of a tool becomes a descriptor before the model sees it.

    claude, codex, gemini   pure: a host's event -> the output in it, and the host's answer with another text
    output                  what these return
    own_tools               fdstore's own tools, whose results are never replaced
    persisted_file          the file where Claude Code keeps the whole of an output that it cut
    hosts                   these by name
    replace                 store the output, answer the host: the only step that needs a store

A hook must never harm its host. Events that are malformed, of unknown tools or not understood get no
answer, and the host goes on with the output as it was; so it does if the store cannot be reached in time.
"""
