"""The ns-3 program under AddressSanitizer and UndefinedBehaviorSanitizer, built for the tests.

Same sources and Makefile; only the compiler's command differs, and the pool of small objects is
left out, since it hides the C library's allocator from AddressSanitizer. ns-3's own libraries are
those of the wheel, not instrumented: what they do wrong is seen where it touches our memory.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "workflow" / "engines" / "ns3"
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SANITIZE += ("-fno-omit-frame-pointer",)
COMPILER = " ".join(["g++", *SANITIZE])
#: Leaks are ns-3's own: it frees little at its end. A finding ends the program with a code that
#: it never gives itself.
FOUND = 99
ENVIRONMENT = {
    "ASAN_OPTIONS": f"detect_leaks=0:exitcode={FOUND}",
    "UBSAN_OPTIONS": f"print_stacktrace=1:exitcode={FOUND}",
}


def build_sanitized(prefix: Path, build: Path) -> Path:
    """Build the program against the ns-3 in `prefix`; return its path."""
    objects = [build / f"{p.stem}.o" for p in sorted((SOURCES / "src").glob("*.cpp"))]
    command = ["make", "--silent", "-C", str(SOURCES), f"NS3_PREFIX={prefix}", f"BUILD={build}"]
    command += [f"CXX={COMPILER}"]
    command += ["OBJECTS=" + " ".join(str(o) for o in objects if o.stem != "pool")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return build / "replicate-ns3"
