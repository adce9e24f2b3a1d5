"""Cold contents: sealed contents that nobody reads become objects of a directory or an object store.

    HGETALL 'fdstore:{triage}:triage:fd:3'     ... tier cold where triage-3-5f0c...
    URL/fdstore/triage/triage-3-5f0c...        the text itself

    moving      what is due moves out: upload, comparison, switch
    unneeded    objects that no content needs any more are deleted
    comparing   both sides: objects without a content, for `fdstore gc` and `fdstore doctor --deep`

The record, the index, the holders and the names stay in Redis, so that all but the pages is as before. A read
asks Redis for pages as ever; only where they are missing does it look at the record (`contents.cold_pages`),
and a content that is read again and again comes back (`contents.returning`).
"""
