"""The flags of claims, as the report shows them beside verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replication.judge.flags.claim_flag import FLAGS
from replication.judge.flags.own_data import FAILS, NONE, OWN_DATA
from replication.study.storage.table import FLAG_COLUMNS, OWN_DATA_COLUMNS, read_rows

#: What is said of a claim whose test the paper's own data fail.
OWN_WORDS = "the paper's own data do not meet these words"


@dataclass(frozen=True)
class Flag:
    """What stands beside a claim's verdict on one engine.

    Attributes
    ----------
    vacuous
        Whether what was compared could not differ.
    evidence
        What shows it, or how much of the comparison could not; empty where all could.
    own_data, own_reason
        How the paper's own data fare (holds, fails, none), and what was found of them.
    """

    vacuous: bool = False
    evidence: str = ""
    own_data: str = NONE
    own_reason: str = ""

    @property
    def own_words(self) -> str:
        """What a reader must know of the paper's own data; empty where they pass or are none."""
        return OWN_WORDS if self.own_data == FAILS else ""


#: Beside what has no flags, such as a number.
NO_FLAG = Flag()
#: Study, claim and engine to what stands beside the verdict.
Flags = Mapping[tuple[str, str, str], Flag]


def read_flags(data: Path) -> dict[tuple[str, str, str], Flag]:
    """Return the flags of every claim on every engine.

    Raises
    ------
    InputError
        A table is missing or malformed.
    """
    own = {
        (row["study"], row["claim"]): row["reason"]
        for row in read_rows(data / OWN_DATA, OWN_DATA_COLUMNS)
    }
    return {
        (row["study"], row["claim"], row["engine"]): Flag(
            vacuous=row["vacuous"] == "true",
            evidence=row["evidence"],
            own_data=row["own_data"],
            own_reason=own.get((row["study"], row["claim"]), ""),
        )
        for row in read_rows(data / FLAGS, FLAG_COLUMNS)
    }
