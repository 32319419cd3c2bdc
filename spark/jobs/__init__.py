"""What the jobs are made of: command line, session and outputs for all, what each computes, and its page.

The jobs themselves are beside this package, where `python -m spark.NAME` finds them.
"""
