#!/usr/bin/env python3
"""plot_runtime.py [--check]: the figures of bench/runtime.tsv as the tables of bench/README.md and as the pictures
bench/allreduce.svg and bench/step.svg. --check writes nothing and fails when they are not those of runtime.tsv."""
import sys

import runtime_goals
import runtime_pictures
from figures import FILE, Table, read_tsv
from plot import HERE, markdown, with_table, write_or_check

NETS = {"linear 256": "12 × Linear(1024), batch 256", "linear 64": "12 × Linear(1024), batch 64",
        "cnn 64": "CNN, batch 64"}


def size_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def milliseconds(value):
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def microseconds(value):
    return f"{value:.1f} µs" if value < 10 else f"{value:.0f} µs" if value < 1000 else milliseconds(value / 1e3)


def how_it_was_measured(table):
    rounds = {row.rounds for row in table.rows if row.figure != "run"}
    said = [f"medians of {' or '.join(map(str, sorted(rounds)))} rounds in turn",
            f"load average {table.of('run', 'load', 'before', '-'):.1f} at the start"]
    if table.of("run", "real-time", "priority", "-"):
        said.append("real-time priority")
    return "Measured: " + ", ".join(said) + ".\n"


def first_step(table):
    head = ["from the command to", "lrun, C++", "lrun, Python", "torchrun, Python", "C++ sooner", "Python sooner"]
    rows = []
    for case, name in (("all_reduce", "the first all-reduce of 2 ranks"), ("step", "the first step of 2 ranks")):
        ours, python, torchrun = (table.of("first_step", case, series) for series in head[1:4])
        rows.append([name, *map(milliseconds, (ours, python, torchrun)), f"{torchrun / ours:.0f} ×",
                     milliseconds(torchrun - python)])
    return markdown(head, rows)


def all_reduce(table):
    head = ["ranks", "bytes", "limit", "shm, bucket", "of limit", "limit with copies", "shm, own tensor", "of limit",
            "gloo", "torch's gloo", "torch's gloo / bucket", "/ own"]
    rows = []
    for case in table.cases("allreduce"):
        def of(series):
            return table.of("allreduce", case, series, "us")
        ranks, size = case.split(" x ")
        bucket, own, torch = of("shm, bucket"), of("shm, own tensor"), of("torch's gloo")
        rows.append([ranks, size_of(int(size)), microseconds(of("limit")), microseconds(bucket),
                     f"{of('limit') / bucket:.2f}", microseconds(of("limit with copies")), microseconds(own),
                     f"{of('limit with copies') / own:.2f}", microseconds(of("gloo")), microseconds(torch),
                     f"{torch / bucket:.1f}", f"{torch / own:.1f}"])
    return markdown(head, rows)


def efficiency(table):
    head = ["net", "no wrapper", "averaged", "efficiency", "goal", "compared every step", "torch: no wrapper", "averaged",
            "efficiency"]
    rows = []
    for case, goal in runtime_goals.EFFICIENCY.items():
        cells = []
        for who in ("ddp", "torch"):
            times = [milliseconds(table.of("step", case, f"{who}, {kind}")) for kind in ("plain", "synced")]
            cells += [*times, f"{runtime_goals.efficiency(table, case, who):.1f} %"]
        watched = f"{runtime_goals.efficiency(table, case, kind='watched'):.1f} %"
        rows.append([NETS[case], *cells[:3], f"{goal} %", watched, *cells[3:]])
    return markdown(head, rows)


def strategies(table):
    head = ["net", "ddp", "dp", "ddp2, 1 node × 2", "ddp2, 2 nodes × 1 (gloo between)", "torch's DDP (gloo)"]
    rows = []
    for case in table.cases("step"):
        ddp = table.of("step", case, "ddp, trained")
        others = [table.of("step", case, f"{who}, trained") for who in ("dp", "ddp2, 1 x 2", "ddp2, 2 x 1", "torch")]
        rows.append([NETS[case], milliseconds(ddp), *(f"{milliseconds(time)}, {time / ddp:.2f}" for time in others)])
    return markdown(head, rows)


def sharded(table):
    head = ["ranks", "state a rank: ddp", "ddp_sharded", "torch's ZeRO", "optimizer's step: ddp", "ddp_sharded", "ratio",
            "torch's ZeRO"]
    rows = []
    for ranks in table.cases("sharded"):
        series = ("lrun, ddp", "lrun, ddp_sharded", "torch, ddp_sharded")
        state = [f"{table.of('sharded', ranks, name, 'MiB'):.1f} MiB" for name in series]
        whole, ours, torch = (table.of("sharded", ranks, name) for name in series)
        rows.append([ranks, *state, milliseconds(whole), milliseconds(ours), f"{ours / whole:.2f}", milliseconds(torch)])
    return markdown(head, rows)


TABLES = {"how": how_it_was_measured, "goals": runtime_goals.table_of, "first_step": first_step,
          "allreduce": all_reduce, "efficiency": efficiency, "strategies": strategies, "sharded": sharded}


def main(arguments):
    table = Table(read_tsv(FILE.read_text()))
    readme = HERE / "README.md"
    content = readme.read_text()
    for name, make in TABLES.items():
        content = with_table(content, f"<!-- {name}: made by plot_runtime.py -->", f"<!-- end of {name} -->", make(table))
    made = {HERE / "allreduce.svg": runtime_pictures.all_reduce(table), HERE / "step.svg": runtime_pictures.step(table),
            readme: content}
    write_or_check(made, "--check" in arguments, "runtime")


if __name__ == "__main__":
    main(sys.argv[1:])
