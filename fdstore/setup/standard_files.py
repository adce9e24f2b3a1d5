"""Keep the numbers 0, 1 and 2 for standard input, output and error, also where a command is started without
one.

The next file or socket that is opened would get the number, and programs that this one starts would take it
for theirs: what they print would go to Redis. `sys.stdin` and the others stay None, by which commands see it.

This module imports only what Python has loaded at startup, as `safe_path` does.
"""

import os


def reserve_standard_files() -> None:
    """Open the null device as each of the three that is closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
