# Report: everything that a reader opens.


NOTEBOOKS = [
    rules.execute_notebook.output.notebook.format(study=study, kind=kind)
    for study, kind in PIPE.notebooks()
]


# Every table that the report reads.
TABLES = [
    *rules.merge_evaluations.output,
    *rules.compare_engines.output,
    *(rules.compare_traces.output if PIPE.traced else []),
    *rules.merge_conformance.output,
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
        # Their hashes are in it, so that no report mixes the results of two runs.
        tables=TABLES,
        # Their times belong to it too.
        notebooks=NOTEBOOKS,
        usage=expand(rules.simulate_batch.output.usage, batch=PIPE.batches),
    output:
        provenance=report(
            f"{PATHS.data}/provenance.json",
            caption="../report/provenance.rst",
            category="The run",
            labels={"file": "provenance.json"},
        ),
    log:
        f"{PATHS.data}/logs/write_provenance.log",
    benchmark:
        f"{PATHS.data}/benchmarks/write_provenance.tsv"
    params:
        code=PIPE.code("report.provenance"),
        selection=PIPE.selection,
        studies=",".join(PIPE.studies),
        config=PIPE.config.model_dump_json(),
    shell:
        'echo "writing down what ran" >&2; '
        "replicate provenance {params.selection} --studies {params.studies}"
        " --output {output.provenance} {input.tables} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule render_report:
    input:
        tables=TABLES,
        provenance=rules.write_provenance.output.provenance,
        notebooks=NOTEBOOKS,
    output:
        index=f"{PATHS.html}/index.html",
        # Gone if a file of the report was deleted or altered: then it is rendered again.
        seal=whole_or_unsealed(PATHS.html),
    log:
        f"{PATHS.data}/logs/render_report.log",
    benchmark:
        f"{PATHS.data}/benchmarks/render_report.tsv"
    params:
        code=PIPE.code("report.render", "report/templates/**/*", "report/assets/**/*", "report/*.csv"),
        # Shown if it is there; the report does not wait for it.
        sensitivity=PIPE.content(*sorted(PATHS.sensitivity.glob("*/*.csv"))),
        data=PATHS.data,
        executed=PATHS.executed,
        html=PATHS.html,
        # Shown if there is one; a report never waits for it.
        ladder=sha256_of(*filter(Path.is_file, [PATHS.data / "ladder.csv"])),
        bench=PIPE.content(PATHS.data / "bench.json"),
        reliability=PIPE.content(PATHS.data / "reliability.json"),
    shell:
        'echo "rendering the report" >&2; '
        "replicate render --data {params.data} --notebooks {params.executed}"
        " --output {params.html} > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"
