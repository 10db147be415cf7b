# SPDX-License-Identifier: Apache-2.0
"""Names and line breaks of the C++ header."""
COLUMNS = 100


def class_name(name):
    """ctn_softmax_cross_entropy_opt: SoftmaxCrossEntropyOpt"""
    return "".join(part.capitalize() for part in name.removeprefix("ctn_").split("_"))


def owned_handles(description):
    return [h["name"] for h in description["handles"] if h["free"]]


def bare(name):
    """The name of a function of C without its prefix, the mark of source lines, and the mark of
    options that may be left out in C++."""
    return name.removeprefix("ctn_").removesuffix("_at").removesuffix("_with")


def wrapped(line):
    """Lines of at most 100 columns, broken after commas or at blanks."""
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    out = []
    while len(line) > COLUMNS:
        cut = line.rfind(", ", len(indent), COLUMNS - 1) + 1 or line.rindex(" ", 0, COLUMNS)
        out.append(line[:cut])
        line = indent + line[cut:].lstrip()
    return [*out, line]
