"""Client connections: listening, reading, scheduling, group commit and sending."""
