"""What the servers of these tests serve: users and procedures."""
