# SPDX-License-Identifier: Apache-2.0
"""Checks the built site for dev/site --check: links, anchors, foreign resources and size."""
import posixpath
import re
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST_BYTES = 10_000_000
# Attributes from which a browser loads something by itself.
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src",
          "audio": "src", "embed": "src", "object": "data", "link": "href"}
STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What one page offers, links to and loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if attrs.get(LOADED.get(tag)):
            self.loaded.append(attrs[LOADED[tag]])
        if attrs.get("style"):
            self.loaded += styled(attrs["style"])


def styled(text):
    return [a or b for a, b in STYLE.findall(text)]


def foreign(address):
    parts = urlsplit(address)
    return parts.scheme not in ("", "data") or bool(parts.netloc)


def problems_of(name, page, pages, files):
    """Broken links and foreign resources of one page."""
    for address in [*page.links, *page.loaded]:
        parts = urlsplit(address)
        if foreign(address):
            if address in page.loaded:
                yield f"{name}: loads {address}"
        elif parts.scheme == "data":
            continue
        # The page for errors is shown at any address, so its links begin at the top.
        elif parts.path.startswith("/") and name != "404.html":
            yield f"{name}: {address} only works at the top of a server"
        elif not reaches(name, parts, pages, files):
            yield f"{name}: {address} leads nowhere"


def reaches(name, parts, pages, files):
    """Whether the file that a link leads to exists, and the place in it."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) \
        if parts.path else name
    path = "index.html" if path in (".", "/") else path.lstrip("/")
    anchor = unquote(parts.fragment)
    return path in files and (not anchor or path not in pages or anchor in pages[path].anchors)


def found(site):
    """The pages and the size of a site, and what is wrong with it."""
    files = {str(f.relative_to(site)): f for f in sorted(site.rglob("*")) if f.is_file()}
    pages = {name: Page(f.read_text(encoding="utf-8")) for name, f in files.items()
             if name.endswith(".html")}
    problems = [p for name, page in pages.items() for p in problems_of(name, page, pages, files)]
    for name, file in files.items():
        if name.endswith(".css"):
            problems += [f"{name}: loads {a}" for a in styled(file.read_text(encoding="utf-8"))
                         if foreign(a)]
    size = sum(f.stat().st_size for f in files.values())
    if size > MOST_BYTES:
        problems.append(f"the site has {size} bytes, at most {MOST_BYTES} are allowed")
    if not pages:
        problems.append("there are no pages")
    return pages, size, problems


def self_test():
    right = {"index.html": "<a href='a/b.html#x'>b</a><a href='https://c.example'>c</a>",
             "a/b.html": "<p id=x><a href='../index.html'>i</a><img src='data:image/png,0'>"}
    wrong = [{"index.html": "<a href='c.html'>"}, {"index.html": "<a href='a/b.html#y'>"},
             {"index.html": "<a href='/a/b.html'>"}, {"index.html": "<a href='../index.html'>"},
             {"index.html": "<img src='//c.example/i.png'>"},
             {"index.html": "<link rel=stylesheet href='https://c.example/s.css'>"},
             {"s.css": "@font-face { src: url(https://c.example/f.woff) }"},
             {"big.bin": "0" * (MOST_BYTES + 1)}]
    for changes in [{}, *wrong]:
        with tempfile.TemporaryDirectory() as name:
            for file, text in {**right, **changes}.items():
                (Path(name) / file).parent.mkdir(exist_ok=True)
                (Path(name) / file).write_text(text, encoding="utf-8")
            problems = found(Path(name))[2]
            assert len(problems) == bool(changes), (changes, problems)
    print(f"dev/site: self-test: 1 right site accepted, {len(wrong)} wrong ones refused")


def main(site):
    self_test()
    pages, size, problems = found(site)
    for problem in problems:
        print(f"dev/site: {problem}", file=sys.stderr)
    links = sum(len(p.links) for p in pages.values())
    outside = sum(foreign(a) for p in pages.values() for a in p.links)
    loaded = sum(len(p.loaded) for p in pages.values())
    print(f"dev/site: {len(pages)} pages, {links} links ({outside} to other sites), {loaded} "
          f"resources, {size / 1e6:.1f} MB, {len(problems)} problems")
    return 1 if problems else 0
