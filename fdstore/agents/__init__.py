"""Agents: the loop of one, and the attempts that workers make at it."""
