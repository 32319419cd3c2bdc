"""The spaces that all tubes share, and what they hold: consumers, sessions, privileges."""
