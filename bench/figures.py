"""The figures of bench/runtime.tsv: one row a series, the median of the rounds with their extremes beside it."""
import dataclasses
import pathlib

FILE = pathlib.Path(__file__).resolve().parent / "runtime.tsv"


@dataclasses.dataclass(frozen=True)
class Row:
    figure: str
    case: str
    series: str
    unit: str
    median: float
    least: float
    most: float
    rounds: int


def rounded(value):
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def tsv_of(rows):
    names = [field.name for field in dataclasses.fields(Row)]
    lines = ["\t".join(names)]
    for row in rows:
        values = [getattr(row, name) for name in names]
        lines.append("\t".join(rounded(value) if isinstance(value, float) else str(value) for value in values))
    return "\n".join(lines) + "\n"


def read_tsv(text):
    lines = [line.split("\t") for line in text.splitlines()[1:]]
    return [Row(*line[:4], *map(float, line[4:7]), int(line[7])) for line in lines]


def replace(rows):
    """Those of the figures that were measured anew; the others stay."""
    measured = {row.figure for row in rows}
    old = read_tsv(FILE.read_text()) if FILE.exists() else []
    FILE.write_text(tsv_of([row for row in old if row.figure not in measured] + rows))


class Table:
    """Medians by figure, case, series and unit."""

    def __init__(self, rows):
        self.medians = {(row.figure, row.case, row.series, row.unit): row.median for row in rows}
        self.rows = rows

    def of(self, figure, case, series, unit="ms"):
        return self.medians[figure, case, series, unit]

    def cases(self, figure):
        return list(dict.fromkeys(row.case for row in self.rows if row.figure == figure))
