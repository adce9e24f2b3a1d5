"""`python -m fdstore` is the command `fdstore`.

Python puts the current directory first on the path of a module that it runs; nothing there is ours.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from fdstore.cli import main

main()
