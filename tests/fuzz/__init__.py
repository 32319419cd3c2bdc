"""Fuzzing: coverage-guided random bytes for all code that decodes foreign data.

Each target (`target.TARGETS`) is a module with a function that takes any bytes and raises if their results
are wrong. `fuzzer` runs one with atheris, `campaign` starts that and reports, and `python -m tests.fuzz`
(`make fuzz`) is the command. `unguided` mutates what it found, for modules built with sanitizers.
Inputs that once revealed a fault are among the target's `cases`.
"""
