"""The expected state of the database, and its comparison with the contents after a restart."""
