"""`fdstore bench`: the cost of fdstore relative to plain Redis commands that move the same bytes.

Each measurement is a ratio to redis-py, measured in alternation on the same private server, so the results
are comparable between machines. Each ratio has a bar: the limit that a change must not exceed.

    measuring     alternating laps, medians, spread; rows and their bars
    texts         the stored texts
    stage         the servers and clients of the measurements
    real_workers  for measurements with agents
    child         readers, followers and the like, in processes of their own
    slow_model    a scripted model in a process of its own
    reading, writing, streams, memory, sharing, growth, spawning, agents, many_readers, programs, starting
                  the measurements
    suite         the table of measurements
"""
