"""The command `fdstore`, and `python -m fdstore`. Makes `sys.path` safe before importing the rest."""

from fdstore.safe_path import drop_first_entry, drop_relative_entries


def main() -> None:
    """Run the command line."""
    drop_first_entry()
    drop_relative_entries()
    from fdstore.cli import main as run

    run()


if __name__ == "__main__":
    main()
