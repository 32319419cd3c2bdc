"""A database with every kind of object, and the directory that both servers use."""
