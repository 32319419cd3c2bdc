"""Key definitions, key encoding and collations."""
