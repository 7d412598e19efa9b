#!/usr/bin/env python3
"""gpu_step.py [--try] [DEVICE [BACKEND]]: what bench_runtime_gpu_step measures, with torch's own Python over NCCL.

It takes the same orders, with the kinds bare, ddp (DistributedDataParallel as it is by default), ddp_view (the same
with gradient_as_bucket_view=True) and no_sync. Models and batches are those of gpu_models.h, layer by layer. The first
line it writes is one of JSON: the device and the versions of what runs there."""
import contextlib
import json
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

WARM_UP_STEPS = 10


class WideNet(nn.Module):
    def __init__(self, small):
        super().__init__()
        self.width, self.samples = (64, 8) if small else (4096, 1024)
        self.layers = nn.ModuleList(nn.Linear(self.width, self.width) for _ in range(4))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = torch.relu(layer(hidden))
        return hidden

    def batch_shape(self):
        return self.samples, self.width


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = convolution(outputs, outputs, 3, 1)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = self.shortcut_norm = None
        if stride != 1 or inputs != outputs:
            self.shortcut = convolution(inputs, outputs, 1, stride)
            self.shortcut_norm = nn.BatchNorm2d(outputs)

    def forward(self, images):
        output = self.second_norm(self.second(self.first_norm(self.first(images)).relu_()))
        output += self.shortcut_norm(self.shortcut(images)) if self.shortcut else images
        return output.relu_()


class ResidualNet(nn.Module):
    def __init__(self, small):
        super().__init__()
        self.samples, self.side = (2, 32) if small else (64, 224)
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.stem_norm = nn.BatchNorm2d(64)
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.blocks = nn.ModuleList(ResidualBlock(inputs, outputs, 1 if inputs == outputs else 2)
                                    for inputs, outputs in zip(widths, widths[1:]))
        self.last = nn.Linear(512, 1000)

    def forward(self, images):
        hidden = functional.max_pool2d(self.stem_norm(self.stem(images)).relu_(), 3, 2, 1)
        for block in self.blocks:
            hidden = block(hidden)
        return self.last(functional.adaptive_avg_pool2d(hidden, (1, 1)).flatten(1))

    def batch_shape(self):
        return self.samples, 3, self.side, self.side


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.queries = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.wide_norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, tokens):
        hidden = tokens + self.attended(self.attention(self.queries(self.attention_norm(tokens))))
        return hidden + self.narrow(functional.gelu(self.wide(self.wide_norm(hidden))))

    def attention(self, projected):
        parts = projected.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)


class EncoderNet(nn.Module):
    def __init__(self, small):
        super().__init__()
        self.samples, self.length, self.width = (2, 16, 64) if small else (32, 256, 512)
        self.layers = nn.ModuleList(EncoderLayer(self.width, self.width // 64) for _ in range(4))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden

    def batch_shape(self):
        return self.samples, self.length, self.width


NETS = {"mlp": WideNet, "resnet18": ResidualNet, "encoder": EncoderNet}


class Trained:
    """One module that is trained, with or without a wrapper."""

    def __init__(self, net, kind, device):
        self.net = net
        if kind != "bare":
            self.net = DistributedDataParallel(net, device_ids=[device] if device.type == "cuda" else None,
                                               gradient_as_bucket_view=kind == "ddp_view")
        self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-4, momentum=0.9)

    def step(self, kind, batch, device):
        self.optimizer.zero_grad()
        with self.net.no_sync() if kind == "no_sync" else contextlib.nullcontext():
            self.net(batch.to(device, non_blocking=True)).square().mean().backward()
        self.optimizer.step()


class Bench:
    """The models of one name and dtype at a time."""

    def __init__(self, device, small):
        self.device = device
        self.small = small
        self.loaded = None
        self.trained = {}
        self.batches = {}

    def finish(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def make(self, model, dtype):
        return NETS[model](self.small).to(self.device, dtype)

    def load(self, model, dtype):
        if self.loaded == (model, dtype):
            return
        self.trained.clear()
        self.loaded = model, dtype
        batch = torch.randn(NETS[model](self.small).batch_shape()).to(dtype)
        self.batches = {"device": batch.to(self.device),
                        "pinned": batch.pin_memory() if self.device.type == "cuda" else batch}

    def run(self, kind, trained, place, steps):
        for _ in range(steps):
            trained.step(kind, self.batches[place], self.device)
        self.finish()

    def obey(self, model, dtype, kind, place, steps):
        dtype = getattr(torch, dtype)
        self.load(model, dtype)
        shared = "ddp" if kind == "no_sync" else kind
        if shared not in self.trained:
            self.trained[shared] = Trained(self.make(model, dtype), shared, self.device)
            self.run(kind, self.trained[shared], place, WARM_UP_STEPS)
        begin = time.perf_counter()
        self.run(kind, self.trained[shared], place, int(steps))
        return kind, 1e3 * (time.perf_counter() - begin) / int(steps)


def about(device):
    is_gpu = device.type == "cuda"
    return {"device": torch.cuda.get_device_name(device) if is_gpu else "cpu", "torch": torch.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version() if is_gpu else None,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())) if is_gpu else None}


def main():
    words = [word for word in sys.argv[1:] if word != "--try"]
    device = torch.device(words[0] if words else "cuda:0")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(words[1] if len(words) > 1 else "nccl", store=dist.HashStore(), rank=0, world_size=1)
    bench = Bench(device, "--try" in sys.argv)
    print(json.dumps(about(device)), flush=True)
    for order in sys.stdin:
        print(*bench.obey(*order.split()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
