# Traces: published congestion windows against the reproduced ones.


rule compare_traces:
    input:
        studies=PIPE.study_files(*PIPE.traced),
        published=expand(f"{PATHS.published}/{{study}}.csv", study=PIPE.traced),
        design=expand(rules.design_study.output.design, study=PIPE.traced),
        scenarios=expand(rules.design_study.output.scenarios, study=PIPE.traced),
        flows=expand(rules.collect_results.output.flows, study=PIPE.traced),
        # Of every replicate: what is collected has the series of those that are drawn.
        series=[
            file
            for study in PIPE.traced
            for file in expand(
                rules.simulate_batch.output.series, batch=PIPE.batch_ids(study)
            )
        ],
    output:
        comparison=f"{PATHS.data}/trace_comparison.csv",
        nearness=f"{PATHS.data}/trace_nearness.csv",
        windows=f"{PATHS.data}/trace_windows.parquet",
    log:
        f"{PATHS.data}/logs/compare_traces.log",
    benchmark:
        f"{PATHS.data}/benchmarks/compare_traces.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        # The raw traces are not part of the project and may be absent: their hash stands for them.
        traces=PIPE.traces,
        studies=PIPE.traced,
        data=PATHS.data,
    shell:
        'echo "comparing the published traces" >&2; '
        "replicate step compare-traces {params.studies} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"
