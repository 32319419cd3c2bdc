"""The client libraries, with one interface for all tests."""
