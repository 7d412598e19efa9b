#!/usr/bin/env python3
"""plot_rendezvous.py [--check]: the figures of bench/rendezvous.tsv as the picture bench/rendezvous.svg and as the tables
of bench/README.md. --check writes nothing and fails when picture or tables are not those of rendezvous.tsv."""
import math
import sys

from plot import (BLUE, GREY, HERE, ORANGE, PURPLE, TEAL, curve, line, markdown, svg, text, with_table, write_or_check)

BEGIN, END = "<!-- rendezvous: made by plot_rendezvous.py -->", "<!-- end of rendezvous -->"
KINDS = {"limit": GREY, "lrun static": BLUE, "lrun c10d": TEAL, "torchrun static": ORANGE, "torchrun c10d": PURPLE}
MEET_GOALS = {2: 20, 16: 150}            # milliseconds
LOSSES = {"killed": ("a launcher is killed (kill -9 of its processes)", 100),
          "silent": ("a launcher is silent (SIGSTOP), heartbeat 1 s", 1100)}


def read_tsv(content):
    """{(figure, nodes): {kind: (median, least)}} and the load."""
    found, load = {}, ""
    for row in content.splitlines()[1:]:
        figure, nodes, kind, median, least, _ = row.split("\t")
        if figure == "load":
            load = kind
        else:
            found.setdefault((figure, int(nodes)), {})[kind] = (float(median), float(least))
    return found, load


def milliseconds(value):
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def goal_of(measured, goal):
    if goal is None:
        return "–"
    return f"≤ {milliseconds(goal)}, " + ("met" if measured <= goal else "**not met**")


def meet_row(nodes, row):
    cells = [str(nodes)]
    for kind in KINDS:
        cells.append(f"{milliseconds(row[kind][0])} ({row[kind][1]:,.1f})" if kind in row else "–")
    ours = max(row["lrun static"][0], row["lrun c10d"][0])
    torch = min((row[kind][0] for kind in row if kind.startswith("torchrun")), default=None)
    return [*cells, "–" if torch is None else f"{torch / ours:.0f} ×", goal_of(ours, MEET_GOALS.get(nodes))]


def tables_of(found, load):
    meet = [meet_row(nodes, row) for (figure, nodes), row in found.items() if figure == "meet"]
    lost = [[LOSSES[kind][0], f"{milliseconds(median)} ({least:,.1f})", goal_of(median, LOSSES[kind][1])]
            for (figure, _), row in found.items() if figure == "loss" for kind, (median, least) in row.items()]
    return (f"Load average {load} at the start; median (least).\n\n"
            + markdown(["launchers", *KINDS, "torchrun / lrun", "goal"], meet) + "\n"
            + markdown(["of three nodes", "the last worker of the new world runs after", "goal"], lost))


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 84, 150, 64, 46


class Scale:
    def __init__(self, rows):
        values = [median for row in rows.values() for median, _ in row.values()]
        self.nodes = list(rows)
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(self, nodes):
        return LEFT + (WIDTH - LEFT - RIGHT) / len(self.nodes) * (self.nodes.index(nodes) + 0.5)

    def y(self, value):
        share = (math.log10(value) - self.low) / max(1, self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def svg_of(found):
    rows = {nodes: row for (figure, nodes), row in found.items() if figure == "meet"}
    scale = Scale(rows)
    parts = [text(LEFT, 24, "From the first launcher's start to the last worker's first instruction", "title"),
             text(LEFT, 43, "launchers of one job on one machine of two cores, logarithmic", "soft")]
    for exponent in range(scale.low, scale.high + 1):
        value = 10.0 ** exponent
        parts.append(line(LEFT, scale.y(value), WIDTH - RIGHT, scale.y(value), "grid"))
        parts.append(text(LEFT - 8, scale.y(value) + 4, f"{value:,.0f} ms", "soft end"))
    for nodes in rows:
        parts.append(text(scale.x(nodes), HEIGHT - BOTTOM + 18, f"{nodes}", "middle"))
        if nodes in MEET_GOALS:
            x, y = scale.x(nodes), scale.y(MEET_GOALS[nodes])
            parts += [line(x - 16, y, x + 16, y, "goal"), text(x - 20, y + 4, "goal", "goal end")]
    parts.append(text(LEFT - 8, HEIGHT - BOTTOM + 18, "launchers", "end"))
    for kind in KINDS:
        points = [(scale.x(nodes), scale.y(row[kind][0])) for nodes, row in rows.items() if kind in row]
        if points:
            name = kind.replace(" ", "_")
            parts += curve(points, name)
            below = kind in ("limit", "lrun static", "torchrun static")
            parts.append(text(points[-1][0] + 14, points[-1][1] + (14 if below else -4), kind, f"strong {name}"))
    colors = {kind.replace(" ", "_"): color for kind, color in KINDS.items()}
    return svg(WIDTH, HEIGHT, "time to meet by number of launchers", colors, parts)


def main(arguments):
    found, load = read_tsv((HERE / "rendezvous.tsv").read_text())
    readme = HERE / "README.md"
    made = {HERE / "rendezvous.svg": svg_of(found),
            readme: with_table(readme.read_text(), BEGIN, END, tables_of(found, load))}
    write_or_check(made, "--check" in arguments, "rendezvous")


if __name__ == "__main__":
    main(sys.argv[1:])
