"""``python -m latticework``: the same as the command ``latticework``."""

from __future__ import annotations

import sys

from latticework.cli import main

if __name__ == "__main__":
    sys.exit(main())
