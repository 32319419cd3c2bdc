"""Commands for logs and snapshots: `cat` shows, `check` verifies, and `play` sends rows to a server."""
