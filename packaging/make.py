#!/usr/bin/env python3
"""make.py KIND ARGUMENTS...: writes a package of one native lrun, or the list of what is in it, into FOLDER, and prints its path.

  wheel PROGRAM VERSION PLATFORM FOLDER     lrun-VERSION-py3-none-PLATFORM.whl, for pip
  runtime PREFIX VERSION PLATFORM FOLDER    lrun_runtime-VERSION-py3-none-PLATFORM.whl: the library of an installation
  archive PROGRAM VERSION PROCESSOR FOLDER  lrun-VERSION-linux-PROCESSOR.tar.gz, to unpack below any prefix
  deb PROGRAM VERSION PROCESSOR FOLDER      lrun_VERSION_ARCHITECTURE.deb, for Debian and Ubuntu
  deb-library PREFIX VERSION PROCESSOR FOLDER  liblrun-dev_VERSION_ARCHITECTURE.deb: the library of an installation
  spdx VERSION ZIG_VERSION PREFIX FOLDER    lrun-VERSION.spdx.json, what is compiled in, and its licences

Equal files give equal bytes; SOURCE_DATE_EPOCH is the time that they carry, in seconds, 1980 by default.
"""

import base64
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import components

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
SUMMARY = "native launcher for distributed training that says what went wrong"

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.7
{requires}Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: lrun
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""

CONTROL = """\
Package: {package}
Version: {version}
Architecture: {architecture}
Maintainer: lrun developers <developers@lrun.invalid>
Installed-Size: {kilobytes}
{relations}Priority: optional
Description: {description}
"""

RELATIONS = """\
Depends: libc6 (>= 2.28)
Suggests: python3
Section: science
"""

DESCRIPTION = f"""\
{SUMMARY}
 lrun starts one process a GPU on one machine or many, sets the variables that
 torchrun sets, supervises and restarts them, and explains why a run failed."""

LIBRARY_RELATIONS = """\
Depends: lrun (= {version}), libc6 (>= 2.35), libstdc++6 (>= 12)
Section: libdevel
"""

LIBRARY_DESCRIPTION = """\
data-parallel training with LibTorch {torch} in C++
 liblrun makes a LibTorch program one rank of a run: its group, its share of
 the data, and equal gradients. LibTorch {torch} comes with PyTorch's wheels;
 LRUN_LIBTORCH names its folder where CMake does not find it."""

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# Files of the source tree, and where an installation has them below its prefix.
SHARED = {
    "man/lrun.1": "share/man/man1/lrun.1",
    "docs/for_programs.md": "share/doc/lrun/for_programs.md",
    "completions/lrun.bash": "share/bash-completion/completions/lrun",
    "completions/_lrun": "share/zsh/site-functions/_lrun",
    "completions/lrun.fish": "share/fish/vendor_completions.d/lrun.fish",
}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def of_source(path):
    return read(os.path.join(SOURCE, path))


def installed(program):
    """Path below the prefix to bytes; what is in bin can be executed."""
    return {"bin/lrun": read(program)} | {place: of_source(source) for source, place in SHARED.items()}


def is_executable(path):
    return os.path.basename(os.path.dirname(path)) in ("bin", "scripts")


