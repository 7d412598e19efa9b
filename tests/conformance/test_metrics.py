"""--metrics: what is offered passes the readers of OpenMetrics and of Prometheus's older text format."""
import re
import urllib.request

import pytest

from harness import better, until

parser = pytest.importorskip("prometheus_client.parser")
openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")

RANKS = {("0", "0"), ("1", "1")}
COUNTERS = {"lrun_run_restarts", "lrun_rank_cpu_seconds"}


def samples_of(families):
    """{name: [(labels, value)]} of all samples."""
    samples = {}
    for family in families:
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


@better
def test_metrics_at_a_port_pass_the_strict_reader(bench):
    job = bench.start("--nproc-per-node=2", "--metrics=0", code="say('ready\\n')\ntime.sleep(1000)\n")
    until(lambda: job.stdout.count("ready") == 2, lambda: job.stderr)
    (url,) = re.findall(r"http://\S+", job.stderr)
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0;")
        text = answer.read().decode()
    families = list(openmetrics.text_string_to_metric_families(text))
    assert {family.name for family in families if family.type == "counter"} == COUNTERS
    assert all(family.documentation for family in families)
    ranks = samples_of(families)["lrun_rank_running"]
    assert {(rank["rank"], rank["local_rank"]) for rank, running in ranks if running == 1} == RANKS


@better
def test_metrics_in_a_file_pass_both_readers(bench):
    file = bench.folder / "lrun.prom"
    job = bench.run("--nproc-per-node=2", f"--metrics={file}", code="say('done\\n')\n")
    assert job.code == 0, job.stderr
    text = file.read_text(encoding="utf-8")
    strict = samples_of(openmetrics.text_string_to_metric_families(text))
    assert strict == samples_of(parser.text_string_to_metric_families(text))
    assert strict["lrun_run_exit_code"]
