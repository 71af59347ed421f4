"""What is promised, row by row, and the tests that show it, for docs/internals/features.md.

`python -m tests.docs.promises` writes the page.

In     the list of promises below, and the names and docstrings of all tests.
Out    which tests show which promise, and the page.
Never  decides that a promise is kept: a test does.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "internals" / "features.md"

# T: as T9k's tutorials have it. H: the Helm chart. S: the training service. D: pages beside them. X: what others have.
PROMISES = {
    "T-01": "The tutorial's TensorFlow job runs as written, under its old kind too; its model is on the volume.",
    "T-02": "A job's TensorBoard is read while it trains and after.",
    "T-03": "torchrun trains in one pod of four processes and in two of two; `args` stay, `command` goes.",
    "T-06": "`/dev/shm` is as large as asked for; who dies of signal 7 is told what to set.",
    "T-09": "Every try of every replica has its phase and its log, also when it is gone.",
    "T-10": "What is shown as used is what the kernel says.",
    "T-11": "A failed job names replica, exit code and last lines.",
    "T-13": "What a finished job held is free at once.",
    "T-16": "A TensorBoard stands alone, sleeps when nobody looks, and wakes when somebody does.",
    "T-18": "Pause, resume, debug and another size, while the job lives.",
    "T-19": "Every kind of job runs.",
    "T-20": "Old spellings and shapes are understood, and their author is told.",
    "H-01": "One command and a values file run a whole training.",
    "H-02": "Who takes too much memory is ended and named; the neighbour runs on.",
    "H-03": "Who finds no room waits with the reason, and starts when there is some.",
    "H-04": "No two replicas share a GPU; it comes back at the end.",
    "H-05": "Pending, Running, Succeeded or Failed, in this order; a deleted job leaves no process.",
    "H-06": "Fifty workers and four servers are tracked one by one.",
    "H-07": "Nobody writes a cluster spec.",
    "H-08": "A parameter server that dies is noticed, tried again and told.",
    "H-09": "Curves lie on the shared volume while the training runs.",
    "H-10": "Two numbers are enough for a whole training.",
    "H-11": "One template trains with GPUs and without.",
    "H-12": "Every replica is told of exactly all replicas, and which one it is.",
    "H-13": "TensorBoard is there without being asked for.",
    "H-14": "One changed value is the next revision; TensorBoard shows both.",
    "H-16": "A share becomes a volume, and is Available.",
    "H-17": "The claim is made, and bound, by the release.",
    "H-18": "What one replica writes on the volume, the others read.",
    "H-20": "Data that lay there before are read.",
    "H-21": "The same job keeps its results in a folder or in a bucket.",
    "H-22": "Labels choose the volume; where none fits, claim and job say so.",
    "H-23": "Files stay when the claim goes, and the volume is Released.",
    "H-24": "Several replicas write to one volume.",
    "H-25": "A claim that is too large waits, and says so.",
    "H-26": "A wrong or missing option of a volume is named.",
    "H-29": "Templates are listed.",
    "H-30": "A template explains every value and its default.",
    "H-31": "What is changed holds, the rest is as the template has it.",
    "H-32": "A GPU that is not there is said, and what to set.",
    "H-33": "No workers is refused; no servers is fine.",
    "H-34": "Half a GPU is refused.",
    "H-35": "Each role has its own image.",
    "H-36": "Each role has its own pull policy: `Always` looks for newer packages; a wrong word is refused.",
    "H-37": "Each role has its own port, and jobs do not clash.",
    "H-38": "`epochs` reaches the trainer.",
    "H-39": "`batchsize` reaches the trainer.",
    "H-40": "`learningrate` reaches the trainer, to the digit.",
    "H-41": "TensorBoard's image can be chosen, and is shown.",
    "H-42": "From where TensorBoard is reached follows `serviceType`.",
    "H-43": "Both spellings of the mount path work; two different ones are refused.",
    "H-44": "The claim has the size that was asked for.",
    "H-45": "The claim has the labels that were asked for.",
    "H-46": "Without GPUs no replica is told of one.",
    "H-47": "An image of one's own runs; with one that does not exist, the job says so and no replica is running.",
    "H-48": "What is left out has its default.",
    "H-49": "Malformed values are refused with their line, and nothing starts.",
    "H-50": "A trainer is shipped, and chosen by its name.",
    "H-51": "A release has the name it was given, once.",
    "H-52": "A dry run prints plan and values, and makes nothing.",
    "H-53": "A misspelled template is answered with the right one.",
    "H-54": "One command shows all parts of a release with their state.",
    "H-55": "Releases are listed with revision, time, status, chart and namespace.",
    "H-56": "The head of the status is true.",
    "H-57": "The cluster spec is an object with one entry, which is what replicas were told.",
    "H-58": "Names of replicas hold before their start and after a restart.",
    "H-59": "TensorBoard has an address that opens.",
    "H-60": "TensorBoard comes back when it is killed, and outlives the training.",
    "H-61": "Every replica has a row with desired and successful.",
    "H-62": "A replica that came back has another name, and the log of the one before is there.",
    "H-63": "The curve grows while the training runs.",
    "H-65": "The last lines are exactly so many.",
    "H-66": "Step, epoch, batch, cost and time are in the log.",
    "H-68": "Workers decide; servers are stopped when they are done.",
    "H-69": "Who follows an ended replica gets its log, and an end.",
    "H-70": "What the trainer counted last is kept and shown.",
    "H-71": "TensorBoard opens at `/` after the training.",
    "H-72": "Nothing of an uninstalled release is left, but files.",
    "H-73": "Two releases run side by side.",
    "S-01": "Code of a repository runs, and its results are kept.",
    "S-02": "One command starts servers and workers.",
    "S-03": "Limits on CPU, memory and processes reach the kernel.",
    "S-04": "A log is read while its job runs, when it is stopped, and after a restart.",
    "S-06": "Results are copied to storage.",
    "S-07": "A first run begins at step 0.",
    "S-08": "A next run goes on from a checkpoint.",
    "S-09": "The same application is changed and run again; no change is refused.",
    "S-10": "A job lands on the cluster that was chosen; an unknown one is answered with those there are.",
    "S-11": "A bucket or folder becomes a volume by name, once.",
    "S-12": "The commit that ran is on record.",
    "S-13": "Data lie at `/input` with their own paths.",
    "S-14": "What is written to `/output` arrives byte for byte.",
    "S-15": "`requirements.txt` is installed first; where that fails, the installer's words are shown.",
    "S-16": "A card opens the form of a training.",
    "S-17": "A name has 1 to 64 letters, digits and hyphens.",
    "S-18": "TensorFlow, Keras, PyTorch and Python can be chosen.",
    "S-19": "An image of one's own needs a valid address.",
    "S-20": "One replica alone knows of no others.",
    "S-21": "Servers and workers are as many as asked for.",
    "S-22": "GPUs per worker; 0 means none.",
    "S-23": "Data come from a volume by its name.",
    "S-24": "Data come from a folder, by its whole path.",
    "S-25": "Without a place for results the job says that nothing is kept.",
    "S-26": "Code that cannot be had fails the job with git's words, and nothing runs.",
    "S-27": "ssh is refused when it is written.",
    "S-28": "A private repository opens, and its password is nowhere.",
    "S-29": "A command is what a shell reads, in the folder of the code.",
    "S-30": "`python3` is called by its name in every framework.",
    "S-31": "TensorBoard is there if, and only if, it is told where curves are.",
    "S-32": "The folder of curves is checked.",
    "S-33": "The first worker alone keeps checkpoints.",
    "S-34": "What is created is listed at once.",
    "S-35": "The page of an application has services, containers, logs and routes.",
    "S-36": "Each worker has a TensorBoard of its own curves.",
    "S-37": "Its curves are read over HTTP.",
    "S-38": "Output and errors are in the log, each in its order.",
    "S-39": "Parameter servers, workers and TensorBoards are made by themselves.",
    "S-40": "Services are listed with role, state and counts.",
    "S-41": "Containers are listed with node, address, image, state and restarts.",
    "S-42": "A log of one replica alone.",
    "S-43": "A log from one moment to another.",
    "S-44": "The last lines within these moments.",
    "S-45": "A log becomes a file.",
    "S-46": "Workers train on parts of the data and meet at the servers.",
    "S-47": "What is written to files is no log; files are listed by themselves.",
    "S-48": "The training is done when the last worker is.",
    "S-49": "Results are seen with the tools of their storage.",
    "S-50": "Results of every worker are safe before the end, also after failure, stop and kill.",
    "S-51": "A stopped training is asked, then killed; log and results stay.",
    "S-52": "A stopped training goes on, and one that ended runs once more.",
    "S-53": "Deleting asks first; the objects go and the files stay.",
    "S-54": "What was freed serves those who wait.",
    "D-01": "One replica is shown without a number, and has one TensorBoard.",
    "D-02": "An image of somebody else's finds data, runs its command, and its results are kept.",
    "D-04": "A deleted worker comes back, and a stopped application is revived.",
    "D-05": "Logs of all, of a role and of one; all together by time, with their source.",
    "D-07": "Workers are stopped before their servers, by the signal that a container asks for or that is chosen then.",
    "D-11": "Data and code have names, and a training says these instead of writing them out.",
    "X-01": "TF_CONFIG is right for every role.",
    "X-02": "Four ranks reduce together, with torchrun and without.",
    "X-03": "A master that is late is waited for.",
    "X-04": "An evaluator is no part of the cluster, nor of the outcome.",
    "X-05": "The chief decides, or all workers do.",
    "X-06": "What is left running at the end goes, or stays, as the policy says.",
    "X-07": "130, 137, 138 and 143 are tried again, other codes are final.",
    "X-08": "All replicas share one limit of restarts.",
    "X-09": "Limits on run time, start and stay each end the job once, with the reason.",
    "X-10": "A paused job holds nothing, and goes on.",
    "X-11": "In debug mode nothing starts, and one can enter.",
    "X-12": "An elastic job grows and shrinks without failing.",
    "X-13": "All replicas start, or none.",
    "X-14": "Higher priority goes first, and who runs gives way to it and is queued again.",
    "X-15": "Job and events name what is lacking.",
    "X-16": "Phases, conditions and exit codes are complete.",
    "X-17": "Use per replica is measured.",
    "X-18": "`top` shows CPU and memory of jobs, pods and nodes.",
    "X-22": "Branch, tag, commit and folder of a repository; the commit is pinned.",
    "X-23": "Files travel with the job.",
    "X-24": "Shared memory has its size.",
    "X-25": "A variable from a secret is not shown.",
    "X-26": "Replicas are placed where they ask to be.",
    "X-27": "Ended jobs go when their time is over; others never do.",
    "X-31": "Files stay when a job is deleted.",
    "X-32": "A killed control plane loses no job.",
}
# What only the web console can show; the rest of the row has its tests.
CONSOLE = {
    "T-06": "the size in a form",
    "T-09": "the tab of replicas",
    "T-18": "the buttons",
}
# What only the web console can show, all of it.
CONSOLE_ALONE: dict[str, str] = {}
# What is not there, or is not shown by any test.
LACKING = {
    "H-24": "the embedded cluster has one node, so a volume for one node alone is never wanted by two",
}

ROW = re.compile(r"\b([THSDX])-(\d\d)\b")
IN_NAME = re.compile(r"_([thsdx])(\d\d)(?=_)")


@cache
def shown() -> dict[str, list[str]]:
    """Give the tests that name each row, as FILE::TEST."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        where = file.relative_to(TESTS.parent).as_posix()
        for name, rows in _named(ast.parse(file.read_text())):
            for row in rows:
                found.setdefault(row, []).append(f"{where}::{name}")
    return found


