"""Set-ups: sets of atoms that are simulated, each at one of its levels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replication.judge.causes.atom import Atom, Explanations
from replication.study.study import Study

#: Atom and level, in the order of the atoms' ids.
SetUp = tuple[tuple[str, str], ...]
#: The documented defaults.
DEFAULTS: SetUp = ()


def with_atom(set_up: SetUp, atom: str, level: str) -> SetUp:
    """Return a set-up with an atom at a level, whichever it had before."""
    return tuple(sorted({**dict(set_up), atom: level}.items()))


def without_atom(set_up: SetUp, atom: str) -> SetUp:
    """Return a set-up without an atom."""
    return tuple(pair for pair in set_up if pair[0] != atom)


def in_words(pairs: Iterable[tuple[str, str]]) -> str:
    """Return atoms and levels as one text."""
    return ", ".join(f"{atom}={level}" for atom, level in pairs) or "the documented defaults"


@dataclass(frozen=True)
class Space:
    """The set-ups of a study that its atoms make.

    Attributes
    ----------
    study
        The study at its documented defaults.
    explanations
        Its atoms.
    """

    study: Study
    explanations: Explanations

    @property
    def atoms(self) -> list[Atom]:
        """The atoms that are simulated."""
        return self.explanations.of_kind("set-up")

    def singles(self) -> list[SetUp]:
        """Return each atom alone at each of its levels."""
        return [((atom.id, key),) for atom in self.atoms for key in atom.settings]

    def bits(self, set_up: SetUp) -> float:
        """Return what naming the set-up's atoms and levels takes."""
        found = self.explanations
        return sum(
            (found.atom_bits + found.by_id[atom].level_bits(level) for atom, level in set_up), 0.0
        )

    def on(self, set_up: SetUp) -> Study:
        """Return the study with the set-up; InputError where they do not fit together."""
        changed = self.study
        for atom, level in set_up:
            changed = self.explanations.by_id[atom].setting(level).on(changed)
        return changed
