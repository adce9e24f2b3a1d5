"""The command `fdstore`, and `python -m fdstore`. Makes `sys.path` and the environment safe before it imports
the rest."""

from fdstore.setup.foreign_variables import drop_foreign_variables
from fdstore.setup.safe_path import drop_first_entry, drop_relative_entries


def main() -> None:
    """Run the command line."""
    drop_first_entry()
    drop_relative_entries()
    drop_foreign_variables()
    from fdstore.cli import main as run

    run()


if __name__ == "__main__":
    main()
