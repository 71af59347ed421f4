"""What a process holds."""

from pathlib import Path


def memory_of(pid):
    """Give what a process holds alone and with its part of what it shares (Rss, Pss), in MB."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return tuple(
        next(int(row.split()[1]) / 1024 for row in rows if row.startswith(f"{name}:")) for name in ("Rss", "Pss")
    )
