"""Checks of a server, whether it is fit to be a store, and of all records of a store."""
