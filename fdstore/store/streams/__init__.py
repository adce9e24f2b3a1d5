"""Streams: contents that one writer still appends to, and those who follow it."""
