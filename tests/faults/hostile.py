"""Hostile input: values that break careless readers, and documents that hold them."""

import struct

from hypothesis import strategies as st

#: What a string that reached a shell, Tcl or a path unquoted would make appear somewhere.
MARK = "PWNED"
#: Names, labels and paths that a shell, Tcl, SQL, HTML, a template or a file system would heed.
STRINGS = (
    f"[exec touch {MARK}]",
    f'"; exec touch {MARK}; #',
    f"$(touch {MARK})",
    f"`touch {MARK}`",
    f"'; touch {MARK}; '",
    f"| touch {MARK}",
    f"../../{MARK}",
    f"/tmp/{MARK}",
    f"<script>{MARK}</script>",
    f'"><img src=x onerror={MARK}>',
    "{{ 7*7 }}",
    "{%s}",
    "}",
    "{",
    "\\",
    "$x",
    "a b",
    "-rf",
    "--output",
    "",
    ".",
    "..",
    "con",
    "\n",
    "\r\n",
    "\t",
    "\u202e",
    "\u0000",
    "é" * 40,
    "x" * 10_000,
    "NaN",
    "1e999",
    "0x10",
    "010",
    "1:30",
    "a\u2028b",
    "\ufeff",
    "yes",
    "null",
)
#: What the reader under atheris leaves in a file: how many inputs it got, took and refused.
COUNTS = struct.Struct("3Q")
NUMBERS = (0, -1, 1, 2, 2**31, 2**53 + 1, 2**64, -(2**63), 10**400, 0.5, 1e-320, 1e308, -0.0)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))

scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from(NUMBERS + NOT_FINITE)
    | st.floats()
    | st.integers()
    | st.sampled_from(STRINGS)
    | st.text(max_size=20)
)
#: Any JSON value.
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)


def mutate(draw, document):
    """Replace, remove, double or add something somewhere in a valid document, in place."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and draw(st.integers(0, 3)):
            place = inner
            continue
        action = draw(st.sampled_from(["scale", "scale", "replace", "remove", "add"]))
        if action == "scale" and type(inner) in (int, float):
            factors = [2, 3, 100, 10**9] if type(inner) is int else [0.5, 1.5, 100.0, 1e9]
            place[key] = inner * draw(st.sampled_from([*factors, -1, 0]))
        elif action in ("replace", "scale"):
            place[key] = draw(scalars | anything)
        elif action == "remove":
            del place[key]
        elif isinstance(place, dict):
            place[draw(st.sampled_from(STRINGS) | st.text(max_size=10))] = draw(anything)
        else:
            place.append(draw(st.just(inner) | anything))
        return
