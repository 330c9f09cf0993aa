"""`python -m hindsight_rl` is the command `hindsight-rl`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
