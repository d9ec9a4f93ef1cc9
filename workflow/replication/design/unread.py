"""Files that look like input and that nothing reads."""

from difflib import get_close_matches
from pathlib import Path

from replication.base.errors import InputError
from replication.design.config import STUDIES, explanations_path, study_ids
from replication.study.published import published_path

#: The files of a study's folder.
_OF_STUDY = ("study.yaml", "claims.yaml", "changes.yaml", "findings.yaml")


def check_all_read(root: Path) -> None:
    """Raise InputError for a document or CSV of no study, and for one with a misspelt name."""
    for folder in sorted((root / STUDIES).glob("*/")):
        check_folder(folder)
    for name in ("tiers", "explanations", "regions"):
        for path in sorted((root / "configs" / name).glob("*.yml")):
            raise InputError(f"{path}: is not read; rename it to {path.stem}.yaml")
    studies = study_ids(root)
    for path_of in (published_path, explanations_path):
        example = path_of(root, "*")
        for path in sorted(example.parent.glob(example.name)):
            if path.stem not in studies:
                near = get_close_matches(path.stem, studies, 1)
                nearest = f" (nearest: {near[0]})" if near else ""
                raise InputError(
                    f"{path}: there is no study {path.stem!r}{nearest}; remove or rename the file, "
                    f"or add {root / STUDIES / path.stem}"
                )


def check_folder(folder: Path) -> None:
    """Raise InputError for a document in a study's folder that is not read."""
    documents = [path for path in sorted(folder.glob("*")) if path.suffix in (".yaml", ".yml")]
    for path in documents:
        if path.name not in _OF_STUDY:
            near = get_close_matches(path.name, _OF_STUDY, 1)
            remedy = f"rename it to {near[0]}, or remove it" if near else "remove it"
            raise InputError(f"{path}: is not read; {remedy} (read: {', '.join(_OF_STUDY)})")
    if documents and not (folder / "study.yaml").is_file():
        raise InputError(f"{folder}: has no study.yaml; add it")
