"""The charts say what the templates say.

In     charts/ and the shelf of templates.
Out    the files that are not current.
Never  writes a chart: `make charts` does.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_chart_is_current():
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "charts.py", "--check"], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
