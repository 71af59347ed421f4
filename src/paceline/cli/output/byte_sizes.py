"""Numbers of bytes, for people."""

KIBI = 1024
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """Write a number of bytes."""
    amount, unit = float(count), 0
    while amount >= KIBI and unit < len(UNITS) - 1:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{count} B"


def share(part: int, total: int) -> str:
    """Write how much of something a part is; nothing of nothing."""
    return f"{100 * part // total}%" if total else ""
