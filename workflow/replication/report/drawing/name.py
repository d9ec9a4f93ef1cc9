"""Names of what the report writes for a study: two things never share one.

A name is its parts between tildes; no id holds a tilde, and any other text is quoted.
"""

from __future__ import annotations

import hashlib
import re

#: What file systems, with an end and a temporary file's mark, take as one name.
_LONGEST = 200
_QUOTED = re.compile(r"[^A-Za-z0-9_.,=-]")


def name_of(*parts: str) -> str:
    """Return `parts` as one name: other parts give another name.

    Names of figures and runs begin with study and experiment, either of them empty where a figure
    belongs to none. The charts' script makes the same of a number's table, row and column.
    """
    return "~".join(_QUOTED.sub(_quote, part) for part in parts)


def file_of(name: str) -> str:
    """Return the file of what is called `name`, without its end; a long one ends in a hash."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}+sha256-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _quote(sign: re.Match[str]) -> str:
    return "".join(f"+{byte:02x}" for byte in sign[0].encode())
