"""`penstock bench` where the package was installed without the benchmarks, as from a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import penstock

# Only the package and what it depends on: neither the folder of the checkout nor its entry among the installed packages.
_WITHOUT_THE_CHECKOUT = """
import sys
package, checkout = sys.argv[1:3]
sys.path[:] = [package, *(path for path in sys.path if path and path != checkout)]
sys.argv = ["penstock", *sys.argv[3:]]
from penstock.cli.main import main
main()
"""


def test_it_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    package = Path(penstock.__file__).parent.parent
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    arguments = [str(package), str(package.parent), "bench", "--quick"]
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT_THE_CHECKOUT, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "clone the repository and run `make bench` there" in ended.stderr
    assert "Traceback" not in ended.stderr
