"""``python -m diagnostics`` is ``page87``."""

import sys

from diagnostics.cli import main

if __name__ == "__main__":
    sys.exit(main())
