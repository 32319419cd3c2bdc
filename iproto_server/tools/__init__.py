"""Commands for files, in `files/` and `backup/`, and for operators of a running server, in `operators/`.

Modules named `…_commands.py` have the command lines; everything else can be used without one. No command for
files changes a file that is there.
"""
