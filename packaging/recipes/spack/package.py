# A package for Spack 1.0 or newer. In a clone, with this folder as packages/lrun of a repository of yours:
#   spack dev-build lrun@0.2.0
# A published one adds homepage, url, and the sha256 of lrun-VERSION.tar.gz, which ./dev release makes, to its version.
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Lrun(CMakePackage):
    """Native launcher for distributed training that says what went wrong: it starts one process a device on one machine or
    many, sets the variables that torchrun sets, supervises and restarts them."""

    license("Apache-2.0", checked_by="the lrun authors")

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")

    # From 1.86 on a part of Boost.Process is a compiled library.
    depends_on("boost@1.81:1.85", type="build")
    depends_on("cli11@2:", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("spdlog@1.10:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("tomlplusplus@3:", type="build")

    requires("platform=linux", msg="lrun runs on Linux only")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("LRUN_BUILD_RUNTIME", False),
            self.define("LRUN_BUILD_TESTS", False),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_run(self):
        """Two workers start, and end well."""
        lrun = Executable(self.prefix.bin.lrun)
        lrun("--devices", "2", "true")
