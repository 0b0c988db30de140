#!/usr/bin/env python3
"""Refuses #includes against the order of the house (docs/contributors/architecture.md).

messages <- native, frontend <- actors <- cli. Prints each offence as FILE:LINE and exits 1 if there is one."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folders = ("messages", "native", "frontend", "actors", "cli")
allowed = {
    "messages": {"messages"},
    "native": {"messages", "native"},
    "frontend": {"messages", "frontend"},
    "actors": {"messages", "frontend", "actors"},  # and the door of native, see below
    "cli": set(folders),
}
doors_of_native = {"native/program.hpp"}
caf_may_be_included_in = ("actors",)
include = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def offences(folder):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in (".hpp", ".cpp", ".h", ".cu", ".cuh", ".inc"):
            continue
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = include.match(line)
            if not match:
                continue
            target = match.group(1)
            top = target.split("/")[0]
            if top in ("tests", "examples", "bench"):
                yield f"{name}:{number}: product code includes {target}"
            if top in folders and top not in allowed[folder]:
                if not (folder == "actors" and target in doors_of_native):
                    yield f"{name}:{number}: {folder} may not include {target}"
            if top == "caf" and (folder not in caf_may_be_included_in or name.startswith("actors/cores/")):
                yield f"{name}:{number}: CAF is known to actors' shells alone"


found = [offence for folder in folders for offence in offences(folder)]
print("\n".join(found) if found else "include directions hold")
sys.exit(1 if found else 0)
