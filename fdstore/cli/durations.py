"""Durations on the command line: `90s`, `30m`, `12h`, `7d`."""

from __future__ import annotations

import re
from typing import Any

import click

UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Duration(click.ParamType[float]):
    """A number of seconds, minutes, hours or days, as seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd])", value, re.ASCII)
        if found is None:
            self.fail(f"{value!r} is not a duration such as 90s, 30m, 12h or 7d", param, ctx)
        return float(found[1]) * UNITS_S[found[2]]


DURATION = Duration()
