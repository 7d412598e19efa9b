"""What is compiled into the program and the library that `./dev release` makes: names, versions, licences. The SPDX list is made
of it, and NOTICE: packaging/components.py > NOTICE"""

import json
import os
import re
import subprocess
import uuid

FOLDER = os.path.dirname(os.path.abspath(__file__))

# name, Debian's package or 'zig' or 'LibTorch', SPDX licence, copyright
BOOST = ("Boost", "libboost1.81-dev", "BSL-1.0", "Christopher M. Kohlhoff, Klemens D. Morgenstern, Vinnie Falco and the Boost contributors")
FMT = ("fmt", "libfmt-dev", "MIT", "2012-2020 Victor Zverovich, 2018-2020 Remotion (Igor Schulz), 2019 Paul Dreik")
JSON = ("nlohmann-json", "nlohmann-json3-dev", "MIT", "2013-2022 Niels Lohmann, 2009 Florian Loitsch, 2008-2009 Bjoern Hoehrmann")
PROGRAM = [
    BOOST,
    ("CLI11", "libcli11-dev", "BSD-3-Clause", "2017-2020 University of Cincinnati, developed by Henry Schreiner under NSF AWARD 1414736"),
    FMT,
    JSON,
    ("spdlog", "libspdlog-dev", "MIT", "2014-2016 Gabi Melman"),
    ("toml++", "libtomlplusplus-dev", "MIT", "2020-2022 Mark Gillard, 2008-2009 Bjoern Hoehrmann"),
    ("LLVM libc++, libc++abi, libunwind and compiler-rt (in zig)", "zig", "Apache-2.0 WITH LLVM-exception", "the LLVM project"),
]
# It links LibTorch. Units that see LibTorch have the fmt that comes with it, the others Debian's.
LIBRARY = [
    BOOST,
    FMT,
    ("fmt (in LibTorch)", "LibTorch", "MIT", "2012-present Victor Zverovich and the fmt contributors"),
    JSON,
    ("LibTorch (its headers)", "LibTorch", "BSD-3-Clause", "Facebook, Inc and others, in the licence of PyTorch below"),
]


def version_of(package):
    """The version of a Debian package on this machine, without Debian's additions."""
    query = ["dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", package]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split("+")[0]


def notice():
    """The copyrights, and the licences that ask to be handed on with a program or library. Those of Boost and LLVM do not."""
    lines = ["lrun is under the Apache License 2.0 (file LICENSE)."]
    for product, components in (("program lrun", PROGRAM), ("library liblrun", LIBRARY)):
        lines += ["", f"Compiled into the {product} are:", ""]
        lines += [f"  {name}: {licence}, copyright {holders}" for name, _, licence, holders in components]
    for licence in ("MIT", "BSD-3-Clause", "PyTorch"):
        with open(os.path.join(FOLDER, "licenses", f"{licence}.txt"), encoding="utf-8") as file:
            lines += ["", f"---- {licence} ----", "", file.read().rstrip()]
    return "\n".join(lines) + "\n"


def spdx(version, zig_version, libtorch_version, created):
    """The list as SPDX 2.3. created: '2026-11-27T00:00:00Z'"""
    versions = {"zig": zig_version, "LibTorch": libtorch_version}
    packages, relations = {}, []

    def add(identifier, name, package_version, licence, holders):
        packages[identifier] = {"SPDXID": identifier, "name": name, "versionInfo": package_version, "downloadLocation": "NOASSERTION",
                                "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                                "copyrightText": f"Copyright {holders}"}
    for product, components in (("lrun", PROGRAM), ("liblrun", LIBRARY)):
        add(f"SPDXRef-{product}", product, version, "Apache-2.0", "the lrun authors")
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", f"SPDXRef-{product}"))
        for name, source, licence, holders in components:
            identifier = "SPDXRef-" + re.sub("[^A-Za-z0-9]+", "-", name).strip("-")
            add(identifier, name, versions.get(source) or version_of(source), licence, holders)
            relations.append((f"SPDXRef-{product}", "CONTAINS", identifier))
    name = f"lrun-{version}"
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name + created)}",
                "creationInfo": {"created": created, "creators": ["Tool: lrun-packaging"]}, "packages": list(packages.values()),
                "relationships": [{"spdxElementId": first, "relationshipType": relation, "relatedSpdxElement": second}
                                  for first, relation, second in relations]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(notice(), end="")
