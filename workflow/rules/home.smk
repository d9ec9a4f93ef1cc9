# Home: the code that runs is this folder's own. An environment that came along with a copied folder
# has the original's, and a PYTHONPATH may have anybody's.
import os
from importlib.util import find_spec


def require_own_code(package):
    """Leave, in one line and with exit code 2, if another package would be imported."""
    found = find_spec("replication")
    if found is None or not found.origin or not package.samefile(found.origin):
        print(
            f"error: folder {workflow.basedir}: this Python has not its code, but "
            f"{found.origin or 'a folder' if found else 'none'}: run it by make, or in its own "
            "environment (make setup) and without PYTHONPATH",
            file=sys.stderr,
            flush=True,
        )
        # Snakemake turns an exception, SystemExit too, into a traceback and exit code 1.
        os._exit(2)


require_own_code(Path(workflow.basedir, "workflow/replication/__init__.py"))
