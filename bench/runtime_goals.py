"""What the figures of bench/runtime.tsv are to be."""
from plot import markdown

EFFICIENCY = {"linear 256": 96, "linear 64": 94, "cnn 64": 98}  # percent, by net
LARGE = [size << 20 for size in (16, 64, 256)]


def of_limit(table, ranks, sizes, series, limit):
    """The worst of all sizes."""
    return min(table.of("allreduce", f"{ranks} x {size}", limit, "us") /
               table.of("allreduce", f"{ranks} x {size}", series, "us") for size in sizes)


def efficiency(table, net, who="ddp", kind="synced"):
    """Percent: the step without a wrapper beside that which averages gradients."""
    return 100 * table.of("step", net, f"{who}, plain") / table.of("step", net, f"{who}, {kind}")


def goals(table):
    """(what, figure, goal, whether more is better, how a figure is written)"""
    at_64_mib = {series: table.of("allreduce", f"2 x {64 << 20}", series, "us")
                 for series in ("shm, bucket", "shm, own tensor", "torch's gloo")}
    torchrun = table.of("first_step", "step", "torchrun, Python")
    yield "all-reduce, 2 ranks, 4 KiB", table.of("allreduce", "2 x 4096", "shm, bucket", "us"), 3, False, "{:.1f} µs"
    for ranks in (2, 4):
        yield (f"all-reduce in buckets, {ranks} ranks, 16 MiB and more, speed beside the limit",
               of_limit(table, ranks, LARGE, "shm, bucket", "limit"), 0.8, True, "{:.2f}")
    yield ("all-reduce, 2 ranks, 64 MiB in a bucket, beside torch's gloo",
           at_64_mib["torch's gloo"] / at_64_mib["shm, bucket"], 10, True, "{:.1f} ×")
    yield ("all-reduce, 2 ranks, 64 MiB of an own tensor, beside torch's gloo",
           at_64_mib["torch's gloo"] / at_64_mib["shm, own tensor"], 2.5, True, "{:.1f} ×")
    for net, goal in EFFICIENCY.items():
        yield f"DDP step, efficiency, {net}", efficiency(table, net), goal, True, "{:.1f} %"
    for net in EFFICIENCY:
        yield (f"dp beside ddp, {net}, time", table.of("step", net, "dp, trained") /
               table.of("step", net, "ddp, trained"), 1.05, False, "{:.2f}")
    for ranks in (2, 4):
        yield (f"ddp_sharded, optimizer's state of a rank, {ranks} ranks, beside ddp",
               table.of("sharded", str(ranks), "lrun, ddp_sharded", "MiB") /
               table.of("sharded", str(ranks), "lrun, ddp", "MiB"), 1 / ranks, False, "{:.3f}")
    yield ("first all-reduce of 2 C++ ranks, beside torchrun's first step",
           torchrun / table.of("first_step", "all_reduce", "lrun, C++"), 10, True, "{:.1f} ×")
    yield ("first step of the same Python script, sooner than under torchrun",
           torchrun - table.of("first_step", "step", "lrun, Python"), 1300, True, "{:.0f} ms")


def table_of(table):
    rows = []
    for what, figure, goal, more_is_better, form in goals(table):
        written = float(form.format(figure).split()[0])  # what the reader compares
        met = written >= goal if more_is_better else written <= goal
        rows.append([what, form.format(figure), ("≥ " if more_is_better else "≤ ") + form.format(goal),
                     "met" if met else "**not met**"])
    return markdown(["figure", "measured", "goal", ""], rows)
