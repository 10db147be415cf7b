# SPDX-License-Identifier: Apache-2.0
"""Writes the reference: docs/ops.md, the list of ops, and docs/reference, one page per header."""
import itertools
import re
import textwrap

from . import signature
from .languages import languages

OPS = {"ops.h": "Products, normalisation, losses and the basics",
       "ops_math.h": "Elementwise functions and comparisons",
       "ops_shape.h": "Shapes, indices and reductions",
       "ops_loss.h": "Losses and metrics",
       "ops_image.h": "Images",
       "ops_graph.h": "Graphs and segments",
       "ops_sequence.h": "Sequences",
       "ops_fft.h": "Fourier transforms",
       "ops_linalg.h": "Linear algebra of small matrices",
       "dist_ops.h": "Over ranks",
       "dist.h": "Steps over ranks"}
OPS_HEAD = """# Ops

`dev/reference` wrote this page from the headers. Call an op by the name shown. In the headers it
is a macro that also passes your source line, so that messages and `catena explain` can name it. The
function has the same name with `_at` and takes that line first. Pass the `_at` name where a
function pointer is needed, as in `ctn_activation_new(&m, ctx, ctn_relu_at)`.

`CTN_SHAPE(2, 3)` stands for the two arguments `ndim, dims`, and for `naxes, axes` as well;
`CTN_ALL_AXES` means all axes: `ctn_mean(x, CTN_ALL_AXES, 0)`.

An op that gets NULL returns NULL, and the first error is reported by the next call that returns a
status. The words Local, Collective, Result and Errors are defined at the top of `catena/base.h`.
"""
INDEX_HEAD = """# Reference of the C interface

`dev/reference` wrote these pages from the public headers, one page per header. They show functions
as you call them: where a macro passes your source line, that argument is left out. `Ranks` says
who must call a function, `Result` how long its result lives, and `Errors` which status codes it
may return or record; [base.md](base.md) defines these words. Names are explained in
[api-conventions.md](../api-conventions.md). All ops on one page: [ops.md](../ops.md).

| header | contents |
|---|---|
"""
LANGUAGES = """
The tabs show a function in the other languages. In [Python](../python.md) (`import catena as ct`)
the fields of an options struct are keyword arguments, and so they are in
[Fortran](../fortran.md#arguments), where all functions may also be called with `stat` and `errmsg`.
In [C++](../cpp.md#names), `ctn_conv_opt` is `ConvOpt`.
"""
PARTS = ("handles", "constants", "enums", "structs", "callbacks", "functions", "variables",
         "macros")
SHORT = ("constants", "handles", "macros")


def files(description):
    """{path: text} of all pages in the tree."""
    return {"docs/ops.md": ops_page(description), **pages(description, INDEX_HEAD, {})}


def site(description):
    """{path: text} of the pages of docs/reference as the site has them: they also show what a
    function is in the other languages."""
    return pages(description, INDEX_HEAD.replace("\n| header", LANGUAGES + "\n| header"),
                 languages(description))


def pages(description, index, others):
    found = {}
    items = {entry["name"]: {**entry, "part": part} for part in PARTS
             for entry in description[part]}
    for header in description["headers"]:
        name = header["name"].removesuffix(".h")
        if not header["sections"]:
            continue
        found[f"docs/reference/{name}.md"] = Page(header, items, others).text()
        first = re.split(r"(?<=\.) ", " ".join(header["text"]))[0].rstrip(".")
        index += f"| [{name}.h]({name}.md) | {plain(first)} |\n"
    found["docs/reference/README.md"] = index
    return found


def ops_page(description):
    out = [OPS_HEAD]
    structs = {struct["name"]: struct for struct in description["structs"]}
    for header, title in OPS.items():
        rows = [f for f in description["functions"] if f["header"] == header
                and f["arguments"][0]["kind"] == "source_line"]
        if not rows:
            continue
        out += [f"## {title}", "", f"`#include <catena/{header}>`", ""]
        for function in rows:
            name = function["name"].removesuffix("_at")
            # Where the options of an op come first, its comment stands above them.
            about = structs.get(function.get("documented_by"), function).get("comment", [])
            words = " ".join(" ".join(about).split())
            call = signature.function({**function, "arguments": function["arguments"][1:]}, name)
            out += [f"- `{call}`" + (f"<br>{words}" if words else "")]
        out += [""]
    return "\n".join(out)


