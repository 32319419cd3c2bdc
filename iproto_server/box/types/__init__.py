"""Field types, JSON paths and option types."""
