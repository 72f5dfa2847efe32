"""Every `trireme` command line in the documents is one that the program understands: command, options, and the kind of
their values; and every option that a sentence names exists. Nothing is run: each line gets an option at its end that
does not exist, which must be the first mistake that the program finds. Usage: command_lines.py SOURCES TRIREME"""
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SOURCES, TRIREME = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ABSENT = "--no-such-option"
STARTS = {"trireme", "mpirun", "srun", "salloc", "docker", "apptainer"}
COMMANDS = "bench train eval sweep tune compare report models data/make data/convert data/inspect data/verify export net " \
           "doctor launch help completion"
# Options of other programs and of the project's scripts and tests.
OTHERS = set("--bind-to --check --cpus --cpuset-cpus --folder --gpus --gres --host --init --ipc --ntasks "
             "--nv --overlap --peers --shm-size --unbuffered".split())


def trireme(*words, folder=None):
    return subprocess.run([TRIREME, *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          check=False)


def code_lines(text):
    fenced, joined = False, ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            joined += line.strip()
            if not joined.endswith("\\"):
                yield joined
                joined = ""
            joined = joined.removesuffix("\\")


def spans(text):
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]


# The words after `trireme`, with what shell variables of the documents stand for.
def words_of(line):
    line = re.sub(r"\$\(\([^)]*\)\)", "1", line.removeprefix("$ "))
    for variable, value in {"$P ": "trireme ", "$launch ": "trireme launch "}.items():
        line = line.replace(variable, value)
    line = re.sub(r"\$(train|sync|async)\b", "train", line)
    if "..." in line or line.split(" ")[0] not in STARTS or line.startswith("docker build"):
        return []
    words = shlex.split(re.sub(r"\s[>|].*", "", line), comments=True)
    program = max((at for at, word in enumerate(words) if word == "trireme"), default=len(words))
    return words[program + 1:]


def problem_of(words, folder):
    end = words.index("--") if "--" in words else len(words)
    parts = [words[:end], [] if "--program" in words else words[end + 1:]]
    for part in filter(None, parts):
        error = trireme(*part, ABSENT, folder=folder).stderr
        if ABSENT not in error:
            return error.strip() or "this ran"
    return ""


def main():
    pages = [SOURCES / "README.md", *sorted((SOURCES / "docs").rglob("*.md"))]
    known = OTHERS.union(*(trireme("complete", "--", *command.split("/"), "--").stdout.split()
                           for command in COMMANDS.split()))
    lines, problems = {}, []
    for page in pages:
        text, name = page.read_text(), page.relative_to(SOURCES)
        for line in [*code_lines(text), *(span for span in spans(text) if span.startswith("trireme "))]:
            lines.setdefault(tuple(words_of(line)), f"{name}: {line}")
        for option in {each.replace("_", "-") for span in spans(text) for each in re.findall(r"(?<![\w-])--[a-z][\w-]+", span)} - known:
            problems.append(f"{name}: there is no option {option}")
    lines.pop((), None)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        (pathlib.Path(folder) / "tuned.json").write_text("{}")
        found = pool.map(lambda words: problem_of(list(words), folder), lines)
        problems += [f"{line}\n  {problem}" for line, problem in zip(lines.values(), found) if problem]
    print("\n".join([*problems, f"{len(lines)} command lines"]))
    return 1 if problems or len(lines) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
