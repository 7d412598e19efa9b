#!/usr/bin/env python3
"""plot_launch.py [--check] [TABLE...]: the launch figures of bench/launch.tsv as the picture bench/launch.svg and as the
table of bench/README.md.

With TABLEs, which launch_table.py printed, launch.tsv is written from them first. --check writes nothing and fails when
picture or table are not those of launch.tsv."""
import pathlib
import re
import sys

from plot import BLUE, HERE, ORANGE, curve, line, svg, text, with_table, write_or_check

BEGIN, END = "<!-- launch: made by plot_launch.py -->", "<!-- end of launch -->"
SERIES = {"limit": "limit", "lrun": "lrun", "hydra4": "MPICH's hydra 4.0", "parallel": "GNU parallel"}
GOALS = {8: 1.5, 64: 1.25, 1024: 1.2}  # times the limit
WITH_PIPES = 1024  # from here on the limit program makes the pipes that lrun needs for logs
LINE = re.compile(r"n=(\d+)\s+(\S+)\s+wall med=\s*([\d.]+) ms")


def read_tables(files):
    """{workers: {series: milliseconds}} of what launch_table.py printed."""
    rows = {}
    for text in (pathlib.Path(file).read_text() for file in files):
        for workers, name, median in LINE.findall(text):
            row = rows.setdefault(int(workers), {})
            if int(workers) >= WITH_PIPES and name == "limit-pipes":
                name = "limit"
            if name in SERIES:
                row[name] = float(median)
    return {workers: row for workers, row in sorted(rows.items()) if {"limit", "lrun"} <= row.keys()}


def tsv_of(rows):
    lines = ["\t".join(["workers", *SERIES])]
    for workers, row in rows.items():
        lines.append("\t".join([str(workers), *(str(row.get(name, "-")) for name in SERIES)]))
    return "\n".join(lines) + "\n"


def read_tsv(text):
    names, *lines = (line.split("\t") for line in text.splitlines())
    return {int(line[0]): {name: float(value) for name, value in zip(names[1:], line[1:]) if value != "-"}
            for line in lines}


def milliseconds(value):
    return f"{value:.1f} ms" if value < 30 else f"{value:.0f} ms"


def markdown_of(rows):
    lines = ["| workers | limit | lrun | ratio | goal | " + " | ".join(list(SERIES.values())[2:]) + " |",
             "|---" * (5 + len(SERIES) - 2) + "|"]
    for workers, row in rows.items():
        others = [milliseconds(row[name]) if name in row else "–" for name in list(SERIES)[2:]]
        goal = f"{GOALS[workers]:g}" if workers in GOALS else "–"
        cells = [f"{workers}, with pipes" if workers >= WITH_PIPES else f"{workers}", milliseconds(row["limit"]),
                 milliseconds(row["lrun"]), f"{row['lrun'] / row['limit']:.1f}", goal, *others]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# The picture: how many times the limit each needs. One that needs far more is named beside it.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 64, 150, 64, 52
FAR = 8  # times the limit
COLORS = {"lrun": BLUE, "hydra4": ORANGE}


def ratios(name, rows):
    return {workers: row[name] / row["limit"] for workers, row in rows.items() if name in row}


class Scale:
    def __init__(self, rows):
        self.workers = list(rows)
        all_ratios = [ratio for name in SERIES for ratio in ratios(name, rows).values()]
        self.top = max(2.0, max(ratio for ratio in all_ratios if ratio < FAR) + 0.5)

    def x(self, workers):
        step = (WIDTH - LEFT - RIGHT) / max(1, len(self.workers))
        return LEFT + step * (self.workers.index(workers) + 0.5)

    def y(self, ratio):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ratio / self.top


def frame(rows, scale):
    far = [f"{SERIES[name]} needs {min(found.values()):.0f} to {max(found.values()):.0f} times the limit's time"
           for name in SERIES if (found := ratios(name, rows)) and min(found.values()) >= FAR]
    parts = [text(LEFT, 24, "Starting N × /bin/true and waiting for them", "title"),
             text(LEFT, 43, "; ".join(["in times of the limit program, median at each point", *far]), "soft")]
    for tick in range(0, int(scale.top) + 1):
        parts.append(line(LEFT, scale.y(tick), WIDTH - RIGHT, scale.y(tick), "limit" if tick == 1 else "grid"))
        parts.append(text(LEFT - 8, scale.y(tick) + 4, f"{tick} ×", "soft end"))
    parts.append(text(WIDTH - RIGHT + 10, scale.y(1) + 7, "limit: clone and wait", "soft"))
    for workers, row in rows.items():
        parts.append(text(scale.x(workers), HEIGHT - BOTTOM + 18, str(workers), "middle"))
        parts.append(text(scale.x(workers), HEIGHT - BOTTOM + 34, milliseconds(row["limit"]), "middle soft"))
    parts.append(text(LEFT - 8, HEIGHT - BOTTOM + 18, "workers", "end"))
    parts.append(text(LEFT - 8, HEIGHT - BOTTOM + 34, "limit", "end soft"))
    return parts


def goals(rows, scale):
    parts = []
    wanted = {workers: goal for workers, goal in GOALS.items() if workers in rows}
    for workers, goal in wanted.items():
        x, y = scale.x(workers), scale.y(goal)
        parts.append(line(x - 22, y, x + 22, y, "goal"))
        next_one = scale.workers.index(workers) + 1
        has_room = next_one == len(scale.workers) or scale.workers[next_one] not in wanted
        parts.append(text(x + 26, y + 5, f"{goal:g}" + (" goal" if has_room else ""), "goal"))
    return parts


def series(name, rows, scale):
    points = [(workers, scale.x(workers), scale.y(ratio)) for workers, ratio in ratios(name, rows).items()]
    parts = curve([point[1:] for point in points], name)
    for index, (workers, x, y) in enumerate(points):
        comes_from_above = index > 0 and points[index - 1][2] < y - 8  # the line is where the words would begin
        parts.append(text(x + (18 if comes_from_above else 0), y - 10, milliseconds(rows[workers][name]),
                          f"middle {name}"))
    _, x, y = points[-1]
    parts.append(text(max(x + 14, WIDTH - RIGHT + 10), y - 8, SERIES[name], f"strong {name}"))
    return parts


def svg_of(rows):
    scale = Scale(rows)
    parts = frame(rows, scale) + goals(rows, scale)
    for name in list(SERIES)[:0:-1]:
        found = ratios(name, rows)
        if found and min(found.values()) < FAR:
            parts += series(name, rows, scale)
    return svg(WIDTH, HEIGHT, "launch times as multiples of the limit", COLORS, parts)


def main(arguments):
    check = "--check" in arguments
    tables = [argument for argument in arguments if argument != "--check"]
    if tables:
        rows = read_tables(tables)
        if not rows:
            sys.exit("plot_launch.py: no line of launch_table.py with a limit and lrun in " + ", ".join(tables))
        (HERE / "launch.tsv").write_text(tsv_of(rows))
    rows = read_tsv((HERE / "launch.tsv").read_text())
    readme = HERE / "README.md"
    made = {HERE / "launch.svg": svg_of(rows), readme: with_table(readme.read_text(), BEGIN, END, markdown_of(rows))}
    write_or_check(made, check, "launch")


if __name__ == "__main__":
    main(sys.argv[1:])
