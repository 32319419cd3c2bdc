"""System spaces, and the definitions of spaces, indexes, users and functions built from them."""
