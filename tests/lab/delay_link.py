#!/usr/bin/env python3
"""delay_link.py FILE PID-FILE A B: passes frames between two network interfaces, and holds each back for a while.

FILE has two numbers, a delay and the most that chance adds to it, both in milliseconds, and is read again at SIGHUP.
Frames keep their order. Many kernels lack netem, which would do it."""
import collections
import os
import random
import select
import signal
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, SO_RCVBUFFORCE = 263, 15, 33
MOST_BYTES = 1 << 17  # of a frame that the kernel has not cut into packets yet


def opened(interface):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(ETH_P_ALL))
    # With a header that tells what the kernel left to hardware: checksums, and cutting into packets.
    link.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    link.bind((interface, ETH_P_ALL))
    return link


class Direction:
    """Frames on their way from one interface to the other."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.frames = collections.deque()  # (time, bytes)

    def take(self, delay_s, jitter_s):
        try:
            frame, address = self.source.recvfrom(MOST_BYTES)
        except OSError:  # the interface is down
            return
        if address[2] == socket.PACKET_OUTGOING:
            return  # our own
        due = time.monotonic() + delay_s + jitter_s * random.random()
        self.frames.append((max(due, self.frames[-1][0] if self.frames else 0), frame))

    def give(self):
        while self.frames and self.frames[0][0] <= time.monotonic():
            try:
                self.sink.send(self.frames.popleft()[1])
            except OSError:  # it is lost, as on other networks
                pass


def main(file, pid_file, *interfaces):
    times = []

    def read_times(*_):
        with open(file) as text:
            times[:] = [float(word) / 1000 for word in text.read().split()]

    signal.signal(signal.SIGHUP, read_times)
    read_times()
    a, b = map(opened, interfaces)
    directions = [Direction(a, b), Direction(b, a)]
    with open(pid_file, "w") as text:
        text.write(os.readlink("/proc/self") + "\n")  # the machine's /proc, and the machine's number
    while True:
        due = [each.frames[0][0] for each in directions if each.frames]
        ready = select.select([a, b], [], [], max(0, min(due) - time.monotonic()) if due else None)[0]
        for each in directions:
            if each.source in ready:
                each.take(*times)
            each.give()


main(*sys.argv[1:])
