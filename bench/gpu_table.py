#!/usr/bin/env python3
"""gpu_table.py [--check]: the steps of bench/gpu.tsv, which the kit's part 'step' writes, as the table of bench/README.md.

--check writes nothing and fails when the table is not that of gpu.tsv."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- gpu: made by gpu_table.py -->", "<!-- end of gpu -->"
COLUMNS = {
    "lrun, ddp": "lrun",
    "lrun, synced": "averaging over NCCL",
    "lrun, summed": "summing over NCCL",
    "torch, bare": "Python's loop",
    "torch, ddp": "Python's DDP",
}
BARE = "lrun, bare"


def read_tsv(text):
    """{(model, dtype): {kind: (milliseconds, ratio to the bare loop)}} of one card."""
    names, *lines = (line.split("\t") for line in text.splitlines())
    rows = {}
    for line in lines:
        row = dict(zip(names, line))
        rows.setdefault((row["model"], row["dtype"]), {})[row["kind"]] = float(row["ms"]), row["to_bare"]
    return rows


def markdown_of(rows):
    lines = ["| network | bare loop in C++ | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for (model, dtype), kinds in sorted(rows.items()):
        cells = [f"{float(kinds[kind][1]):.2f}" for kind in COLUMNS]
        lines.append(f"| {model}, {dtype} | {kinds[BARE][0]:.2f} ms | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    table = markdown_of(read_tsv((HERE / "gpu.tsv").read_text(encoding="utf-8")))
    made = re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL)
    if "--check" in sys.argv:
        sys.exit(0 if made == text else "bench/README.md is not what gpu_table.py makes of gpu.tsv: run bench/gpu_table.py")
    readme.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
