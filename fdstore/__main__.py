"""The command `fdstore`, and `python -m fdstore`: a safe path first, then the verbs."""

from fdstore.safe_path import drop_first_entry, drop_relative_entries


def main() -> None:
    """Run the command."""
    drop_first_entry()
    drop_relative_entries()
    from fdstore.cli import main as run

    run()


if __name__ == "__main__":
    main()
