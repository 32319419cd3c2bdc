"""DDL on both servers."""
