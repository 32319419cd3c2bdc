"""What the clients of the crash test know: what must be there after a restart, and what may be."""
