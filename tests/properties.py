"""The number of examples that a property takes: a tenth in `make test` of what `make test-all` takes.

`make test-all` chooses the profile `thorough`, whose numbers are those of hypothesis itself and of the tests.
"""

from __future__ import annotations

from hypothesis import settings

FULL = 100
"""The examples of hypothesis by default."""
FEWEST = 5

# No deadline per example: the machine may be busy, and the bench measures time.
settings.register_profile("thorough", deadline=None, max_examples=FULL)
settings.register_profile("quick", deadline=None, max_examples=FULL // 10)
settings.load_profile("quick")


def examples(thorough: int) -> int:
    """Return the number of examples for a property that takes `thorough` ones in `make test-all`."""
    return max(thorough * settings.default.max_examples // FULL, FEWEST)
