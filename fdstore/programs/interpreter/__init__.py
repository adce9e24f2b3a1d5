"""An interpreter for programs of models: a session is fed with code, answered, dumped and loaded.

    session.py         a session: what callers use
    events.py          its events, answers, limits and errors
    host_calls.py      calls of the host by a program, and which of them are answered here
    values.py          values of JSON and of code, each made of the other
    dumps.py           a session as bytes
    prelude.py         the names that programs see, written in the interpreter's own Python
    rewrite.py         code that the interpreter lacks and that has an exact equivalent
    code_tokens.py     the tokens of code, read in linear time
    failures.py        errors in words that a model can act on
    pool.py            the processes in which programs run
    processor_time.py  the processor time of these processes, and its limit
    confinement.py     the sandbox around them

The interpreter is Monty (`pydantic-monty`, of the extra `python`), which is imported with the first session.
This package uses neither the store nor the network: the caller answers each `HostCall` of a program.
"""
