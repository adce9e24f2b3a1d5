"""How long the main thread may wait without running the handlers of signals.

Python runs them in the main thread, between two instructions. A signal that arrives while that thread gives
up the interpreter's lock, which takes long on a busy machine, does not end the wait that follows. Waiting for
a queue, an event or a thread without a limit, it would notice the signal at the next one or never.
"""

from __future__ import annotations

SIGNALS_SEEN_S = 0.5
"""The limit of each wait of a main thread whose signals are handled in Python; then it waits again."""
