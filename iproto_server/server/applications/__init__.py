"""The applications of a running server: their setups, coroutines and background tasks, and their reload."""
