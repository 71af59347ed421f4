"""Descriptions of exit codes."""

SIGNALS = {1: "SIGHUP", 2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL"}
SIGNALS |= {11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}


def exit_words(code: int | None) -> str:
    """Describe an exit code and its signal: `exit code 137 (SIGKILL)`."""
    if code is None:
        return "no exit code"
    name = SIGNALS.get(code - 128) or SIGNALS.get(-code)
    return f"exit code {code} ({name})" if name else f"exit code {code}"
