"""The parts of the jobs: the common command line, session and outputs; computations and report pages.

The jobs themselves are modules of `spark`, for `python -m spark.NAME`.
"""
