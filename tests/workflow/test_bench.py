"""The bench: a batch and a loop are both timed, and a line says why there is no ratio."""

from tests import bench


def test_a_batch_and_a_shell_loop_run_the_same_scenarios(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "RUNS", {"ns3": 2})
    monkeypatch.setattr(bench, "TURNS", 1)
    (row,) = bench.batch_rows(tmp_path)
    assert row.ours and row.other, row.note
    loop = [(tmp_path / f"loop/{number}/flows.csv").is_file() for number in range(2)]
    assert loop == [True, True]
    assert f"{row.ours / row.other:.2f}" in bench.table([row])


def test_without_another_ns3_a_line_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("NS3_PREFIX", raising=False)
    assert "NS3_PREFIX names no ns-3" in bench.table([bench.build_row(tmp_path)])
