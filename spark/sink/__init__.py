"""Tables of Spark, written: row by row to a running server, or all at once into a snapshot.

`server_writer` and `snapshot_writer` are what `df.write.format("tarantool")` begins with; the options decide
which. Both make tuples of rows in the same way (`values`, `tuples`), so that what `spark.read` shows can be
written back.
"""
