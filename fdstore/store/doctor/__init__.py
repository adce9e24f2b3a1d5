"""Whether a server is fit to be a store, and whether all records of one are sound."""
