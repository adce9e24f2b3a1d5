"""The demo: a real agent tree on real text, with a model that is scripted (or, with --live, real)."""
