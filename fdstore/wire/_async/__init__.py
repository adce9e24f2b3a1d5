"""The asynchronous runners, from which the blocking ones are generated."""
