#!/usr/bin/env python3
"""plot_clusters.py [--check]: the figures of bench/clusters.tsv as the table of bench/README.md. --check writes nothing
and fails when the table is not that of clusters.tsv."""
import sys

from plot import HERE, markdown, with_table, write_or_check

BEGIN, END = "<!-- clusters: made by plot_clusters.py -->", "<!-- end of clusters -->"
PLAIN = {"slurm": "srun", "ssh": "ssh"}
WORDS = {("slurm", "srun"): "`srun ./worker`, 12 tasks", ("slurm", "srun lrun"): "`srun lrun ./worker`, one a node",
         ("slurm", "lrun"): "`lrun ./worker` in a batch script", ("ssh", "ssh"): "3 ssh at once, 4 workers each",
         ("ssh", "lrun -H"): "`lrun -H h1:4,h2:4,h3:4 ./worker`"}
GOAL = 1.3


def read_tsv(content):
    """{(figure, kind): (median, least, whole)} and the load."""
    found, load = {}, ""
    for row in content.splitlines()[1:]:
        figure, kind, *values, _ = row.split("\t")
        if figure == "load":
            load = kind
        else:
            found[figure, kind] = tuple(float(value) for value in values)
    return found, load


def table_of(found, load):
    rows = []
    for (figure, kind), (median, least, whole) in found.items():
        plain_median, plain_least, plain_whole = found[figure, PLAIN[figure]]
        is_plain = kind == PLAIN[figure]
        times = median / plain_median
        rows.append([WORDS[figure, kind], f"{median:.0f} ms ({least:.0f})",
                     "–" if is_plain else f"{times:.2f} × ({least / plain_least:.2f})",
                     "–" if is_plain else f"≤ {GOAL} ×, " + ("met" if times <= GOAL else "**not met**"),
                     f"{whole:.0f} ms" + ("" if is_plain else f", {whole / plain_whole:.2f} ×")])
    return (f"Load average {load} at the start; median (least).\n\n"
            + markdown(["12 workers on 3 hosts", "the last one runs after", "of the plain start", "goal", "all is over"],
                       rows))


def main(arguments):
    found, load = read_tsv((HERE / "clusters.tsv").read_text())
    readme = HERE / "README.md"
    made = {readme: with_table(readme.read_text(), BEGIN, END, table_of(found, load))}
    write_or_check(made, "--check" in arguments, "clusters")


if __name__ == "__main__":
    main(sys.argv[1:])
