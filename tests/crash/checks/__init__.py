"""What is checked after a kill: contents and files."""
