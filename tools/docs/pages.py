#!/usr/bin/env python3
"""pages.py ROOT OUT: the project's Markdown and its manual as HTML pages with one style and one menu.

Begins with README.md, ARCHITECTURE.md and the files of docs/, and follows their links: another document becomes a page,
too, a picture is copied, a source file is shown as text, a folder as the list of its files. A link to nothing is an error.
Blocks of Mermaid become pictures where $LRUN_DOCS_PYTHON can draw them."""
import dataclasses
import hashlib
import html
import os
import pathlib
import re
import shutil
import string
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MANUAL = pathlib.PurePosixPath("man/lrun.1")
API = pathlib.PurePosixPath("api/index.html")  # Doxygen makes it
PICTURES = {".svg", ".png"}
LINK = re.compile(r'(?<= )(href|src|srcset)="([^"]*)"')
HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.S)
MERMAID = re.compile(r'<pre><code class="language-mermaid">(.*?)</code></pre>', re.S)
TABLE = re.compile(r"<table>.*?</table>", re.S)
EXTENSIONS = ("table", "strikethrough", "autolink", "tasklist")


class Broken(Exception):
    """Where a document is wrong, in words for people."""


@dataclasses.dataclass
class Page:
    source: pathlib.PurePosixPath  # relative to the root
    target: pathlib.PurePosixPath  # relative to the output
    title: str
    body: str


def run(*words, text=None):
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout


def plain(text):
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip()


