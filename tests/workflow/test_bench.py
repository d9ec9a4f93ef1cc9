"""The bench: a batch and a loop are both timed, and a line says why there is no ratio."""

from tests import bench


def test_a_batch_and_a_shell_loop_run_the_same_scenarios(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "RUNS", {"ns3": 2})
    monkeypatch.setattr(bench, "TURNS", 1)
    _, ratio, *times = bench.batch_line("ns3", tmp_path)
    assert float(ratio) > 0 and len(times) == 2
    assert all((tmp_path / f"loop/{number}/flows.csv").is_file() for number in range(2))
    monkeypatch.delenv("NS3_PREFIX", raising=False)
    assert bench.build_line(tmp_path)[1] == "NS3_PREFIX names no ns-3"
