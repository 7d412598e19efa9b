"""Whole commands that a table compares. They stand on its command line as name=template: '{n}' is the number of workers,
'{c}' the worker."""
import argparse
import os
import shlex


def parser(description, workers, rounds):
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("-n", default=workers, help=f"numbers of workers, one after the other [{workers}]")
    found.add_argument("-k", type=int, default=rounds, help=f"rounds, in which the commands take turns [{rounds}]")
    found.add_argument("commands", nargs="+", metavar="name=template")
    return found


def numbers(text):
    return [int(word) for word in text.split(",")]


def templates(arguments):
    """{name: template} in the given order."""
    return dict(command.split("=", 1) for command in arguments.commands)


def words(template, workers, worker):
    return shlex.split(template.replace("{n}", str(workers)).replace("{c}", worker))


def say_load():
    print(f"load average {os.getloadavg()[0]:.2f}", flush=True)
