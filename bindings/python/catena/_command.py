# SPDX-License-Identifier: Apache-2.0
"""The command `catena` of an installed wheel."""
from __future__ import annotations

import os
import sys


def main() -> None:
    """Become the command; its libraries are beside it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "catena")
    if not os.path.exists(path):
        sys.exit("catena: this package was installed without the command")
    os.execv(path, ["catena", *sys.argv[1:]])
