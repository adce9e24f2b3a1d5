"""The rules of text, pure: pages, the line index, selectors, ranges, references.

Nothing here does I/O, reads a clock or makes an id; everything can be tested without a server.
"""
