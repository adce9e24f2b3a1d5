"""`make bench-public`: what a model is sent in 200 public tasks, with descriptors and without.

The tasks of `make bench-tasks` are our own choice; these are not. They are `multi_turn_long_context` of the
package `bfcl-eval` (Apache-2.0): conversations of several turns on simulated APIs with long results, and the
calls that solve them. The calls are made, their results go through `Toolset.offload`, and what is sent in
each request is counted. No model is asked: all ways have the same calls, and differ by fdstore alone.

    requirements.txt    the package, pinned
    package             its tasks, with the results of their calls
    replay              a task as a conversation, its long results stored at a threshold
    ways                the requests of a conversation, in each way to offer our tools
    measuring           what a conversation costs in each way
    results             sums by group of tasks, as ratios to everything inline
"""
