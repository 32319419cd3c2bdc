"""Commands that work on files: `cat` shows logs and snapshots, `play` sends their rows to a server, `check`
verifies a whole directory.

`commands.py` has the command lines; everything else here can be used without one. None of them changes a
file.
"""
