"""Run scenarios on the engines that `make engines` has built."""

import pytest
from measurements.bench import program
from replication.engines.ns3 import NS3_VERSION, Prefix, installed

from tests.engines.engine_bench import TRAITS, Bench
from tests.workflow.project import ROOT


def linked_ns3():
    """Return the ns-3 that the engine is linked to: that of NS3_PREFIX, or the wheel."""
    wheel = ROOT / "data/reproduced/engines" / f"ns3-wheel-{NS3_VERSION}" / "ns3"
    return installed(NS3_VERSION) or Prefix.find(wheel)


def fixtures(engine):
    """Return the fixtures `<engine>_program` and `<engine>`, a bench."""

    @pytest.fixture(scope="session", name=f"{engine}_program")
    def its_program():
        return program(engine)

    @pytest.fixture(scope="session", name=engine)
    def its_bench(request, tmp_path_factory):
        return Bench(
            engine, request.getfixturevalue(f"{engine}_program"), tmp_path_factory.mktemp(engine)
        )

    return its_program, its_bench


ns3_program, ns3 = fixtures("ns3")
ns2_program, ns2 = fixtures("ns2")
linux_program, linux = fixtures("linux")


@pytest.fixture(scope="session", params=list(TRAITS))
def bench(request):
    """Return each engine in turn."""
    return request.getfixturevalue(request.param)
