"""`make bench`: measures the product against anchors on the same machine, in one run.

Prints ratios, because a loaded machine slows both sides alike; wall clock alone says little.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
PACELINE = Path(sys.executable).with_name("paceline")


def main() -> None:
    bare = fastest([sys.executable, "-c", ""])
    rows = {
        "bare interpreter": bare,
        "paceline --help": fastest([str(PACELINE), "--help"]),
        "paceline get --help": fastest([str(PACELINE), "get", "--help"]),
    }
    if kubectl := shutil.which("kubectl"):
        rows["kubectl --help"] = fastest([kubectl, "--help"])
    print(f"cold start, fastest of {ROUNDS}")
    for name, seconds in rows.items():
        print(f"  {name:24} {seconds * 1000:7.1f} ms  {seconds / bare:5.2f}x bare")


def fastest(command: list[str]) -> float:
    return min(once(command) for _ in range(ROUNDS))


def once(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
