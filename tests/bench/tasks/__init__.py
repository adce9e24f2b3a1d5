"""`make bench-tasks`: what whole tasks cost an agent, with descriptors and without.

Each task has a question, texts and the true answer. An agent solves it through the real loop, once for
each way in which hosts show long results; its model is a script that does the best that can be done with
what was shown. Counted are the tokens of the requests that were sent. An answer is right if it is the true
one and what proves it stood in these requests: that is computed.

    texts          the texts: the standard library's own, and generated ones, the same in every run
    hosts          how each way shows a result: all of it, cut, in a file, as a descriptor
    host_tools     the functions that the agents call
    plans          how a model finds, reads and counts, in each way
    logs, documents, tables, many, coding    the tasks
    running        the table of tasks, and one of them in one way
    long_texts, reading_tasks, reading_ways, reading    tasks that need every line, also by programs
    counting       the tokens of its requests
    results        verdicts, bars and tables
"""
