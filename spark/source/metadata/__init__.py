"""Tables about files and databases: `mode` = `snapshots`, `logs`, `spaces`, `indexes` or `users`."""
