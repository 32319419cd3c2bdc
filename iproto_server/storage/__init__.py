"""Files on disk, in Tarantool's own formats: logs (`.xlog`), snapshots (`.snap`) and the directories of them.

Nothing here knows sockets or the event loop. Rows go in and come out as the bytes they are.
"""
