"""What `pyproject.toml` cannot tell of the build: a module in C, which is left out where no compiler is."""

from setuptools import Extension, setup

SOURCES = ("module", "reader", "writer", "tuples", "requests", "keys", "rows", "tree", "changes", "slots")
FOLDER = "iproto_server/native"

setup(
    ext_modules=[
        Extension(
            "iproto_server.native._native",
            [f"{FOLDER}/{name}.c" for name in SOURCES],
            depends=[f"{FOLDER}/native.h"],
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
            optional=True,
        )
    ]
)
