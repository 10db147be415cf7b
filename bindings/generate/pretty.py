# SPDX-License-Identifier: Apache-2.0
"""Writes JSON whose changes are easy to read: what fits into one line of 100 columns is one."""
import json

COLUMNS = 100


def dumps(value):
    return lines(value, "", 0) + "\n"


def lines(value, indent, before):
    """`before` is the number of columns that stand before the value in its line, after indent."""
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or \
            len(indent) + before + len(short) < COLUMNS:
        return short
    deeper = indent + " "
    if isinstance(value, dict):
        keys = [json.dumps(key) + ": " for key in value]
        parts = [deeper + key + lines(each, deeper, len(key))
                 for key, each in zip(keys, value.values())]
        return "{\n" + ",\n".join(parts) + "\n" + indent + "}"
    parts = [deeper + lines(each, deeper, 0) for each in value]
    return "[\n" + ",\n".join(parts) + "\n" + indent + "]"
