# Evaluate: results against published numbers and claims.


rule evaluate_study:
    input:
        study="configs/studies/{study}.yaml",
        published=f"{PATHS.published}/{{study}}.csv",
        design=rules.design_study.output.design,
        scenarios=rules.design_study.output.scenarios,
        flows=rules.collect_results.output.flows,
        series=rules.collect_results.output.series,
    output:
        cells="{data}/evaluation/{study}/cells.csv",
        claims="{data}/evaluation/{study}/claims.csv",
        audit="{data}/evaluation/{study}/audit.csv",
        quantities="{data}/evaluation/{study}/quantities.csv",
        evidence="{data}/evaluation/{study}/evidence.parquet",
        typed_cells="{data}/evaluation/{study}/cells.parquet",
        typed_claims="{data}/evaluation/{study}/claims.parquet",
        # Grows, and outlives a failed run: what was set before the results, and every change since.
        registered=update("{data}/registered/{study}.json"),
    log:
        "{data}/logs/evaluate_study/{study}.log",
    benchmark:
        "{data}/benchmarks/evaluate_study/{study}.tsv"
    localrule: True
    params:
        code=PIPE.code("judge.evaluate"),
        sources=lambda wildcards: PIPE.sources(
            wildcards.study, f"{PATHS.published}/{wildcards.study}.csv"
        ),
    shell:
        'echo "judging {wildcards.study}" >&2; '
        "replicate step evaluate {wildcards.study} --data {wildcards.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"


rule merge_evaluations:
    input:
        cells=expand(rules.evaluate_study.output.cells, **OWN, study=PIPE.studies),
        claims=expand(rules.evaluate_study.output.claims, **OWN, study=PIPE.studies),
        audit=expand(rules.evaluate_study.output.audit, **OWN, study=PIPE.studies),
        typed_cells=expand(
            rules.evaluate_study.output.typed_cells, **OWN, study=PIPE.studies
        ),
        typed_claims=expand(
            rules.evaluate_study.output.typed_claims, **OWN, study=PIPE.studies
        ),
    output:
        typed_cells=f"{PATHS.data}/cells.parquet",
        typed_claims=f"{PATHS.data}/claims.parquet",
        cells=report(
            f"{PATHS.data}/cells.csv",
            caption="../report/cells.rst",
            category="Verdicts",
            labels={"file": "cells.csv"},
        ),
        claims=report(
            f"{PATHS.data}/claims.csv",
            caption="../report/claims.rst",
            category="Verdicts",
            labels={"file": "claims.csv"},
        ),
        audit=report(
            f"{PATHS.data}/audit.csv",
            caption="../report/audit.rst",
            category="Verdicts",
            labels={"file": "audit.csv"},
        ),
    log:
        f"{PATHS.data}/logs/merge_evaluations.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_evaluations.tsv"
    localrule: True
    params:
        code=PIPE.code("judge.evaluate"),
        studies=PIPE.studies,
        data=PATHS.data,
    shell:
        'echo "putting the verdicts together" >&2; '
        "replicate step merge {params.studies} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"
