#!/usr/bin/env python3
"""check_links.py FOLDER: every link of the HTML files in a folder leads to a file in it and to an anchor that is there, and
no page needs the network for what it shows. Links to elsewhere are not followed."""
import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "srcset"), ("object", "data")}
LINKS = LOADED | {("a", "href"), ("area", "href")}


class Reader(html.parser.HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            if (tag, name) in LINKS and value:
                self.links.append(((tag, name), value))


def problems(folder):
    pages = {path: Reader(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: no pages"
    for path, page in pages.items():
        name = path.relative_to(folder)
        for place, link in page.links:
            if re.match(r"([a-z]+:|//)", link):
                if place in LOADED and not link.startswith(("data:", "javascript:")):
                    yield f"{name}: '{link}' is loaded from elsewhere"
                continue
            url = urllib.parse.urlsplit(link)
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path.resolve()
            anchor = urllib.parse.unquote(url.fragment)
            if not target.is_relative_to(folder) or not target.is_file():
                yield f"{name}: '{link}' leads to no file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name}: '{link}' leads to no place of that page"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    found = list(problems(folder))
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
