"""`fdstore bench`: what fdstore costs beside the plain Redis commands that move the same bytes.

Nothing here is an absolute time: each measurement is held against redis-py on the same private server
in the same seconds, so the ratios mean the same on every machine. Each ratio has a bar, the promise
that a change must not break.

    measuring   taking turns, medians, spread; rows and their bars
    texts       the texts that are stored
    stage       the servers and clients that the measurements share
    crew        real workers, for those that run agents
    reading, writing, streams, memory, sharing, growth, spawning, agents, crowd, starting    the measurements
    suite       which of them there are
"""
