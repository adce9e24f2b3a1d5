"""Pure text processing: pages, the line index, selectors, search, references.

Nothing here does I/O, reads a clock or creates an id; all of it can be tested without a server.
"""
