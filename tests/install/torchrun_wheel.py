#!/usr/bin/env python3
"""torchrun_wheel.py FOLDER SITE: writes a wheel whose command torchrun is that of the torch in SITE, and prints its path."""

import os
import sys
import zipfile

folder, site = sys.argv[1:]
INFO = "torchrun-1.dist-info"
FILES = {
    "torchrun.py": f"def main():\n    import site, sys\n    site.addsitedir({site!r})\n"
                   "    from torch.distributed.run import main as run\n    sys.exit(run())\n\n\n"
                   "if __name__ == '__main__':\n    main()\n",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: torchrun\nVersion: 1\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: lrun\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": "[console_scripts]\ntorchrun = torchrun:main\n",
}
path = os.path.join(folder, "torchrun-1-py3-none-any.whl")
with zipfile.ZipFile(path, "w") as wheel:
    for name, content in FILES.items():
        wheel.writestr(name, content)
    wheel.writestr(f"{INFO}/RECORD", "".join(f"{name},,\n" for name in (*FILES, f"{INFO}/RECORD")))
print(path)