def write_wheel(name, summary, requires, version, platform, files, folder):
    """`files`: path in the wheel to bytes."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {one}\n" for one in requires)
    metadata = METADATA.format(name=name, version=version, summary=summary, requires=requires, readme=of_source("README.md").decode())
    files |= {f"{info}/LICENSE": of_source("LICENSE"), f"{info}/NOTICE": of_source("NOTICE"),
              f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": WHEEL.format(platform=platform).encode()}
    record = "".join(f"{path},sha256={digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = os.path.join(folder, f"{name.replace('-', '_')}-{version}-py3-none-{platform}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive_file:
        for place, content in files.items():
            entry = zipfile.ZipInfo(place, max(time.gmtime(TIME)[:6], (1980, 1, 1, 0, 0, 0)))
            # With the bits of a regular file: pip takes the execute bits away from anything else.
            entry.external_attr = (0o100755 if is_executable(place) else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive_file.writestr(entry, content)
    return path


def wheel(program, version, platform, folder):
    data, files = f"lrun-{version}.data", {}
    for place, content in installed(program).items():
        kind, _, rest = place.partition("/")
        files[f"{data}/scripts/{rest}" if kind == "bin" else f"{data}/data/{place}"] = content
    for name in ("__init__.py", "__main__.py"):
        files[f"lrun/{name}"] = of_source(f"packaging/python/{name}")
    return write_wheel("lrun", f"A {SUMMARY}", [], version, platform, files, folder)


def library_of(prefix):
    """The files of the library alone, path below the prefix to bytes, and the version of its LibTorch."""
    files, torch = {}, None
    for folder_of, _, names in sorted(os.walk(prefix)):
        for name in sorted(names):
            path = os.path.join(folder_of, name)
            place = os.path.relpath(path, prefix)
            is_library = name.startswith(("liblrun.so.", "liblrun_cuda.so"))  # a wheel has no links, such as liblrun.so
            if is_library or place.startswith(("include/lrun/", "lib/cmake/lrun/")):
                files[place] = read(path)
            if name == "lrunConfig.cmake":
                torch = re.search(r'LRUN_LIBTORCH_VERSION "([0-9.]+)"', read(path).decode())[1]
    if torch is None:
        sys.exit(f"make.py: no library of lrun is installed in '{prefix}'")
    return files, torch


def runtime(prefix, version, platform, folder):
    """The program comes with the wheel lrun, of the same environment."""
    files, torch = library_of(prefix)
    files = {f"lrun_runtime-{version}.data/data/{place}": content for place, content in files.items()}
    requires = [f"lrun=={version}", f"torch=={torch}"]
    return write_wheel("lrun-runtime", f"liblrun: data-parallel training with LibTorch {torch} in C++", requires, version,
                       platform, files, folder)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def archive(program, version, processor, folder):
    name = f"lrun-{version}-linux-{processor}"
    files = installed(program) | {f"share/doc/lrun/{file}": of_source(file) for file in ("LICENSE", "NOTICE", "README.md")}
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as members:
        for place, content in sorted(files.items()):
            member = tarfile.TarInfo(f"{name}/{place}")
            member.size, member.mtime, member.mode = len(content), TIME, 0o755 if is_executable(place) else 0o644
            members.addfile(member, io.BytesIO(content))
    path = os.path.join(folder, f"{name}.tar.gz")
    with open(path, "wb") as file:
        file.write(gzip.compress(tar.getvalue(), mtime=TIME))
    return path


def copyright_file():
    """Debian's form of NOTICE, which Debian's common licences make shorter."""
    head = ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: lrun\n\n"
            "Files: *\nCopyright: 2026 the lrun authors\nLicense: Apache-2.0\n"
            " On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n"
            "Comment: libraries are compiled in, with these notices.\n")
    return head + "".join(f" {line}\n" if line else " .\n" for line in of_source("NOTICE").decode().splitlines())


def write(path, content, mode):
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)


def write_deb(package, description, relations, version, processor, files, folder, links=None, control_files=None):
    """`files`: path below / to bytes. `links`: path to what it leads to. `control_files`: name to text."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(TIME))
    changelog = (f"{package} ({version}) unstable; urgency=medium\n\n  * Version {version}.\n\n"
                 f" -- lrun developers <developers@lrun.invalid>  {date}\n")
    files |= {f"usr/share/doc/{package}/copyright": copyright_file().encode(),
              f"usr/share/doc/{package}/changelog.gz": gzip.compress(changelog.encode(), mtime=0)}
    architecture = ARCHITECTURES[processor]
    path = os.path.join(folder, f"{package}_{version}_{architecture}.deb")
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        for place, content in files.items():
            write(os.path.join(root, place), content, 0o755 if is_executable(place) else 0o644)
        for place, target in (links or {}).items():
            os.symlink(target, os.path.join(root, place))
        kilobytes = sum(-(-len(content) // 1024) for content in files.values())
        control = CONTROL.format(package=package, version=version, architecture=architecture, kilobytes=kilobytes,
                                 relations=relations, description=description)
        sums = "".join(f"{hashlib.md5(content).hexdigest()}  {place}\n" for place, content in sorted(files.items()))
        for name, text in {"control": control, "md5sums": sums, **(control_files or {})}.items():
            write(os.path.join(root, "DEBIAN", name), text.encode(), 0o644)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path], check=True,
                       stdout=subprocess.DEVNULL, env=os.environ | {"SOURCE_DATE_EPOCH": str(TIME)})
    return path


def deb(program, version, processor, folder):
    """The manual compressed, and zsh's completion where Debian's zsh looks."""
    files = {}
    for place, content in installed(program).items():
        place = place.replace("zsh/site-functions", "zsh/vendor-completions")
        if place.startswith("share/man/"):
            place, content = f"{place}.gz", gzip.compress(content, mtime=0)
        files[f"usr/{place}"] = content
    return write_deb("lrun", DESCRIPTION, RELATIONS, version, processor, files, folder)


def deb_library(prefix, version, processor, folder):
    files, torch = library_of(prefix)
    [library] = [os.path.basename(place) for place in files if place.startswith("lib/liblrun.so.")]
    control_files = {"triggers": "activate-noawait ldconfig\n",
                     "shlibs": f"liblrun {library[len('liblrun.so.'):]} liblrun-dev (= {version})\n"}
    return write_deb("liblrun-dev", LIBRARY_DESCRIPTION.format(torch=torch), LIBRARY_RELATIONS.format(version=version), version,
                     processor, {f"usr/{place}": content for place, content in files.items()}, folder,
                     {"usr/lib/liblrun.so": library}, control_files)


def spdx(version, zig_version, prefix, folder):
    _, torch = library_of(prefix)
    path = os.path.join(folder, f"lrun-{version}.spdx.json")
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(TIME))
    write(os.path.abspath(path), components.spdx(version, zig_version, torch, created).encode(), 0o644)
    return path


def main():
    kinds = {"wheel": (wheel, 4), "runtime": (runtime, 4), "archive": (archive, 4), "deb": (deb, 4), "deb-library": (deb_library, 4),
             "spdx": (spdx, 4)}
    kind, arguments = sys.argv[1:2], sys.argv[2:]
    if not kind or kind[0] not in kinds or len(arguments) != kinds[kind[0]][1]:
        sys.exit(__doc__)
    print(kinds[kind[0]][0](*arguments))


if __name__ == "__main__":
    main()
