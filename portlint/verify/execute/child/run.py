"""Runs a Python file under a device that is pretended: `python run.py FACTS EVENTS FILE [ARGUMENTS]`.

FACTS is JSON of the target, EVENTS the file that gets what was seen. The exit status is that of the file.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[4])  # where this package is, until it has been imported

from portlint.verify.execute.child.events import Events  # noqa: E402
from portlint.verify.execute.child.parts import Parts  # noqa: E402


def main() -> None:
    """Run the file as Python itself would."""
    facts: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    events = Events(Path(sys.argv[2]))
    sys.argv = sys.argv[3:]
    program = sys.argv[0]
    sys.path[0] = str(Path(program).resolve().parent)
    parts = Parts(facts, events)
    parts.install()
    ended: BaseException | None = None
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as error:
        ended = error
        raise
    except BaseException as error:  # whatever ends the file is reported
        ended = error
        parts.ended(error)
        sys.exit(1)
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        parts.close()
        events.close(ended)


if __name__ == "__main__":
    main()
