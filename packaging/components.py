"""What is compiled into the launcher that `./dev release` makes: names, versions, licences. NOTICE and the SPDX list are made of it."""

import json
import os
import subprocess
import uuid

FOLDER = os.path.dirname(os.path.abspath(__file__))

# name, Debian's package or 'zig', SPDX licence, copyright
COMPONENTS = [
    ("Boost", "libboost1.81-dev", "BSL-1.0", "Christopher M. Kohlhoff, Klemens D. Morgenstern, Vinnie Falco and the Boost contributors"),
    ("CLI11", "libcli11-dev", "BSD-3-Clause", "2017-2020 University of Cincinnati, developed by Henry Schreiner under NSF AWARD 1414736"),
    ("fmt", "libfmt-dev", "MIT", "2012-2020 Victor Zverovich, 2018-2020 Remotion (Igor Schulz), 2019 Paul Dreik"),
    ("nlohmann-json", "nlohmann-json3-dev", "MIT", "2013-2022 Niels Lohmann, 2009 Florian Loitsch, 2008-2009 Bjoern Hoehrmann"),
    ("spdlog", "libspdlog-dev", "MIT", "2014-2016 Gabi Melman"),
    ("toml++", "libtomlplusplus-dev", "MIT", "2020-2022 Mark Gillard, 2008-2009 Bjoern Hoehrmann"),
    ("LLVM libc++, libc++abi, libunwind and compiler-rt (in zig)", "zig", "Apache-2.0 WITH LLVM-exception", "the LLVM project"),
]


def version_of(package):
    """The version of a Debian package on this machine, without Debian's additions."""
    query = ["dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", package]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split("+")[0]


def notice():
    """The copyrights, and the licences that ask to be handed on with a program. Those of Boost and LLVM do not."""
    lines = ["lrun is under the Apache License 2.0 (file LICENSE). Compiled into its program are:", ""]
    lines += [f"  {name}: {licence}, copyright {holders}" for name, _, licence, holders in COMPONENTS]
    for licence in ("MIT", "BSD-3-Clause"):
        with open(os.path.join(FOLDER, "licenses", f"{licence}.txt"), encoding="utf-8") as file:
            lines += ["", f"---- {licence} ----", "", file.read().rstrip()]
    return "\n".join(lines) + "\n"


def spdx(version, zig_version, created):
    """The list as SPDX 2.3. created: '2026-11-27T00:00:00Z'"""
    def package(identifier, name, package_version, licence, holders):
        return {"SPDXID": identifier, "name": name, "versionInfo": package_version, "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                "copyrightText": f"Copyright {holders}"}
    packages = [package("SPDXRef-lrun", "lrun", version, "Apache-2.0", "the lrun authors")]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-lrun")]
    for number, (name, source, licence, holders) in enumerate(COMPONENTS):
        identifier = f"SPDXRef-component-{number}"
        component_version = zig_version if source == "zig" else version_of(source)
        packages.append(package(identifier, name, component_version, licence, holders))
        relations.append(("SPDXRef-lrun", "CONTAINS", identifier))
    name = f"lrun-{version}"
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name + created)}",
                "creationInfo": {"created": created, "creators": ["Tool: lrun-packaging"]}, "packages": packages,
                "relationships": [{"spdxElementId": first, "relationshipType": relation, "relatedSpdxElement": second}
                                  for first, relation, second in relations]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
