"""The parts of the jobs: the common command line, session and outputs; computations and report pages.

The jobs themselves are modules beside this package, for `python -m pyspark_tarantool.NAME`.
"""
