#!/usr/bin/env python3
"""Prints figures of the library, or of the given folders: how long files are, and which headers have only one includer.

  tests/house/figures.py [--list] [FOLDER...]
"""
import argparse
import collections
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ["core", "kernels", "autograd", "layers", "optim", "data", "dist", "apps"]
SOURCES = {".h", ".cpp", ".cu"}
SHORT = 25  # lines


def sources(folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES:
                yield path.relative_to(ROOT).as_posix()


def includers():
    """The files of the library that include each header."""
    found = collections.defaultdict(set)
    for file in sources(LIBRARY):
        for header in re.findall(r'#include [<"]tern/([^">]+)[">]', (ROOT / file).read_text()):
            # Users write tern/trainer/... and tern/networks/... for headers in apps.
            for place in (header, "apps/" + header):
                if (ROOT / place).is_file():
                    found[place].add(file)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the short files and the headers with one includer")
    parser.add_argument("folders", nargs="*", default=LIBRARY)
    options = parser.parse_args()

    lines = {file: (ROOT / file).read_text().count("\n") for file in sources(options.folders)}
    ordered = sorted(lines.values())
    short = [file for file, count in lines.items() if count <= SHORT]
    who = includers()
    single = []
    for file in lines:
        others = {other for other in who[file] if other.rsplit(".", 1)[0] != file.rsplit(".", 1)[0]}
        if file.endswith(".h") and len(others) == 1:
            single.append((file, others.pop()))

    print(f"files                        {len(lines)}")
    print(f"lines                        {sum(ordered)}")
    print(f"files of {SHORT} lines or fewer   {len(short)} ({100 * len(short) / len(lines):.0f} %; at most 12 %)")
    print(f"median lines                 {statistics.median(ordered):g} (70 to 120)")
    print(f"90th percentile              {ordered[int(len(ordered) * 0.9)]} (250 to 450)")
    print(f"headers with one includer    {len(single)} (at most 40)")
    if options.list:
        for file in short:
            print(f"short: {file} ({lines[file]})")
        for file, other in single:
            print(f"one includer: {file}, by {other}")


if __name__ == "__main__":
    main()
