#!/usr/bin/env python3
"""Reads a file of lrun/checkpoint.h in Python: a header of 64 bytes, then what the program saved.

usage: read_checkpoint.py FILE [CONTENT]    prints the header, and writes the content to the file CONTENT

What torch::save() wrote in C++ is read with torch.jit.load(io.BytesIO(content)): its parameters and buffers are
those of the module that it gives.
"""
import struct
import sys

# Little-endian: mark, version, kind, step, number of the save, part, parts, size and CRC-32C of the content; 8 zeros;
# CRC-32C of the 60 bytes before.
HEADER = struct.Struct("<8sIIQQIIQI8xI")
KINDS = {1: "whole", 2: "part", 3: "manifest"}  # a manifest has size (u64) and CRC-32C (u32) of each part


def crc32c(data):
    """The checksum of iSCSI; packages such as google-crc32c compute it much faster."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def read_checkpoint(path):
    """The header as a dict, and the content. ValueError: it is damaged, or something else. The CRC-32C of the content
    is left to the caller, header["checksum"]."""
    with open(path, "rb") as file:
        data = file.read(HEADER.size)
        content = file.read()
    if data[:8] != b"lrunckpt" or len(data) < HEADER.size:
        raise ValueError(f"{path}: it is not a checkpoint of liblrun")
    _, version, kind, step, save, part, parts, size, checksum, of_header = HEADER.unpack(data)
    if crc32c(data[:60]) != of_header:
        raise ValueError(f"{path}: its header is damaged")
    if version != 1:
        raise ValueError(f"{path}: its format is {version}, not 1")
    if len(content) != size:
        raise ValueError(f"{path}: it has {len(content)} of {size} bytes")
    return {"kind": KINDS[kind], "step": step, "save": save, "part": part, "parts": parts, "checksum": checksum}, content


if __name__ == "__main__":
    header, content = read_checkpoint(sys.argv[1])
    print(f"{header['kind']}, step {header['step']}, part {header['part']} of {header['parts']}, {len(content)} bytes")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "wb") as file:
            file.write(content)
