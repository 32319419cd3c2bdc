"""`python -m iproto_server` is the `iproto-server` command."""

import sys

from iproto_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
