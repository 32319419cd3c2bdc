"""The clients of the crash test: each sends one kind of requests and records the expected state."""
