"""Reading: from the files of a database to rows of Spark.

`options` says what is asked for, `files` finds it, `definitions` knows the spaces, `ranges` splits files
among tasks, and the readers make rows of what is there.
"""
