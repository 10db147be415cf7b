# SPDX-License-Identifier: Apache-2.0
"""Names and texts of the Python package."""
import keyword
import re
import textwrap

NAMES = {"axes": "axis", "keep": "keepdims", "dims": "shape"}
ERRORS = {"ENOMEM": "OutOfMemory", "EARG": "ArgumentError", "ESHAPE": "ShapeError",
          "EDTYPE": "DtypeError", "EIO": "FileError", "EFORMAT": "FormatError",
          "ENOTFOUND": "NotFound"}
# What comments say about arguments that are others in Python.
REPLACED = ((r" \w+(?: and \w+)* may be NULL\.", ""), (r"\bnaxes 0\b", "axis None"),
            (r"\bkeep = 1\b", "keepdims"), (r"\bNULL\b", "None"), (r"\baxes\[", "axis["),
            (r"\bctn_(\w+?)(?:_at|_opt)?\b", r"\1"))


def python_name(name):
    name = name.removeprefix("v_")
    name = NAMES.get(name, name)
    return name + "_" if keyword.iskeyword(name) else name


def short(name):
    return name.removeprefix("ctn_").removesuffix("_at").replace("_entropy_with", "_entropy")


def words(lines):
    return " ".join(line.strip() for line in lines or [])


def spoken(text):
    """A comment of the headers in the words of Python."""
    for pattern, other in REPLACED:
        text = re.sub(pattern, other, text)
    return text


def raised(text):
    """The same of the text after "Errors:"."""
    return re.sub(r"\bE[A-Z]{2,}\b", lambda m: ERRORS.get(m[0], "Error"), spoken(text))


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shown(name):
    """The name of an argument in Python, as a C string."""
    return quoted(python_name(name))


def c_text(text):
    """A text of several lines as a C string, one literal per line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    pieces = [p for line in lines for p in (line[i:i + 80] for i in range(0, len(line), 80))]
    return "\n     ".join(quoted(p).replace("\n", "\\n") for p in pieces)


def listed(names, width, before="    "):
    """Names, separated by commas, as lines."""
    return f"\n{before}".join(textwrap.wrap(", ".join(names), width))
