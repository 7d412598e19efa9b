#!/usr/bin/env python3
"""store_table.py [--check] [FIGURES]: the store's figures of bench/store.tsv as the table of bench/README.md.

With FIGURES, which store.sh printed, store.tsv is written from them first: medians over its rounds. --check writes nothing
and fails when the table is not that of store.tsv."""
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- store: made by store_table.py -->", "<!-- end of store -->"
SERIES = {
    "limit": re.compile(r"^limit server "),
    "lrun": re.compile(r"^lrun store one "),
    "lrun_add": re.compile(r"^lrun store add "),
    "torch_add": re.compile(r"^torch store add "),
    "torch": re.compile(r"^clients TCPStore "),
}
FIGURES = {"connect": re.compile(r"connect\+barrier med=([\d.]+)"), "barrier": re.compile(r"  barrier med=([\d.]+)")}
CLIENTS = re.compile(r"W=(\d+)")
MEMORY = re.compile(r"^(lrun|torch) store memory keys=(\d+) .* bytes/key=(\d+)")


def read_figures(text):
    """{clients: {column: milliseconds}} and {server: bytes a key} of what store.sh printed."""
    found, memory = {}, {}
    for line in text.splitlines():
        if kept := MEMORY.match(line):
            memory[kept[1]] = int(kept[3])
        for series, begins in SERIES.items():
            if begins.match(line):
                row = found.setdefault(int(CLIENTS.search(line)[1]), {})
                for figure, value in FIGURES.items():
                    row.setdefault(f"{series}_{figure}", []).append(float(value.search(line)[1]))
    rows = {clients: {name: statistics.median(values) for name, values in row.items()} for clients, row in found.items()}
    return dict(sorted(rows.items())), memory


COLUMNS = [f"{series}_{figure}" for figure in FIGURES for series in SERIES]


def tsv_of(rows, memory):
    lines = ["\t".join(["clients", *COLUMNS])]
    for clients, row in rows.items():
        lines.append("\t".join([str(clients), *(f"{row[name]:g}" if name in row else "-" for name in COLUMNS)]))
    lines += [f"bytes_a_key\t{server}\t{value}" for server, value in sorted(memory.items())]
    return "\n".join(lines) + "\n"


def read_tsv(text):
    names, *lines = (line.split("\t") for line in text.splitlines())
    memory = {line[1]: int(line[2]) for line in lines if line[0] == "bytes_a_key"}
    rows = {int(line[0]): {name: float(value) for name, value in zip(names[1:], line[1:]) if value != "-"}
            for line in lines if line[0] != "bytes_a_key"}
    return rows, memory


def milliseconds(row, name):
    if name not in row:
        return "–"
    value = row[name]
    return f"{value:.2f} ms" if value < 10 else f"{value:.1f} ms"


def ratio(row, ours, theirs):
    return f"{row[ours] / row[theirs]:.1f}" if ours in row and theirs in row else "–"


def markdown_of(rows, memory):
    lines = ["| clients | limit | lrun | ratio | torch | times lrun's | lrun, torch's requests | torch's server | ratio |",
             "|---" * 9 + "|"]
    for clients, row in rows.items():
        cells = [str(clients), milliseconds(row, "limit_connect"), milliseconds(row, "lrun_connect"),
                 ratio(row, "lrun_connect", "limit_connect"), milliseconds(row, "torch_connect"),
                 ratio(row, "torch_connect", "lrun_connect"), milliseconds(row, "lrun_add_connect"),
                 milliseconds(row, "torch_add_connect"), ratio(row, "torch_add_connect", "lrun_add_connect")]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for clients, row in rows.items():
        lines.append(f"A barrier on open connections, {clients} at it: {milliseconds(row, 'lrun_barrier')}, limit "
                     f"{milliseconds(row, 'limit_barrier')}.")
    lines.append("Memory with 10^6 keys of 32 bytes and values of 16: " + ", ".join(
        f"{server} {value} bytes a key" for server, value in sorted(memory.items())) + ".")
    return "\n".join(lines) + "\n"


def replace_table(readme, table):
    begin, end = readme.index(BEGIN) + len(BEGIN) + 1, readme.index(END)
    return readme[:begin] + table + readme[end:]


def main(arguments):
    check = "--check" in arguments
    files = [argument for argument in arguments if argument != "--check"]
    if files:
        rows, memory = read_figures("".join(pathlib.Path(file).read_text() for file in files))
        if not rows:
            sys.exit("store_table.py: no figures in " + ", ".join(files))
        (HERE / "store.tsv").write_text(tsv_of(rows, memory))
    readme = (HERE / "README.md").read_text()
    wanted = replace_table(readme, markdown_of(*read_tsv((HERE / "store.tsv").read_text())))
    if not check:
        (HERE / "README.md").write_text(wanted)
    elif wanted != readme:
        sys.exit("bench/README.md does not say what bench/store.tsv says; run bench/store_table.py")


main(sys.argv[1:])
