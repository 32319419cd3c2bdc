"""The pages of the jobs' reports."""
