# Report: everything that a reader opens.


NOTEBOOKS = PIPE.executed()


# Every table that the report reads.
TABLES = [
    *expand(rules.judge_own_data.output.own, study=PIPE.studies),
    *rules.merge_evaluations.output,
    *rules.compare_engines.output,
    *(rules.compare_traces.output if PIPE.traced else []),
    *expand(
        [
            *rules.design_study.output,
            *rules.collect_results.output,
            *rules.evaluate_study.output,
        ],
        study=PIPE.studies,
    ),
]


rule write_provenance:
    input:
        tables=TABLES,
        # Their times belong to it too.
        notebooks=NOTEBOOKS,
        usage=expand(rules.simulate_batch.output.usage, batch=PIPE.batches),
    output:
        provenance=f"{PATHS.data}/provenance.json",
    log:
        f"{PATHS.data}/logs/write_provenance.log",
    benchmark:
        f"{PATHS.data}/benchmarks/write_provenance.tsv"
    localrule: True
    params:
        code=PIPE.code.report,
        settings=PIPE.settings,
        data=PATHS.data,
    shell:
        'echo "writing down what ran" >&2; '
        "replicate step provenance --settings {params.settings:q} --data {params.data}"
        " --output {output.provenance} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule render_report:
    input:
        tables=TABLES,
        provenance=rules.write_provenance.output.provenance,
        notebooks=NOTEBOOKS,
    output:
        index=f"{PATHS.html}/index.html",
    log:
        f"{PATHS.data}/logs/render_report.log",
    benchmark:
        f"{PATHS.data}/benchmarks/render_report.tsv"
    localrule: True
    # Pages are rendered side by side.
    threads: workflow.cores
    params:
        code=PIPE.code.report,
        shown=PIPE.shown,
        data=PATHS.data,
        executed=PATHS.executed,
        html=PATHS.html,
    shell:
        'echo "rendering the report" >&2; '
        "replicate render --data {params.data} --notebooks {params.executed} --output {params.html}"
        " > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"
