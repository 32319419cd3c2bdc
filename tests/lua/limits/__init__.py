"""What Lua code may take, and that no error of it ends the server."""
