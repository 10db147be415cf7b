# SPDX-License-Identifier: Apache-2.0
"""Writes generated files, or checks that those in the tree are up to date."""
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
DESCRIPTION = TOP / "bindings" / "interface.json"


def settle(command, files, check):
    """files: {path below the top: text}. Returns the exit code."""
    stale = [path for path, text in files.items()
             if not (TOP / path).is_file() or (TOP / path).read_text(encoding="utf-8") != text]
    if check and stale:
        print(f"{command}: stale: {', '.join(stale)}: run {command}", file=sys.stderr)
        return 1
    for path in stale:
        (TOP / path).parent.mkdir(parents=True, exist_ok=True)
        (TOP / path).write_text(files[path], encoding="utf-8")
    print(f"{command}: ok, {len(files)} files" + (f", {len(stale)} changed" if stale else ""))
    return 0
