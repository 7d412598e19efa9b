"""The pictures of plot_runtime.py: allreduce.svg and step.svg."""
import math

from plot import BLUE, GREY, ORANGE, PURPLE, TEAL, bar, curve, line, svg, text
from runtime_goals import EFFICIENCY, efficiency

SERIES = {"limit": "limit, in place", "shm, bucket": "shm, bucket", "limit with copies": "limit with copies",
          "shm, own tensor": "shm, own tensor", "gloo": "gloo", "torch's gloo": "torch's gloo"}
CLASSES = {"limit": "floor", "shm, bucket": "lrun", "limit with copies": "copies", "shm, own tensor": "own",
           "gloo": "gloo", "torch's gloo": "torch"}
COLORS = {"floor": GREY, "copies": GREY, "lrun": BLUE, "own": TEAL, "gloo": PURPLE, "torch": ORANGE}
FASTEST, SLOWEST = 0.5, 5e5  # microseconds, the ends of the scale


def short(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def panel(table, ranks, left, width, top, height):
    sizes = [int(case.split(" x ")[1]) for case in table.cases("allreduce") if case.startswith(f"{ranks} x ")]

    def x(size):
        return left + width * (math.log2(size) - 12) / 16

    def y(time):
        return top + height * math.log(SLOWEST / time) / math.log(SLOWEST / FASTEST)

    parts = [text(left, top - 8, f"{ranks} ranks", "strong")]
    for exponent, name in enumerate(("1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms")):
        parts.append(line(left, y(10 ** exponent), left + width, y(10 ** exponent), "grid"))
        parts.append(text(left - 8, y(10 ** exponent) + 4, name, "soft end"))
    parts += [text(x(size), top + height + 16 + 14 * (index % 2), short(size), "soft middle")
              for index, size in enumerate(sizes)]
    for series in reversed(SERIES):
        points = [(x(size), y(table.of("allreduce", f"{ranks} x {size}", series, "us"))) for size in sizes]
        parts += curve(points, CLASSES[series])
    return parts


def all_reduce(table):
    parts = [text(56, 24, "All-reduce of float32 on one host: time until the slowest rank has the sum", "title")]
    for index, (series, name) in enumerate(SERIES.items()):
        x, y = 56 + 220 * (index // 2), 46 + 18 * (index % 2)
        parts += [f'<circle class="{CLASSES[series]}" cx="{x + 4}" cy="{y - 4}" r="4"/>', text(x + 14, y, name)]
    parts += panel(table, 2, 56, 280, 104, 260) + panel(table, 4, 410, 280, 104, 260)
    dashes = "polyline.copies { stroke-dasharray: 4 4 } circle.copies { fill-opacity: 0.5 }"
    return svg(720, 408, "all-reduce times by size", COLORS, [f"<style>{dashes}</style>", *parts])


NAMES = {"linear 256": "12 × Linear(1024), batch 256", "linear 64": "12 × Linear(1024), batch 64",
         "cnn 64": "CNN, batch 64"}


GROUP, HIGH = 96, 300  # pixels from one net to the next, and of all


def efficiency_bars(table, left, width, top):
    lowest = 50

    def x(percent):
        return left + width * (min(percent, 100) - lowest) / (100 - lowest)

    parts = [text(left, top, "DDP step: without a wrapper / with gradients averaged", "strong")]
    parts += [part for tick in range(lowest, 101, 10)
              for part in (line(x(tick), top + 10, x(tick), top + HIGH, "grid"),
                           text(x(tick), top + HIGH + 16, f"{tick} %", "soft middle"))]
    for index, (net, goal) in enumerate(EFFICIENCY.items()):
        y = top + 34 + GROUP * index
        parts.append(text(left, y - 8, NAMES[net], "soft"))
        for who, name in (("ddp", "lrun"), ("torch", "torch")):
            percent = efficiency(table, net, who)
            parts.append(bar(left, y, x(percent) - left, 26, name))
            parts.append(text(x(100) + 8, y + 17, f"{percent:.1f} %", name))
            y += 30
        parts.append(line(x(goal), y - 62, x(goal), y - 2, "goal"))
    return parts


def strategy_bars(table, left, width, top):
    series = {"ddp": "lrun", "dp": "own", "ddp2, 1 x 2": "gloo", "ddp2, 2 x 1": "gloo", "torch": "torch"}
    longest = 1.5

    def x(ratio):
        return left + width * min(ratio, longest) / longest

    parts = [text(left, top, "Whole step, in times of ddp's", "strong")]
    parts += [part for tick in (0, 0.5, 1, 1.5) for part in (line(x(tick), top + 10, x(tick), top + HIGH, "grid"),
                                                            text(x(tick), top + HIGH + 16, f"{tick:g} ×", "soft middle"))]
    for index, net in enumerate(EFFICIENCY):
        y = top + 34 + GROUP * index
        parts.append(text(left, y - 8, NAMES[net], "soft"))
        ddp = table.of("step", net, "ddp, trained")
        for who, name in series.items():
            ratio = table.of("step", net, f"{who}, trained") / ddp
            parts.append(bar(left, y, x(ratio) - left, 11, name))
            parts.append(text(x(longest) + 8, y + 10, f"{who.replace(' x ', ' × ')}: {ratio:.2f}", name))
            y += 14
    return parts


def step(table):
    parts = [text(24, 26, "A training step on two devices, beside torch's own DDP over gloo", "title"),
             bar(24, 40, 10, 10, "lrun"), text(40, 50, "lrun"), bar(84, 40, 10, 10, "torch"), text(100, 50, "torch"),
             line(152, 40, 152, 51, "goal"), text(160, 50, "goal")]
    parts += efficiency_bars(table, 24, 250, 80) + strategy_bars(table, 380, 220, 80)
    return svg(720, 410, "efficiency of a DDP step, and a step under each strategy", COLORS, parts)
