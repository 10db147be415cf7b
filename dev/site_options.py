# SPDX-License-Identifier: Apache-2.0
"""The option reference of the site: one page per subcommand, made from its man page.

Understands only what tools/catena/help.c writes: .SH, .SS, .TP with a name in bold, .nf.
"""
import re

INDEX_HEAD = """# Options of the command

Every option of every subcommand, as `catena COMMAND --help all` and `man catena-COMMAND` show them.
[The command](../command.md) shows how to use it. Where a subcommand has `--config`, the keys of the
file are the names of the options; [the guide](../command.md#keep-the-options-in-a-file) explains
what overrides what.

| command | what it does |
|---|---|
"""


def pages(man):
    """{page: text} of the man pages in this folder."""
    overview = sections((man / "catena.1").read_text(encoding="utf-8"))
    index, found = INDEX_HEAD, {}
    for title, text in entries(overview["COMMANDS"]):
        name = re.match(r"catena-(\S+)", title)[1]
        index += f"| [`catena {name}`]({name}.md) | {escaped(text)} |\n"
        source = (man / f"catena-{name}.1").read_text(encoding="utf-8")
        found[f"options/{name}.md"] = page(name, sections(source))
    index += f"\n## Exit codes\n\n{table(entries(overview['EXIT STATUS']), 'code')}"
    return {"options/README.md": index, **found}


def page(name, parts):
    summary = plain(parts["NAME"]).split(" - ", 1)[1]
    usage = " ".join(plain(parts["SYNOPSIS"]).split())
    out = [f"# catena {name}", "", escaped(summary), "", "```text", usage, "```", ""]
    if "DESCRIPTION" in parts:
        out += [escaped(plain(parts["DESCRIPTION"])), ""]
    groups = re.split(r"^\.SS (.*)\n", parts["OPTIONS"], flags=re.M)
    if groups[0].strip():
        out += ["## Options", "", table(entries(groups[0]), "option")]
    for heading, text in zip(groups[1::2], groups[2::2]):
        out += [f"## {plain(heading)}", "", table(entries(text), "option")]
    examples = re.search(r"^\.nf\n(.*?)^\.fi", parts["EXAMPLES"], re.M | re.S)[1]
    return "\n".join([*out, "## Examples", "", "```text", plain(examples, True).rstrip("\n"),
                      "```", ""])


def sections(text):
    """{heading: text} of a man page."""
    parts = re.split(r"^\.SH (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def entries(text):
    """(name, text) of each .TP."""
    for entry in re.split(r"^\.TP\n", text, flags=re.M)[1:]:
        name, said = entry.split("\n", 1)
        yield plain(name), " ".join(plain(said).split())


def plain(text, fixed=False):
    """Text without the marks of troff."""
    if not fixed:
        text = re.sub(r"^\.(?:BR?|I) ", "", text, flags=re.M)
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def escaped(text):
    """In a table cell, Markdown sees no marks of its own. Options are code."""
    text = re.sub(r"([*<_\[\]|])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", text)


def table(rows, kind):
    """Options and what they mean. Two columns, because a phone has no room for the default."""
    out = [f"| {kind} | meaning |", "|---|---|"]
    for name, text in rows:
        meaning, default = re.fullmatch(r"(.*?)(?: \(default: (.*)\))?", text).groups()
        said = f"{escaped(meaning)}. Default: {default_shown(default)}" if default else \
            escaped(meaning)
        # A bar would end the cell, even within code.
        shown = "<code>" + name.replace("<", "&lt;").replace("|", "&#124;<wbr>") + "</code>"
        out.append(f"| {shown} | {said} |")
    return "\n".join(out) + "\n"


def default_shown(text):
    """A value as code, an explanation as prose."""
    return f"`{text}`" if " " not in text and "|" not in text else escaped(text)
