"""Trains the network of tied_weights_test.cc with Python's torch, in one process, and prints its parameters.

One line a parameter: its name, then its elements as hexadecimal doubles. tied_weights.expected is what torch 2.11.0
printed.
"""

import torch
from torch import nn

WORDS, FEATURES, STEPS, BATCH = 7, 4, 5, 12


class Tied(nn.Module):
    """The embedding's weight is the head's, too, and one layer is registered under two names."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, FEATURES)
        self.first = nn.Linear(FEATURES, FEATURES)
        self.again = self.first
        self.head = self.words.weight
        self.bias = nn.Parameter(torch.zeros(WORDS))

    def forward(self, words):
        hidden = torch.tanh(self.again(torch.tanh(self.first(self.words(words)))))
        return nn.functional.linear(hidden, self.head, self.bias)


def wave(frequency, shape):
    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * frequency).reshape(shape)


def main():
    torch.set_num_threads(1)
    net = Tied().double()
    names = dict(words=net.words.weight, weight=net.first.weight, layer_bias=net.first.bias, bias=net.bias)
    with torch.no_grad():
        for index, parameter in enumerate(names.values()):
            parameter.copy_(wave(0.3 + 0.1 * index, parameter.shape) * 0.5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-2)
    for step in range(STEPS):
        optimizer.zero_grad()
        words = torch.arange(BATCH) * (step + 2) % WORDS
        nn.functional.cross_entropy(net(words), (words + 1) % WORDS).backward()
        optimizer.step()
    for name, parameter in names.items():
        print(name, *(value.hex() for value in parameter.detach().flatten().tolist()))


main()