def plain(text):
    """Text in which Markdown sees no marks of its own, except code between backticks."""
    parts = text.split("`")
    return "`".join(re.sub(r"([*<\[\]])", r"\\\1", part) if i % 2 == 0 else part
                    for i, part in enumerate(parts))


def cell(lines):
    return plain(" ".join(lines)).replace("|", "\\|")


def prose(lines):
    """Paragraphs; indented lines, such as examples, become a block."""
    out = []
    for fixed, group in itertools.groupby(lines, lambda line: line.startswith("  ")):
        text = textwrap.dedent("\n".join(group)).strip("\n")
        out += ["", "```text", *text.split("\n"), "```", ""] if fixed else plain(text).split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n").split("\n")


class Page:
    """The page of one header."""

    def __init__(self, header, items, others):
        self.header, self.items, self.others = header, items, others

    def text(self):
        out = [f"# catena/{self.header['name']}", "", *prose(self.header["text"]), ""]
        for section in self.header["sections"]:
            if section["title"]:
                out += [f"## {section['title'][0].upper()}{section['title'][1:]}", ""]
            if section["text"]:
                out += [*prose(section["text"]), ""]
            for group in self.groups(section["items"]):
                out += self.entry(group)
        return "\n".join(out).rstrip("\n") + "\n"

    def groups(self, names):
        """Texts, and lists of items that share a comment."""
        groups = []
        for name in names:
            first = groups[-1][0]["name"] if groups and isinstance(groups[-1], list) else None
            item = self.items.get(name) if isinstance(name, str) else None
            if isinstance(name, dict):
                groups.append(name)
            elif item and first and (item.get("documented_by") == first or
                                     self.alike(groups[-1][-1], item)):
                groups[-1].append(item)
            elif item:
                groups.append([item])
        return groups

    @staticmethod
    def alike(before, item):
        """Names that follow one another and that nobody comments on are shown together."""
        if before["part"] != item["part"] or item["part"] not in SHORT:
            return False
        return not any("comment" in i or "note" in i for i in (before, item))

    def entry(self, group):
        if isinstance(group, dict):
            return [*prose(group["text"]), ""]
        names = [name for item in group for name in signature.shown_names(item)]
        out = [f"### {', '.join(names)}", ""]
        declared = [line for item in group for line in signature.declaration(item)]
        out += self.declared(declared, group) if declared else []
        text = group[0].get("description", group[0].get("comment", []))
        out += [*prose(text), ""] if text else []
        words = self.words(group)
        out += [*words, ""] if words else []
        for item in group:
            out += self.table(item)
        return out

    def declared(self, lines, group):
        """The declaration in C; on the site in tabs, if other languages have it too."""
        tabs = {"C": ("c", lines)}
        for item in group:
            for language, (mark, more) in self.others.get(item["name"], {}).items():
                tabs.setdefault(language, (mark, []))[1].extend(more)
        out = []
        for language, (mark, text) in tabs.items():
            block = [f"```{mark}", *text, "```", ""]
            if len(tabs) > 1:
                block = [f'=== "{language}"', "", *("    " * bool(b) + b for b in block)]
            out += block
        return out

    def words(self, group):
        """Ranks, result and errors, which all functions of a group have in common; what frees the
        objects of a handle."""
        handles = [i for i in group if i["part"] == "handles"]
        if handles:
            return [f"- {h['name']}: " + (f"freed by `{h['free']}`." if h["free"] else
                                          f"owned by the {h['owner']}.") for h in handles]
        function = next((i for i in group if i["part"] == "functions"), None)
        if not function:
            return []
        out = [f"- Ranks: {plain(' '.join(function['ranks']['text']))}"]
        result = next((i["result"] for i in group if "result" in i), None)
        if result:
            out.append(f"- Result: {plain(' '.join(result['text']))}.")
        if "errors" in function:
            out.append(f"- Errors: {plain(' '.join(function['errors']['text']))}.")
        return out

    def table(self, item):
        if item["part"] == "structs":
            rows = [(f"`{signature.field_name(f)}`", f"`{signature.field_type(f)}`",
                     cell(f.get("comment", []))) for f in item["fields"]]
            return ["| field | type | |", "|---|---|---|", *map(row, rows), ""]
        if item["part"] == "enums":
            rows = [(f"`{v['name']}`", str(v["value"]), cell(v.get("comment", [])))
                    for v in item["values"]]
            return ["| name | value | |", "|---|---|---|", *map(row, rows), ""]
        return []


def row(cells):
    return "| " + " | ".join(cells) + " |"