def slug(heading):
    """The name that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", plain(heading).lower()).replace(" ", "-")


def with_anchors(body):
    seen = {}

    def anchored(found):
        name = slug(found[2])
        seen[name] = seen.get(name, -1) + 1
        if seen[name]:
            name = f"{name}-{seen[name]}"
        return f'<h{found[1]} id="{name}">{found[2]}</h{found[1]}>'

    return HEADING.sub(anchored, body)


class Site:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.pages = {}    # by source, in the order in which they were found
        self.waiting = []  # sources whose pages are to be made
        self.mermaid = {}  # name of a picture: its text

    # What a source becomes.

    def target_of(self, source):
        path = self.root / source
        if path.is_dir():
            return source / "index.html"
        if source.name == "README.md":
            return source.parent / "index.html"
        if source.suffix == ".md":
            return source.with_suffix(".html")
        return source if source.suffix in PICTURES else source.parent / f"{source.name}.html"

    def resolve(self, link, page):
        """A link of a page as it is in the output; what it leads to will be there."""
        path, _, fragment = link.partition("#")
        if re.match(r"[a-z]+:", path) or not path:
            return link
        joined = os.path.normpath(page.parent / path)
        if joined.startswith("..") or not (self.root / joined).exists():
            raise Broken(f"{page}: the link '{link}' leads nowhere")
        source = pathlib.PurePosixPath(joined)
        if (self.root / source / "README.md").is_file():
            source = source / "README.md"
        self.want(source)
        target = os.path.relpath(self.target_of(source), self.target_of(page).parent)
        return f"{target}#{fragment}" if fragment else target

    def want(self, source):
        if source not in self.pages and source not in self.waiting:
            self.waiting.append(source)

    def make_pages(self):
        while self.waiting:
            source = self.waiting.pop(0)
            if source.suffix in PICTURES:
                self.copy(source)
            else:
                self.pages[source] = self.page_of(source)

    def copy(self, source):
        (self.out / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.root / source, self.out / source)

    def page_of(self, source):
        path = self.root / source
        if path.is_dir():
            body = self.folder_body(source)
        elif source.suffix == ".md":
            body = self.markdown_body(source)
        elif source == MANUAL:
            body = '<h1 class="title">lrun(1)</h1>' + run("mandoc", "-T", "html", "-O", "fragment,toc", path)
        else:
            body = f"<h1>{html.escape(str(source))}</h1>\n<pre><code>{html.escape(path.read_text())}</code></pre>"
        heading = HEADING.search(re.sub(r"(<h[1-6]) [^>]*>", r"\1>", body))
        return Page(source, self.target_of(source), plain(heading[2]) if heading else str(source), body)

    def folder_body(self, source):
        names = sorted(child.name for child in (self.root / source).iterdir())
        items = "".join(f'<li><a href="{self.resolve(name, source / "_")}">{html.escape(name)}</a></li>\n'
                        for name in names)
        return f"<h1>{html.escape(str(source))}</h1>\n<ul>\n{items}</ul>\n"

    def markdown_body(self, source):
        body = run("cmark-gfm", "--unsafe", *(word for name in EXTENSIONS for word in ("-e", name)),
                   text=(self.root / source).read_text())
        body = with_anchors(body)
        body = TABLE.sub(lambda table: f'<div class="table">{table[0]}</div>', body)
        body = LINK.sub(lambda link: f'{link[1]}="{html.escape(self.resolve(html.unescape(link[2]), source))}"', body)
        return MERMAID.sub(lambda block: self.mermaid_figure(html.unescape(block[1]), source), body)

    # Pictures of Mermaid: their texts are kept, drawn together, and put where they belong.

    def mermaid_figure(self, text, source):
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.mermaid[name] = (text, source)
        return f"<!-- mermaid {name} {source} -->"

    def draw(self):
        """{name: picture, relative to the output}; empty where nothing can draw."""
        python = os.environ.get("LRUN_DOCS_PYTHON")
        if not self.mermaid or not python:
            return {}
        folder = self.out / "pictures"
        folder.mkdir()
        for name, (text, _) in self.mermaid.items():
            (folder / f"{name}.mmd").write_text(text)
        drawn = subprocess.run([python, HERE / "draw_mermaid.py", folder], capture_output=True, text=True, check=False)
        if drawn.returncode != 0:
            places = {name: str(source) for name, (_, source) in self.mermaid.items()}
            raise Broken(re.sub(r"[0-9a-f]{16}", lambda name: places.get(name[0], name[0]), drawn.stderr.strip()))
        return {name: pathlib.PurePosixPath("pictures", f"{name}.svg") for name in self.mermaid}

    def with_pictures(self, page, drawn):
        def figure(found):
            text, _ = self.mermaid[found[1]]
            if found[1] not in drawn:
                return (f'<figure><pre>{html.escape(text)}</pre><figcaption>A picture in the notation of Mermaid, which '
                        "was not drawn here.</figcaption></figure>")
            picture = os.path.relpath(drawn[found[1]], page.target.parent)
            width = re.search(r'viewBox="\S+ \S+ (\S+) ', (self.out / drawn[found[1]]).read_text())[1]
            kind = html.escape(text.split()[0])
            return f'<figure><img src="{picture}" width="{float(width):.0f}" alt="Picture: {kind}"></figure>'

        return re.sub(r"<!-- mermaid (\S+) \S+ -->", figure, page.body)

    # The menu, and the whole.

    def menu(self, groups, page):
        parts = []
        for title, entries in groups.items():
            items = []
            for target, name in entries:
                here = ' aria-current="page"' if target == page.target else ""
                link = os.path.relpath(target, page.target.parent)
                items.append(f'<li><a href="{link}"{here}>{html.escape(name)}</a></li>')
            if items:
                parts.append(f"<h2>{title}</h2>\n<ul>\n" + "\n".join(items) + "\n</ul>")
        return "\n".join(parts)

    def groups(self):
        """{title of a group: [(target, name)]}, in the order in which the pages were found."""
        def entries(is_in):
            return [(page.target, page.title.split(": ")[0]) for source, page in self.pages.items()
                    if source.suffix == ".md" and is_in(source)]

        def is_of(folder):
            return lambda source: str(source.parent) == folder

        start = [(self.target_of(pathlib.PurePosixPath("README.md")), "Overview")]
        reference = [(self.target_of(MANUAL), "Manual: lrun(1)"), (API, "API of liblrun")]
        rest = entries(lambda source: str(source.parent) not in {"docs", "docs/design"} and str(source) != "README.md")
        return {"lrun": start, "Guide": entries(is_of("docs")), "Reference": reference,
                "Design": entries(is_of("docs/design")), "Project": rest}

    def write(self):
        template = string.Template((HERE / "page.html").read_text())
        groups, drawn = self.groups(), self.draw()
        for page in self.pages.values():
            path = self.out / page.target
            path.parent.mkdir(parents=True, exist_ok=True)
            top = os.path.relpath(".", page.target.parent)
            path.write_text(template.substitute(title=html.escape(page.title), top=top, menu=self.menu(groups, page),
                                                body=self.with_pictures(page, drawn)))
        shutil.copyfile(HERE / "style.css", self.out / "style.css")


def main():
    root, out = map(pathlib.Path, sys.argv[1:])
    site = Site(root, out)
    folders = (sorted((root / folder).glob("*.md")) for folder in ("docs", "docs/design"))
    sources = ["ARCHITECTURE.md", *(str(path.relative_to(root)) for paths in folders for path in paths), str(MANUAL)]
    try:
        for first in ("docs/README.md", "README.md", *sources):  # the guide in the order in which these name its pages
            if (root / first).exists():
                site.want(pathlib.PurePosixPath(first))
                site.make_pages()
        site.write()
    except Broken as error:
        sys.exit(f"docs: error: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"docs: error: {error}\n{error.stderr}")


if __name__ == "__main__":
    main()
