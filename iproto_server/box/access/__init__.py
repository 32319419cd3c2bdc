"""Users, roles, privileges and sessions."""
