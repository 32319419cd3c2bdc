"""A tube: its calls, its policy, and what operators do with it."""
