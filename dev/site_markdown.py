# SPDX-License-Identifier: Apache-2.0
"""Hook of mkdocs.yml: changes what the pages say to forges and tests into what mkdocs understands,
so that the Markdown in the tree stays plain.

- Links to files in the tree lead to their pages on the site. A header leads to its reference. A
  link whose text is the name of the file gets the title of the page.
- Sections in a row that are named after languages (### Python, ### C, ...) and show code become
  tabs. What follows the last block of code of the last one is for all of them.
- The words after the language of a block of code are for tests/consumer/docs.py. They are left
  out, except names of files, which become titles.
- \\< is &lt;, because Python's Markdown knows no such escape.
- Short code within text is marked, and docs/site.css keeps it on one line.
"""
import posixpath
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from site_pages import OUTSIDE, TOP  # noqa: E402

LANGUAGES = ("Python", "C", "C++", "Fortran")
SECTION = re.compile(rf"(#+) ({'|'.join(map(re.escape, LANGUAGES))})\Z")
FENCE = re.compile(r"( *)(`{3,})(\w*) ?([^`]*)\Z")
SHORT = re.compile(r"<code>([^<\n]{1,24})</code>")
LINK = re.compile(r"(?:\[([\w./-]+\.md))?\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, **_):
    if page.parent is None:
        page.meta["hide"] = ["navigation"]  # it would show only this page
    titles = dict(titled(config.nav))
    lines = in_tabs(list(marked(markdown.split("\n"))))
    return "\n".join(text if code else linked(text, page.file.src_uri, titles)
                     for code, text in lines)


def on_page_content(html, **_):
    return SHORT.sub(r'<code class="short">\1</code>', html)


def titled(nav, title=None):
    """(page, title) of everything in the navigation."""
    if isinstance(nav, str):
        header = re.fullmatch(r"reference/(\w+)\.md", nav)
        yield nav, title or (f"{header[1]}.h" if header else None)
    for entry in nav if isinstance(nav, list) else []:
        yield from titled(entry)
    for name, entry in nav.items() if isinstance(nav, dict) else []:
        yield from titled(entry, name)


def marked(lines):
    """(whether it belongs to a block of code, line), with the first lines of blocks replaced."""
    end = None
    for line in lines:
        start = FENCE.match(line) if end is None else None
        if start:
            end = start[2]
            line = opened(*start.groups())
            yield True, line
        else:
            yield end is not None, line
            if end is not None and line.strip() == end:
                end = None


def opened(indent, ticks, language, words):
    """The first line of a block of code."""
    if language == "output":
        return f'{indent}{ticks}text title="Output"'
    name = next((w for w in words.split() if re.search(r"\w\.\w", w)), None)
    return f"{indent}{ticks}{language}" + (f' title="{name}"' if name else "")


def in_tabs(lines):
    out, at = [], 0
    while at < len(lines):
        run, end = tab_run(lines, at)
        if len(run) < 2:
            out.append(lines[at])
            at += 1
            continue
        for name, body in run:
            out += [(False, f'=== "{name}"'), (False, "")]
            out += [(code, "    " + text if text else text) for code, text in body]
        out.append((False, ""))
        at = end
    return out


def tab_run(lines, at):
    """[(language, lines)] of the sections in a row that begin here, and where they end."""
    run, level = [], None
    while at < len(lines):
        code, text = lines[at]
        start = None if code else SECTION.match(text)
        if not start or level not in (None, start[1]):
            break
        level = start[1]
        begin = at = at + 1
        while at < len(lines) and (lines[at][0] or not lines[at][1].startswith("#")):
            at += 1
        if not any(code for code, _ in lines[begin:at]):
            return [], at
        run.append((start[2], lines[begin:at]))
    if run:
        name, body = run[-1]
        last = max((i for i, (code, _) in enumerate(body) if code), default=-1) + 1
        at -= len(body) - last
        run[-1] = name, body[:last]
    return run, at


def linked(text, page, titles):
    """A line of prose with its links changed."""
    def changed(found):
        name, link, place = found.groups()
        link, its = target(link, page)
        if name and posixpath.basename(name) == posixpath.basename(found[2]):
            name = titles.get(its) or name
        return (f"[{name}" if name else "") + f"]({link}{place or ''})"
    return LINK.sub(changed, text.replace("\\<", "&lt;"))


def target(link, page):
    """A link of a page as it is on the site, and the page that it leads to."""
    origin = next((name for name, its in OUTSIDE.items() if its == page), f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    header = re.fullmatch(r"include/catena/(\w+)\.h", path)
    if header:
        path = f"docs/reference/{header[1]}.md"
    if not (TOP / path).exists():
        return link, None
    its = OUTSIDE.get(path, path.removeprefix("docs/"))
    return posixpath.relpath(its, posixpath.dirname(page) or "."), its
