"""The data pipeline: Spark over snapshots and logs. It waits for the server to write them."""
