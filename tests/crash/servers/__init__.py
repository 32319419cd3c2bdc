"""The servers under test, ours and a real Tarantool, and the application that they serve."""
