# SPDX-License-Identifier: Apache-2.0
"""Splits comments into the words that the head of catena/base.h defines: Local, Collective,
Result, Errors, and "0: X" or "NULL: X" of a field.

Text is a list of lines. Prose is wrapped; indented lines, such as examples and lists, stay as they
are; an empty line separates paragraphs.
"""
import re
import textwrap

COLUMNS = 84
LOCAL = re.compile(r"(Local|Collective)\b")
RESULT = re.compile(r"Results?: *")
ERRORS = re.compile(r"Errors\b[^:(]*: *")
DEFAULT = re.compile(r"(?:^|(?<=[;.,:] )|(?<=\())(?:((?:\w+(?:, | and ))*\w+) )?"
                     r"(?:0|NULL)(?: or \w+)?: ")
CODE = re.compile(r"\b(E[A-Z]{2,})\b")


def lines_of(comment):
    """The lines of a C comment without its marks."""
    body = comment.strip().removeprefix("/*").removesuffix("*/")
    lines = [re.sub(r"^\s*\* ?", "", line) for line in body.split("\n")]
    lines[0] = lines[0].strip()
    return [line.rstrip() for line in lines]


def blocks(lines):
    """Alternately prose (a string) and fixed lines (a list), as they follow one another."""
    result = []
    for line in lines:
        fixed = not line or line.startswith("  ")
        if fixed and result and isinstance(result[-1], list):
            result[-1].append(line)
        elif fixed:
            result.append([line])
        elif result and isinstance(result[-1], str):
            result[-1] += " " + " ".join(line.split())
        else:
            result.append(" ".join(line.split()))
    return result


def wrapped(parts):
    """The text of blocks."""
    result = []
    for part in parts:
        if isinstance(part, str):
            result += textwrap.wrap(part, COLUMNS, break_long_words=False, break_on_hyphens=False)
        else:
            result += part
    while result and not result[-1]:
        result.pop()
    while result and not result[0]:
        result.pop(0)
    return result


def text_of(comment):
    return wrapped(blocks(lines_of(comment)))


def sentences(prose):
    """Sentences end at a full stop that a space follows, outside of parentheses."""
    result, start, depth = [], 0, 0
    for i, c in enumerate(prose):
        depth = max(0, depth + (c == "(") - (c == ")"))
        if c == "." and depth == 0 and prose[i + 1:i + 2] == " ":
            result.append(prose[start:i + 1])
            start = i + 2
    return result + [prose[start:]] if prose[start:] else result


def split(lines):
    """{description: text, ranks, result, errors: str or None} of a comment."""
    words = {"ranks": [], "result": [], "errors": []}
    rest = []
    for part in blocks(lines):
        if not isinstance(part, str):
            rest.append(part)
            continue
        kept = []
        for sentence in sentences(part):
            word = ("ranks" if LOCAL.match(sentence) else "result" if RESULT.match(sentence)
                    else "errors" if ERRORS.match(sentence) else None)
            (words[word] if word else kept).append(sentence)
        if kept:
            rest.append(" ".join(kept))
    found = {word: " ".join(each) or None for word, each in words.items()}
    return {"description": wrapped(rest), **found}


def ranks(sentence):
    """Who must call a function: {who: local or collective, text}"""
    who = "collective" if sentence.startswith("Collective") else "local"
    return {"who": who, "text": wrapped([sentence])}


def result(sentence):
    """How long a result lives: {lifetime, free, how_long, text}."""
    text = RESULT.sub("", sentence).rstrip(".")
    found = {"text": wrapped([text])}
    free = re.search(r"\bctn_\w+_free\b", text)
    borrowed = re.search(r"\bborrowed\b;? ?([^.,;]*)", text)
    if re.search(r"\bowned\b", text):
        found["lifetime"] = "owned"
    elif borrowed:
        found["lifetime"] = "borrowed"
        found["how_long"] = borrowed.group(1)
    elif re.match(r"scope\b", text):
        found["lifetime"] = "scope"
    elif re.fullmatch(r"[a-z]|x itself.*", text):
        found["lifetime"] = "argument"
    else:
        found["lifetime"] = "value"
    if free:
        found["free"] = free.group(0)
    return found


def errors(sentence):
    """Codes in the order of the comment, without doubles, and the whole text."""
    codes = list(dict.fromkeys(CODE.findall(sentence)))
    return {"codes": codes, "text": wrapped([ERRORS.sub("", sentence).rstrip(".")])}


def references(text):
    """The functions whose errors a comment refers to: "as ctn_idx_open"."""
    return re.findall(r"\bas (ctn_\w+)", " ".join(text))


def default(name, comment, about_struct):
    """What 0 or NULL in a field means: "0: X" or "NULL: X" in its comment or, with the name of the
    field before the 0, in a comment about several fields or about the struct."""
    for prose, named in ((comment, True), (comment, False), (about_struct, True)):
        for match in DEFAULT.finditer(" ".join(prose)):
            names = re.split(", | and ", match.group(1) or "")
            if name in names if named else names in ([""], ["both"]):
                return meaning(" ".join(prose)[match.end():])
    return None


def meaning(text):
    """The beginning of a text, up to the end of its clause."""
    text = re.split(r"; |\. |, <", text)[0].rstrip(".")
    return text.rstrip(")") if text.count(")") > text.count("(") else text
