#!/usr/bin/env python3
"""make.py PROGRAM VERSION PLATFORM FOLDER: writes the wheel of one native lrun, lrun-VERSION-py3-none-PLATFORM.whl, into FOLDER.

In it are the program, its manual page, completions, and the package of `python -m lrun`. Equal files give equal bytes.
"""

import base64
import hashlib
import os
import sys
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

METADATA = """\
Metadata-Version: 2.1
Name: lrun
Version: {version}
Summary: A native launcher for distributed training that says what went wrong
License: Apache-2.0
Requires-Python: >=3.7
Classifier: Environment :: Console
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

# Files of the source tree, and where an installation has them below its prefix.
SHARED = {
    "man/lrun.1": "share/man/man1/lrun.1",
    "completions/lrun.bash": "share/bash-completion/completions/lrun",
    "completions/_lrun": "share/zsh/site-functions/_lrun",
    "completions/lrun.fish": "share/fish/vendor_completions.d/lrun.fish",
}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def contents(program, version, platform):
    """Path in the wheel to bytes."""
    data, info = f"lrun-{version}.data", f"lrun-{version}.dist-info"
    readme = read(os.path.join(SOURCE, "README.md")).decode()
    files = {f"{data}/scripts/lrun": read(program)}
    for name in ("__init__.py", "__main__.py"):
        files[f"lrun/{name}"] = read(os.path.join(SOURCE, "packaging/wheel/lrun", name))
    for source, place in SHARED.items():
        files[f"{data}/data/{place}"] = read(os.path.join(SOURCE, source))
    files[f"{info}/LICENSE"] = read(os.path.join(SOURCE, "LICENSE"))
    files[f"{info}/METADATA"] = METADATA.format(version=version, readme=readme).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(platform=platform).encode()
    record = "".join(f"{path},sha256={digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    return files


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            # With the bits of a regular file: pip takes the execute bits away from anything else.
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__.splitlines()[0])
    program, version, platform, folder = sys.argv[1:]
    path = os.path.join(folder, f"lrun-{version}-py3-none-{platform}.whl")
    write(path, contents(program, version, platform))
    print(path)


if __name__ == "__main__":
    main()
