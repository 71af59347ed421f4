"""What a program said last, for the status of its pod: what it wrote for that, or the end of its log."""

from dataclasses import replace
from pathlib import Path

from paceline.apimachinery.meta import Object
from paceline.effects import Files
from paceline.node.lifecycle.view import Ended
from paceline.node.logs.logs import Plain, tail_offset
from paceline.node.logs.rotated_log import RotatedLog

FROM_LOG = "FallbackToLogsOnError"
LINES, BYTES = 80, 2048
# More of a log than this is not read to find its last lines.
READ_BYTES = 64 * 1024


def with_log(container: Object, ended: Ended, files: Files, folder: Path) -> Ended:
    """Give an end its last words, where the container wants them taken from its log."""
    if container.get("terminationMessagePolicy") != FROM_LOG or ended.exit_code == 0 or ended.message:
        return ended
    return replace(ended, message=end_of_log(files, folder))


def end_of_log(files: Files, folder: Path) -> str:
    """Read the last lines of a log, as many as a kubelet takes."""
    pages = RotatedLog(files, folder)
    size = pages.size()
    begin = tail_offset(pages, size, LINES)
    offset = max(begin, size - READ_BYTES)
    data = b""
    while more := pages.read_range(offset + len(data), READ_BYTES):
        data += more
    if offset > begin:
        data = data.partition(b"\n")[2]
    whole = data[: data.rfind(b"\n") + 1]
    return Plain(timestamps=False).take(whole)[-BYTES:].decode(errors="replace")
