"""What the pictures and tables of this folder have in common: SVG that follows the reader's light or dark theme, and the
part of README.md between two marks."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .soft { fill: #57606a } .end { text-anchor: end }
  .middle { text-anchor: middle } .strong { font-weight: 600 }
  .grid { stroke: #d0d7de; stroke-width: 1 } .limit { stroke: #57606a; stroke-width: 2 }
  polyline { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .goal { stroke: #1a7f37; stroke-width: 3 } text.goal { stroke: none; fill: #1a7f37 }
"""
DARK_STYLE = """
    text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #3d444d } .limit { stroke: #9198a1 }
    .goal { stroke: #3fb950 } text.goal { fill: #3fb950 }
"""
# Of a series in the light and the dark theme.
BLUE, ORANGE, GREY = ("#0969da", "#4493f8"), ("#bc4c00", "#f0883e"), ("#57606a", "#9198a1")
TEAL, PURPLE = ("#1b7c83", "#39c5cf"), ("#8250df", "#ab7df8")


def color_style(name, color, indent):
    return (f"{indent}polyline.{name} {{ stroke: {color} }} "
            f"circle.{name}, rect.{name}, text.{name} {{ fill: {color} }}\n")


def svg(width, height, label, colors, parts):
    """\\param colors  {class: (light, dark)}"""
    light = "".join(color_style(name, color, "  ") for name, (color, _) in colors.items())
    dark = "".join(color_style(name, color, "    ") for name, (_, color) in colors.items())
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{label}">\n'
            f"<style>{STYLE}{light}  @media (prefers-color-scheme: dark) {{{DARK_STYLE}{dark}  }}\n</style>\n"
            + "\n".join(parts) + "\n</svg>\n")


def text(x, y, words, classes=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}">{words}</text>'


def line(x1, y1, x2, y2, classes):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}"/>'


def bar(x, y, width, height, classes):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{classes}"/>'


def curve(points, classes):
    """A line with a dot at each point."""
    parts = [f'<polyline class="{classes}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>']
    return parts + [f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points]


def markdown(head, rows):
    return "".join("| " + " | ".join(cells) + " |\n" for cells in [head, *rows]).replace(
        "\n", "\n" + "|---" * len(head) + "|\n", 1)


def with_table(readme, begin, end, table):
    before, rest = readme.split(begin + "\n", 1)
    return before + begin + "\n" + table + rest[rest.index(end):]


def write_or_check(made, check, source):
    """\\param made  {file: content}; written, or with `check` compared."""
    for file, content in made.items():
        if not check:
            file.write_text(content)
        elif not file.exists() or file.read_text() != content:
            sys.exit(f"bench/{file.name} is not what bench/{source}.tsv says: run bench/plot_{source}.py")
