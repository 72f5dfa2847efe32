"""The programs in the README and in docs/your-own-network.md compile. Usage: programs.py SOURCES COMPILER"""
import pathlib
import re
import subprocess
import sys

SOURCES, COMPILER = pathlib.Path(sys.argv[1]), sys.argv[2]


def blocks(page):
    return re.findall(r"^```cpp\n(.*?)^```", (SOURCES / page).read_text(), flags=re.S | re.M)


def programs():
    yield from (block for block in blocks("README.md") if "int main" in block)
    network, *more = blocks("docs/your-own-network.md")
    yield from (network + block for block in more if "int main" in block)


def main():
    count = 0
    for program in programs():
        command = [COMPILER, "-std=c++20", "-fsyntax-only", "-I", SOURCES, "-x", "c++", "-"]
        if subprocess.run(command, input=program, text=True, check=False).returncode != 0:
            return print(program) or 1
        count += 1
    print(f"{count} programs")
    return 0 if count >= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
