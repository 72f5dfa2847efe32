"""Which folder may include which: the layers of docs/design.md. An edge that is not listed is an error, and so is one
that is listed and not used. Usage: layers.py SOURCES"""
import pathlib
import re
import sys

# Each line: a folder, and those below it that it uses. No folder may use one that stands after it.
LAYERS = """
base
graph: base
perf: base
plan: base graph perf
data: base perf
comm: base perf
optim: base graph
models: base graph
config: base optim
record: base perf
backend: base graph optim perf plan
runtime: base graph perf plan
onnx: base graph runtime
parallel: base comm optim perf plan runtime
ps: base comm graph optim parallel perf plan
cluster: base comm config perf
train: backend base cluster comm config data graph models onnx optim parallel perf plan ps record runtime
report: base config perf plan record
lab: backend base cluster comm config models perf plan record report runtime train
cli: backend base cluster comm config data lab models optim perf plan ps record report train
"""
ALLOWED = {folder: set(below.split()) for folder, _, below in (line.partition(":") for line in LAYERS.split("\n") if line)}
ORDER = list(ALLOWED)


def used_by(sources):
    edges = {}
    for path in sorted([*sources.glob("trireme/*/**/*"), *sources.glob("cli/*")]):
        if path.suffix not in (".hpp", ".cpp", ".cu"):
            continue
        parts = path.relative_to(sources).parts
        folder = parts[0] if parts[0] == "cli" else parts[1]
        for include in re.findall(r'^#include "(trireme/[^"]+|cli/[^"]+)"', path.read_text(), re.M):
            other = "cli" if include.startswith("cli/") else include.split("/")[1]
            if other != folder and "." not in other:  # trireme/command_line.hpp is the commands' own
                edges.setdefault((folder, other), f"{path.relative_to(sources)} includes {include}")
    return edges


def main():
    edges = used_by(pathlib.Path(sys.argv[1]))
    problems = [f"{where}: {folder} may not use {other}" for (folder, other), where in edges.items()
                if other not in ALLOWED.get(folder, ())]
    problems += [f"{folder} is said to use {other}, and does not" for folder in ORDER for other in sorted(ALLOWED[folder])
                 if (folder, other) not in edges]
    problems += [f"{folder} stands before {other}, which it uses" for folder in ORDER for other in ALLOWED[folder]
                 if ORDER.index(other) > ORDER.index(folder)]
    print("\n".join(problems) or f"{len(ORDER)} folders, {len(edges)} edges, all as they should be")
    return 1 if problems else 0


sys.exit(main())
