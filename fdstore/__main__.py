"""`python -m fdstore` is the command `fdstore`."""

from fdstore.cli import main

main()
