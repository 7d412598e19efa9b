#!/usr/bin/env python3
"""gpu_table.py [--check]: the steps of bench/gpu.tsv, which the kit's part 'step' writes, as the table of
bench/README.md and docs/gpus.md.

--check writes nothing and fails when a table is not that of gpu.tsv."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS = [HERE / "README.md", HERE.parent / "docs/gpus.md"]
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
    table = markdown_of(read_tsv((HERE / "gpu.tsv").read_text(encoding="utf-8")))
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        made = re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL)
        if "--check" not in sys.argv:
            document.write_text(made, encoding="utf-8")
        elif made != text:
            sys.exit(f"{document} is not what gpu_table.py makes of gpu.tsv: run bench/gpu_table.py")


if __name__ == "__main__":
    main()