def _named(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            told = [f"{letter.upper()}-{number}" for letter, number in IN_NAME.findall(node.name)]
            told += [f"{letter}-{number}" for letter, number in ROW.findall(ast.get_docstring(node) or "")]
            yield node.name, list(dict.fromkeys(told))


HEAD = """\
# Feature matrix

Each row is one feature of the systems that Paceline replaces, and the tests that show it. **T**: T9k's tutorials,
**H**: the Helm chart for TensorFlow, **S**: the model-training service, **D**: other documentation of these systems,
**X**: similar systems. A test names its rows in its name or docstring. `python -m tests.docs.promises` writes this
page; a row without a test fails `make unit`.
"""


def page() -> str:
    """Give the page as it should be."""
    tests = shown()
    lines = [HEAD, "| row | promise | shown by |", "| --- | --- | --- |"]
    for row, sentence in PROMISES.items():
        names = [f"`{name}` ({where.removeprefix('tests/')})" for where, _, name in map(_split, tests.get(row, []))]
        lines.append(f"| {row} | {sentence} | {'<br>'.join(names) or 'no test yet'} |")
    lines += ["", "## Waits for the console", ""]
    lines += [f"- {row}: {what}" for row, what in sorted({**CONSOLE, **CONSOLE_ALONE}.items())]
    lines += ["", "## Lacking", ""]
    lines += [f"- {row}: {what}" for row, what in sorted(LACKING.items())]
    return "\n".join(lines) + "\n"


def _split(test: str) -> tuple[str, str, str]:
    return test.partition("::")


if __name__ == "__main__":
    PAGE.write_text(page())
