# SPDX-License-Identifier: Apache-2.0
"""For dev/mutants: small changes of C code that a test should notice, found without a parser.

A change replaces an expression or removes a statement. Some do not compile; the caller finds out.
"""
import collections
import re

# The attribute lets the compiler move the question out of loops, which stay vectorised.
DECLARED = "__attribute__((const)) int ctn__mutant(int number); "
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>^[ \t]*#(?:[^\n\\]|\\.)*)"
    r"|(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|(?P<number>0[xX][0-9a-fA-F]+\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\w*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!]=|&&|\|\||[-+*/%&|^]=|\S)", re.M | re.S)
OTHER = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<": "<=", "<=": "<", ">": ">=",
         ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
KINDS = {"operator": 50, "constant": 18, "statement": 22, "arguments": 10}  # percent
Token = collections.namedtuple("Token", "kind text start end")


def reach(toks, i, step):
    """The last token from i, in direction step, of the expression that can stand in parentheses."""
    opening, closing = ("([{", ")]}") if step > 0 else (")]}", "([{")
    depth = 0
    while 0 < i + step < len(toks):
        t = toks[i + step]
        if t.text in opening:
            depth += 1
        elif t.text in closing:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (t.text in ASSIGN or t.kind == "directive"
                             or t.text in (",", ";", "?", ":", "return", "case", "else", "do")):
            break
        i += step
    return i


def expression(text, toks, i, new):
    """Token i replaced by new, in the whole expression around it."""
    start, end = toks[reach(toks, i, -1)].start, toks[reach(toks, i, 1)].end
    return start, end, text[start:toks[i].start] + new + text[toks[i].end:end]


def exchanged(text, toks, i):
    """The calls at token i with two neighbouring arguments exchanged, both of them plain names."""
    close = reach(toks, i + 1, 1) + 1
    for a in range(i + 2, close - 2):
        if (toks[a - 1].text in "(," and toks[a + 1].text == "," and toks[a + 3].text in ",)"
                and toks[a].kind == toks[a + 2].kind == "name"):
            (_, first, s1, e1), (_, second, s2, e2) = toks[a], toks[a + 2]
            yield (toks[i].start, toks[close].end, text[toks[i].start:s1] + second + text[e1:s2]
                   + first + text[e2:toks[close].end])


def candidates(text):
    """Yields (kind, start, end, replacement or "") for every change; some do not compile."""
    toks = [Token(m.lastgroup, m.group(), *m.span()) for m in TOKEN.finditer(text)
            if m.lastgroup != "comment"]
    depth, inside = 0, False
    for i, t in enumerate(toks[:-4]):
        before, after = toks[i - 1], toks[i + 1]
        if t.text == "{":
            inside = inside if depth else before.text == ")"
            depth += 1
        depth -= t.text == "}"
        if depth == 0 or not inside:
            continue
        operand = before.kind in ("name", "number") or before.text in ")]"
        if t.text in OTHER and operand and before.text not in ("return", "sizeof"):
            yield "operator", *expression(text, toks, i, OTHER[t.text])
        elif t.kind == "number":
            if before.text == "case" or (before.text, after.text) == ("{", "}"):
                continue
            if t.text.isdigit():
                yield "constant", *expression(text, toks, i, str(int(t.text) + 1))
            elif re.fullmatch(r"[\d.]+(e-?\d+)?[fF]?", t.text):
                yield "constant", *expression(text, toks, i, f"(2 * {t.text} + !{t.text})")
        elif t.kind == "name":
            if before.text in ";{})" and after.kind != "name" and after.text != ":":
                end = reach(toks, i, 1)
                while toks[end + 1].text != ";" and toks[end + 1].text in ASSIGN | {",", "?", ":"}:
                    end = reach(toks, end + 1, 1)
                if toks[end + 1].text == ";":
                    yield "statement", t.start, toks[end + 1].end, ""
            if after.text == "(":
                for change in exchanged(text, toks, i):
                    yield "arguments", *change


def describe(old, new):
    old, new = " ".join(old.split()), " ".join(new.split())
    return f"`{old}` -> `{new}`" if new else f"removed `{old}`"


def switched(text, mutants):
    """The source with its mutants, each behind the switch. Lines keep their numbers."""
    for m in sorted(mutants, key=lambda m: -m["start"]):
        old, new = text[m["start"]:m["end"]], m["new"].replace("\n", " ")
        ask = f"ctn__mutant({m['number']})"
        both = f"({ask} ? ({new}) : ({old}))" if new else f"{{ if (!{ask}) {old} }}"
        text = text[:m["start"]] + both + text[m["end"]:]
    return DECLARED + text
