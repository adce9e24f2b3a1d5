"""Agents: program files, the conversation, the model and the loop that joins them."""
