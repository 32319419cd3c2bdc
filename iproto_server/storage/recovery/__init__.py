"""Recovery: from the newest snapshot and the logs after it to the database in memory."""
