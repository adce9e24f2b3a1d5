"""The object store of cold contents, and what Redis keeps of their objects.

settings        where contents go and when, in the hash of the operator's ceilings
object_store    ranges, uploads, deletions, each with its typed error
forked          the same in a process that was forked, by a helper
checksums       a checksum for each page, so that an object never passes for another text
records         the names of objects, and what the record of a content says of its own
"""
