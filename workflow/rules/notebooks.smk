# Notebooks: papermill executes them on each study's full results.


rule execute_notebook:
    input:
        notebook=f"{PATHS.notebooks}/{{kind}}.ipynb",
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        published=f"{PATHS.published}/{{study}}.csv",
        design=rules.design_study.output.design,
        scenarios=rules.design_study.output.scenarios,
        flows=rules.collect_results.output.flows,
        series=rules.collect_results.output.series,
        verdicts=rules.evaluate_study.output.verdicts,
        quantities=rules.evaluate_study.output.quantities,
        vacuity=rules.evaluate_study.output.vacuity,
        own=rules.judge_own_data.output.own,
        program=PIPE.live_program,
        further=lambda wildcards: PIPE.notebook_inputs(wildcards.study, wildcards.kind),
    output:
        notebook=f"{PATHS.executed}/{{study}}.{{kind}}.ipynb",
    log:
        f"{PATHS.data}/logs/execute_notebook/{{study}}.{{kind}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/execute_notebook/{{study}}.{{kind}}.tsv"
    localrule: True
    params:
        code=PIPE.code.report,
        data=PATHS.data,
        live="--live" if PIPE.runs_live else "--no-live",
    shell:
        'echo "executing notebook {wildcards.kind} on {wildcards.study}" >&2; '
        "replicate step notebook {input.notebook} --study {wildcards.study} --data {params.data}"
        " {params.live} --output {output.notebook} > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"
