# Evaluate: results against published numbers and claims.


rule evaluate_study:
    input:
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        published=f"{PATHS.published}/{{study}}.csv",
        causes=lambda wildcards: PIPE.causes_of(wildcards.study),
        design=rules.design_study.output.design,
        scenarios=rules.design_study.output.scenarios,
        flows=rules.collect_results.output.flows,
        features=rules.collect_results.output.features,
    output:
        verdicts=f"{PATHS.data}/evaluation/{{study}}/verdicts.parquet",
        audit=f"{PATHS.data}/evaluation/{{study}}/audit.csv",
        vacuity=f"{PATHS.data}/evaluation/{{study}}/vacuity.csv",
        quantities=f"{PATHS.data}/evaluation/{{study}}/quantities.csv",
        evidence=f"{PATHS.data}/evaluation/{{study}}/evidence.parquet",
    log:
        f"{PATHS.data}/logs/evaluate_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/evaluate_study/{{study}}.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        data=PATHS.data,
    shell:
        'echo "judging {wildcards.study}" >&2; '
        "replicate step evaluate {wildcards.study} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"


# What a paper prints and traces is put to its claims' tests, without any run of ours.
rule judge_own_data:
    input:
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        published=f"{PATHS.published}/{{study}}.csv",
    output:
        own=f"{PATHS.data}/evaluation/{{study}}/own_data.csv",
    log:
        f"{PATHS.data}/logs/judge_own_data/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/judge_own_data/{{study}}.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        # As in compare_traces.
        traces=lambda wildcards: PIPE.traces if wildcards.study in PIPE.traced else "",
        data=PATHS.data,
    shell:
        'echo "judging {wildcards.study} by its own data" >&2; '
        "replicate step own-data {wildcards.study} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"


rule merge_evaluations:
    input:
        own=expand(rules.judge_own_data.output.own, study=PIPE.studies),
        vacuity=expand(rules.evaluate_study.output.vacuity, study=PIPE.studies),
        verdicts=expand(rules.evaluate_study.output.verdicts, study=PIPE.studies),
        audit=expand(rules.evaluate_study.output.audit, study=PIPE.studies),
    output:
        verdicts=f"{PATHS.data}/verdicts.parquet",
        cells=f"{PATHS.data}/cells.csv",
        claims=f"{PATHS.data}/claims.csv",
        flags=f"{PATHS.data}/claim_flags.csv",
        own=f"{PATHS.data}/own_data.csv",
        audit=f"{PATHS.data}/audit.csv",
    log:
        f"{PATHS.data}/logs/merge_evaluations.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_evaluations.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        studies=PIPE.studies,
        data=PATHS.data,
    shell:
        'echo "putting the verdicts together" >&2; '
        "replicate step merge {params.studies} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"
