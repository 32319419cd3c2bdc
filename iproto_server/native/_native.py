"""Imported only where there is no compiled module: Python prefers an extension module of this name.

`_native.pyi` describes that module. Tools that read imports need a source file for its name.
"""

raise ImportError("there is no compiled module for this Python and platform")
