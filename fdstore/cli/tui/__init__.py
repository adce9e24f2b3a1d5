"""The screens of `fdstore top`, with textual: imported by that verb alone.

    app             the tables, their refresh, and what the keys do
    log_screen      the conversation of a process, followed
    content_screen  the descriptors of a process, and the text of one, followed if it is a stream

Blocking calls of the store run on threads, so a slow Redis does not stop the keys. All text of models, tools
and stored contents is escaped, and never read as markup.
"""
