"""Check the release by making its verdicts and pages again."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from replication.base.errors import InputError
from replication.base.table import SELF_CONSISTENCY_COLUMNS, flat, read_parquet, read_rows
from replication.compare.agreement import TABLES, Agreement, agreements_of, write_tables
from replication.design.config import load_study_of
from replication.metrics.results import Results
from replication.metrics.trace_source import has_traces, trace_files
from replication.report.manifest import NOTEBOOK_PAGES, PAGES, RELEASED, check_release, listing
from replication.report.pages.source import Source
from replication.report.release import JUDGED, released_results
from replication.report.render import RELEASED_TABLES, worker_pool, write_report
from replication.study.published import published_path
from replication.verdicts.evaluate import evaluate_study, merge
from replication.verdicts.self_consistency import SELF_CONSISTENCY, write_self_consistency
from replication.verdicts.verdict_table import NAME as VERDICTS
from replication.verdicts.verdict_table import primary_engines


def check_fully(root: Path) -> str:
    """Check the files of the release, judge its results and render its pages again.

    Return what was checked, in sentences. InputError names the files that differ.
    """
    said, results = check_release(root), released_results(root)
    # The largest studies come first, so that no process waits long at the end.
    designs = sorted((results / "design").glob("*.csv"), key=lambda path: -path.stat().st_size)
    by_size = [path.stem for path in designs]
    studies = sorted(by_size)
    with tempfile.TemporaryDirectory() as folder, worker_pool(len(studies)) as pool:
        work = Path(folder)
        again = shutil.copytree(results, work / "data")
        pages = work / PAGES
        judging = {study: pool.submit(_judge, root, again, study) for study in by_size}
        pages.mkdir(parents=True)
        source = Source.load(root, results, RELEASED_TABLES)
        write_report(pool, source, results / "no notebooks", pages)
        write_tables(again, flat(judging[study].result() for study in studies))
        evaluations = [again / "evaluation" / study for study in studies]
        merge(evaluations, primary_engines(root, again, studies), again)
        _require_same_verdicts(again, results)
        counts = _require_same_pages(root, work)
    documents = [load_study_of(root, results, study) for study in studies]
    traced = [study.id for study in documents if has_traces(study)]
    kept = [study for study in traced if not trace_files(root, study)]
    return "\n".join([said, *_said(*counts, kept)])


def _judge(root: Path, data: Path, study: str) -> list[Agreement]:
    """Judge the results of a study in `data` again; return the agreement of its engines."""
    document = load_study_of(root, data, study)
    folder = data / "evaluation" / study
    by_setup = Results.load_each(data, study)
    evaluate_study(document, published_path(root, study), by_setup, folder)
    # Rows that rest on raw traces are kept, since the traces may not be here.
    kept = read_rows(folder / SELF_CONSISTENCY, SELF_CONSISTENCY_COLUMNS)
    write_self_consistency(root, data, study, kept)
    return agreements_of(root, data, document)


def _require_same_verdicts(again: Path, results: Path) -> None:
    differing = []
    for name in (*JUDGED, *TABLES):
        if (again / name).read_bytes() != (results / name).read_bytes():
            differing.append(name)
    if not read_parquet(again / VERDICTS).equals(read_parquet(results / VERDICTS)):
        differing.append(VERDICTS)
    if differing:
        raise InputError(
            f"{RELEASED}: judging its features and flows again gives a different "
            f"{', '.join(differing)}; `make release` renews it"
        )


def _require_same_pages(root: Path, rendered: Path) -> tuple[int, int]:
    """Return how many released files were rendered to the same bytes, and how many not at all."""
    again, released = (listing(folder, PAGES).digests for folder in (rendered, root))
    lectures = {name for name in released if Path(name).is_relative_to(NOTEBOOK_PAGES)}
    differing = sorted({name for name, _ in again.items() ^ released.items()} - lectures)
    if differing:
        more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
        raise InputError(
            f"{PAGES}: rendering {RELEASED} again gives a different "
            f"{', '.join(differing[:5])}{more}; `make release` renews it"
        )
    return len(again), len(lectures)


def _said(rendered: int, lectures: int, kept: Sequence[str]) -> Iterator[str]:
    """Yield what was made again, and what was only compared with the manifest."""
    verdicts = ", ".join((*JUDGED, VERDICTS, *TABLES))
    yield f"Judging its features and flows again gives the same {verdicts}."
    if kept:
        yield (
            f"The traces of {', '.join(kept)} are not here (`make traces`), so the rows of "
            f"{SELF_CONSISTENCY} that rest on them were not judged again."
        )
    yield f"Rendering it again gives the same {rendered} files of {PAGES}."
    yield (
        f"Only compared with the manifest: {lectures} files of {NOTEBOOK_PAGES} "
        f"(`replicate refresh-notebooks` makes them), and all other files of {RELEASED}."
    )
