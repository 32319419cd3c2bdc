"""Periodic puts: schedules of cron expressions, the timer that puts their tasks, and their procedures."""
