"""Agents: programs, the loop (query, act, observe), the conversation, the model."""
