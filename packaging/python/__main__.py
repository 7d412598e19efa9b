"""Replaces this process by the program lrun of the same installation."""

import os
import sys

REINSTALL = "pip install --force-reinstall lrun"


def program():
    """The nearest bin/lrun above this file: PREFIX/lib/python3.N/site-packages/lrun has PREFIX/bin, pip's --target its own bin."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for _ in range(4):
        folder = os.path.dirname(folder)
        path = os.path.join(folder, "bin", "lrun")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def main():
    path = program()
    if path:
        os.environ["LRUN_MODULE_PYTHON"] = sys.executable  # workers run in the Python that was typed
        try:
            os.execv(path, [path, *sys.argv[1:]])
        except FileNotFoundError:  # it is there: what is missing is the loader that it names
            return refuse(f"'{path}' needs glibc, and this system has none", "use a system with glibc 2.28 or newer (not Alpine)")
        except OSError as error:
            return refuse(f"'{path}' cannot be started: {error.strerror}", REINSTALL)
    return refuse("this installation has no program 'lrun'", REINSTALL)


def refuse(text, hint):
    sys.stderr.write(f"lrun: error: {text}\nlrun: hint: {hint}\n")
    return 127


if __name__ == "__main__":
    sys.exit(main())
