"""The server's own log: its set-up, and a filter for lines that repeat."""
