"""Files in Tarantool's formats: logs (`.xlog`), snapshots (`.snap`) and their directories.

This package knows neither sockets nor the event loop. Rows are read and written as packed bytes.
"""
