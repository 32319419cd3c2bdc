"""What `pyproject.toml` cannot tell of the build: a module in C, which is left out where no compiler is."""

from glob import glob

from setuptools import Extension, setup

FOLDER = "iproto_server/native"

setup(
    ext_modules=[
        Extension(
            "iproto_server.native._native",
            sorted(glob(f"{FOLDER}/*.c")),
            depends=sorted(glob(f"{FOLDER}/*.h")),
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
            optional=True,
        )
    ]
)
