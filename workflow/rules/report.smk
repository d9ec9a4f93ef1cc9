# Report: everything that a reader opens.


rule render_report:
    input:
        cells=rules.merge_evaluations.output.cells,
        claims=rules.merge_evaluations.output.claims,
        audit=rules.merge_evaluations.output.audit,
        provenance=rules.write_provenance.output.provenance,
        evidence=expand(rules.evaluate_study.output.evidence, study=PIPE.studies),
        notebooks=[
            rules.execute_notebook.output.notebook.format(study=study, kind=kind)
            for study, kind in PIPE.notebooks()
        ],
    output:
        index=f"{PATHS.html}/index.html",
    log:
        f"{PATHS.data}/logs/render_report.log",
    benchmark:
        f"{PATHS.data}/benchmarks/render_report.tsv"
    params:
        code=PIPE.code("report", "templates/**/*", "assets/**/*"),
        data=PATHS.data,
        executed=PATHS.executed,
        html=PATHS.html,
    shell:
        'echo "rendering the report" >&2; '
        "replicate render --data {params.data} --notebooks {params.executed}"
        " --output {params.html} > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"
