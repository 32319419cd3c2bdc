"""Reading: from the files of a database to Spark's rows.

`options` parses a query's options, `io` finds and splits files, `schema` reads space definitions, `decode`
and `arrow` convert rows, and `batch`, `state` and `stream` contain the readers.
"""
