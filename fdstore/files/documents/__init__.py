"""Documents (PDF, DOCX, XLSX, ODS, PPTX, EPUB) become text, in a process of their own.

    a file -> kinds.py: which document it is -> convert.py: a child with limits -> text in a temporary file
                                                 child.py: a reader for each kind -> TextWriter

A document is written by others, and what reads it is a large library: so it runs in a child without
environment, with limits of memory, time and output, that can neither start programs nor reach a network where
the system can forbid that. What the child imports is the standard library and the packages of the extra
`documents`. Macros are not run, and what a document refers to is not fetched: the readers have no code for
either.

Pages, sheets, slides and chapters begin with a line of their own: `[page 3]`, `[sheet Totals]`, `[slide 4]`,
`[chapter 2]`. A line of the document that looks like one is preceded by a blank.
"""
