"""The examples under lrun: the same programs on the GPU, where there is one, and on the CPU."""
import re
import tempfile
from pathlib import Path

import kit
from kit import case, expect

DATA = kit.ROOT / "data"


def launch(*words, seconds=120):
    """Runs a command line of lrun that has to succeed: its output without the ranks' prefixes."""
    done = kit.run([kit.LRUN, *words], seconds)
    text = done.stdout + done.stderr
    expect(done.returncode == 0, f"{' '.join(map(str, words))}: exit code {done.returncode}\n{text}")
    return text


def expect_line(text):
    """The straight line that two examples train."""
    found = re.search(r"y = (\S+) x \+ ([0-9.]+)", text)
    expect(found, text)
    expect(abs(float(found.group(1)) - 3) < 0.05 and abs(float(found.group(2)) - 1) < 0.05, text)


@case
def ddp_minimal_trains_on_the_device_that_lrun_found():
    expect_line(launch("--devices", "auto", "--strategy", "ddp", kit.ROOT / "bin/ddp_minimal"))


@case
def launch_minimal_spawns_its_rank_on_the_device():
    expect_line(launch("--devices", "auto", "--strategy", "ddp_spawn", kit.ROOT / "bin/launch_minimal"))


@case
def training_loop_goes_on_from_its_checkpoint_with_the_same_random_numbers():
    with tempfile.TemporaryDirectory() as folder:
        def train(name, epochs, *device):
            text = launch(*device, "--output", "raw", kit.ROOT / "bin/training_loop", Path(folder) / name, epochs)
            return [float(error) for error in re.findall(r"^epoch \d+: error ([0-9.]+)$", text, re.MULTILINE)]

        on_device = ("--devices", "auto", "--strategy", "ddp")
        whole = train("whole", 4, *on_device)
        resumed = train("parts", 2, *on_device) + train("parts", 4, *on_device)
        expect(len(whole) == 4 and resumed == whole, f"the errors are {resumed}, and without a restart {whole}")
        # The checkpoint of the GPU is read where there is none.
        on_cpu = train("parts", 6, "--accelerator", "cpu", "--devices", "1")
        expect(len(on_cpu) == 2 and on_cpu[-1] < 0.05, f"on the CPU the errors are {on_cpu}")


@case
def fashion_mnist_goes_on_from_its_checkpoint():
    if not DATA.is_dir():
        raise kit.Skipped("the kit was made without the package dataset-fashion-mnist")
    limit = [] if kit.gpu_count() else ["--limit", "1000"]
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "model.pt"
        words = ["--devices", "auto", "--strategy", "ddp", kit.ROOT / "bin/fashion_mnist", "--data", DATA, *limit,
                 "--checkpoint", checkpoint]
        launch(*words, "--epochs", "2")
        text = launch(*words, "--epochs", "4", "--resume")
        expect("resumed after epoch 2" in text, text)
        # The checkpoint of the GPU is read where there is none.
        on_cpu = launch("--accelerator", "cpu", "--devices", "1", *words[2:], "--epochs", "4", "--resume")
    accuracy = float(re.search(r"final test accuracy: ([0-9.]+) %", text).group(1))
    speed = max(int(row) for row in re.findall(r"% +(\d+)$", text, re.MULTILINE))
    expect(not kit.gpu_count() or accuracy > 87, text)
    again = float(re.search(r"final test accuracy: ([0-9.]+) %", on_cpu).group(1))
    expect(abs(again - accuracy) < 0.1, f"{accuracy} % became {again} % on the CPU")
    return {"test_accuracy": accuracy, "images_per_second": speed}


if __name__ == "__main__":
    kit.main("examples")
