"""Commands that work on files: `cat` shows logs and snapshots, `play` sends their rows to a server, `check`
verifies a whole directory, `backup` copies it, and `restore` builds one from backups.

`commands.py` and `backup_commands.py` have the command lines; everything else here can be used without one.
None of them changes a file that is there.
"""
