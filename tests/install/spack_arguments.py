#!/usr/bin/env python3
"""The arguments that a recipe of Spack gives to cmake, one a line, where Spack itself is not: spack_arguments.py PACKAGE_PY"""
import runpy
import sys
import types


def value_of(value):
    return ("BOOL", "ON" if value else "OFF") if isinstance(value, bool) else ("STRING", value)


class CMakePackage:
    @staticmethod
    def define(name, value):
        kind, word = value_of(value)
        return f"-D{name}:{kind}={word}"


def directive(*_, **__):
    """What stands in the body of a package, or above a function of it."""
    return lambda function: function


NAMES = ("license", "version", "depends_on", "requires", "run_after", "on_package_attributes")
spack = types.ModuleType("spack.package")
spack.__dict__.update({name: directive for name in NAMES}, Executable=None)
cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
cmake.__dict__.update(CMakePackage=CMakePackage, generator=directive)
sys.modules |= {"spack": types.ModuleType("spack"), "spack.package": spack, cmake.__name__: cmake}
for end in (1, 2, 3):
    name = ".".join(cmake.__name__.split(".")[:end])
    sys.modules[name] = types.ModuleType(name)
print(*runpy.run_path(sys.argv[1])["Lrun"]().cmake_args(), sep="\n")
