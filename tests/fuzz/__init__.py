"""Fuzzing: bytes that grow towards what no test has reached yet, fed to all that reads what others wrote.

Each target (`target.TARGETS`) is a module with a function that takes any bytes and raises when something is
wrong with what they led to. `fuzzer` runs one with atheris, `campaign` starts that and reports, and
`python -m tests.fuzz` (`make fuzz`) is the command. What was found once stays among the target's `cases`.
"""
