"""The command `fdstore`, and `python -m fdstore`. Makes `sys.path` and the environment safe before it imports
the rest."""

import sys

from fdstore.setup.foreign_variables import drop_foreign_variables
from fdstore.setup.safe_path import drop_first_entry, drop_relative_entries
from fdstore.setup.standard_files import reserve_standard_files


def main() -> None:
    """Run the command line."""
    try:
        drop_first_entry()
        reserve_standard_files()
        drop_relative_entries()
        drop_foreign_variables()
        from fdstore.cli import main as run

        run()
    except KeyboardInterrupt:  # while modules are imported: a verb says more
        sys.exit(130)


if __name__ == "__main__":
    main()
