"""Writes Spark tables: row by row to a running server, or at once into a snapshot.

`df.write.format("tarantool")` calls `server_writer` or `snapshot_writer`, depending on the options. Both
convert rows to tuples in the same way (`values`, `tuples`), so that tables from `spark.read` can be written
back.
"""
