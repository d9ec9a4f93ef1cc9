"""The commands about engines: `replicate engines`, and what `make engines` and tests call."""

from __future__ import annotations

from typing import Annotated

import typer

from replication.cli.option import HERE, Ns3, Root, given


def engines(ns3: Ns3 = None, root: Root = HERE) -> None:
    """List the engines: which are there, in which version, and what the others lack.

    Example: replicate engines
    """
    from replication.plan.provision import state

    for line in state(root, given(ns3_version=ns3)):
        print(line)


def install_engines(
    engines: Annotated[str, typer.Option(help="Comma-separated engines.")] = "all",
    root: Root = HERE,
) -> None:
    """Install what the engines need from Debian; `make engines` then builds them.

    Example: replicate install-engines --engines ns2
    """
    from replication.plan.config import listed
    from replication.plan.provision import provide

    names = None if engines in ("all", "available") else listed(engines)
    for line in provide(root, names):
        print(line, flush=True)


def program(
    engine: Annotated[str, typer.Argument(help="An engine's name.")],
    ns3: Ns3 = None,
    root: Root = HERE,
) -> None:
    """Print where an engine's program is, once `make engines` has built it.

    Example: replicate program ns3
    """
    from replication.plan.config import load_config
    from replication.plan.paths import Paths

    settings = given(engines=engine, ns3_version=ns3)
    config = load_config(root / "configs" / "config.yaml", settings)
    print((root / config.engine(engine).program(root, Paths().data)).resolve())
