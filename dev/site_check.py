# SPDX-License-Identifier: Apache-2.0
"""Checks the built site for dev/site --check: links, anchors, foreign resources and size."""
import posixpath
import re
import sys
from html.parser import HTMLParser
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
        if foreign(address):
            if address in page.loaded:
                yield f"{name}: loads {address}"
            continue
        parts = urlsplit(address)
        if parts.scheme == "data":
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) \
            if parts.path else name
        if parts.path.startswith("/") and name != "404.html":
            yield f"{name}: {address} only works at the top of a server"
        path = path.lstrip("/") or "index.html"
        path = "index.html" if path == "." else path
        if path not in files:
            yield f"{name}: {address} leads to no file"
        elif parts.fragment and path in pages and \
                unquote(parts.fragment) not in pages[path].anchors:
            yield f"{name}: {address} leads to no place on that page"


def main(site):
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
    if len(pages) < 2:
        problems.append("there are no pages")
    for problem in problems:
        print(f"dev/site: {problem}", file=sys.stderr)
    links = sum(len(p.links) for p in pages.values())
    outside = sum(foreign(a) for p in pages.values() for a in p.links)
    loaded = sum(len(p.loaded) for p in pages.values())
    print(f"dev/site: {len(pages)} pages, {links} links ({outside} to other sites), {loaded} "
          f"resources, {size / 1e6:.1f} MB, {len(problems)} problems")
    return 1 if problems else 0
