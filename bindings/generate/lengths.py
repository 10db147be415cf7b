# SPDX-License-Identifier: Apache-2.0
"""Which arguments must have the same length, and which have the length that an object tells."""
import re
from collections import namedtuple

from .wrong import Wrong

SIZED = {"list", "out_list", "shape", "array", "out_array", "inout_array", "arrays", "structs",
         "strings", "buffers"}
# What the functions count that `count` may call.
WORDS = {"ctn_ndim": "one per dimension of {}", "ctn_dataset_fields": "one per field of {}",
         "ctn_generator_sequences": "one per sequence of {}"}
# name: an argument. of: the argument that it is as long as; or the object that tells the length,
# through the function `call` or its member `member`. why: that in words.
Rule = namedtuple("Rule", "name of call member why", defaults=(None, None, None))


def rules(function):
    found, first = [], {}
    names = {a["name"] for a in function["arguments"]}
    for a in function["arguments"]:
        count = a.get("count")
        if a["kind"] not in SIZED or not count:
            continue
        if count not in names:
            found.append(told(function["name"], a["name"], count))
        elif count in first:
            found.append(Rule(a["name"], first[count], why=f"as many as {first[count]}"))
        else:
            first[count] = a["name"]
    return found


def told(function, name, count):
    """The rule of a count that is no argument: ctn_ndim(x), op->nout."""
    called = re.fullmatch(r"(\w+)\((\w+)\)", count)
    if called and called.group(1) in WORDS:
        call, of = called.groups()
        return Rule(name, of, call=call, why=WORDS[call].format(of))
    member = re.fullmatch(r"(\w+)->(\w+)", count)
    if member:
        return Rule(name, member.group(1), member=member.group(2), why=count.replace("->", "."))
    raise Wrong(f"{function}: the count of {name}, {count}, is no argument, no member of one and "
                "no call of a function in WORDS of bindings/generate/lengths.py")
