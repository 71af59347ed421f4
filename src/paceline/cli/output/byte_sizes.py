"""Human-readable byte sizes."""

KIBI = 1024
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """Format a number of bytes in binary units."""
    amount, unit = float(count), 0
    while amount >= KIBI and unit < len(UNITS) - 1:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{count} B"


def share(part: int, total: int) -> str:
    """Format a part as a percentage of the total; empty if the total is 0."""
    return f"{100 * part // total}%" if total else ""
