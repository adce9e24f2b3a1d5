"""The demo: a real agent tree on real text, with a scripted model (or, with --live, a real one)."""
