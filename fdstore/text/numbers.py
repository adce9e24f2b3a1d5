"""Whole numbers that every reader keeps exactly."""

from __future__ import annotations

MAX_INTEGER = 2**53
"""JSON readers, Lua and Redis's sorted sets hold numbers as doubles: exact up to here."""
