"""One run: one method of one peer on one problem, in a process of its own on pinned threads."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import environments

FOLDER = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Outcome:
    """What a run said about itself, or why it said nothing (`failure`)."""

    facts: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def run(
    peer: str,
    method: str,
    options: dict[str, Any],
    problem: Path,
    seconds: float,
    threads: int = 1,
    script: Path | None = None,
) -> Outcome:
    """Run it, and never raise because of it: a failing peer is a result."""
    script = script or FOLDER / "peers" / f"run_{peer}.py"
    try:
        python = environments.python(peer)
    except environments.InstallationError as reason:
        return Outcome(failure=f"failed to install: {reason}")
    command = [str(python), str(script), str(problem), method, json.dumps(options)]
    source = str(environments.ROOT / "src") if peer in environments.OWN else None
    return parse(command, seconds, threads, source)


def parse(
    command: list[str], seconds: float, threads: int = 1, source: str | None = None
) -> Outcome:
    """The JSON in the last line that a command prints, within a limit of CPU seconds.

    The library is imported from `source`, where its environment has only its dependencies.
    """
    pinned = {**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONWARNINGS": "ignore"}
    if source is not None:
        pinned["PYTHONPATH"] = source
    process = subprocess.Popen(
        command,
        env=pinned,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that a run's own children end with it
    )
    over = Outcome(failure=f"over {seconds:g} s")
    allowed = int(threads * seconds)
    try:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (allowed, allowed + 5))
        # A busy machine may take its time, but not for ever.
        out, err = process.communicate(timeout=10 * seconds)
    except ProcessLookupError:
        out, err = process.communicate()
    except subprocess.TimeoutExpired:
        return over
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        killed = Outcome(failure="failed: killed, most likely for its memory")
        return over if process.returncode == -signal.SIGXCPU else killed
    if process.returncode:
        lines = [line.strip() for line in err.splitlines() if line.strip()]
        said = lines[-1] if lines else f"signal or exit status {process.returncode}"
        return Outcome(failure=f"failed: {said[:200]}")
    try:
        return Outcome(dict(json.loads(out.strip().splitlines()[-1])))
    except (json.JSONDecodeError, IndexError):
        return Outcome(failure=f"failed: printed no result but {out.strip()[-100:]!r}")
