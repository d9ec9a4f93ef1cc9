# The version ladder: tier quick of two studies on every version of ns-3 that is available.


import functools

from replication.compare.ladder import load_settings

# Planned only if it is asked for.
RUNGS = load_settings(REPO)
LADDER = functools.cache(lambda: Ladder.load(REPO))
RUNG = f"{PATHS.ladder}/{{version}}"


use rule design_study as design_rung with:
    input:
        study="configs/studies/{study}.yaml",
        tier=f"configs/tiers/{RUNGS.tier}.yaml",
    output:
        design=f"{RUNG}/design/{{study}}.csv",
        scenarios=f"{RUNG}/design/scenarios/{{study}}.json",
    log:
        f"{RUNG}/logs/design_rung/{{study}}.log",
    benchmark:
        f"{RUNG}/benchmarks/design_rung/{{study}}.tsv"
    wildcard_constraints:
        study="|".join(RUNGS.studies),
    params:
        code=PIPE.code("plan.design"),
        selection=lambda wildcards: LADDER().rungs[wildcards.version].selection,
        data=RUNG,
        batches=lambda wildcards: LADDER()
        .rungs[wildcards.version]
        .batch_ids(wildcards.study),


use rule simulate_batch as simulate_rung with:
    input:
        design=lambda wildcards: ancient(
            rules.design_rung.output.design.format(
                version=wildcards.version,
                study=LADDER().rungs[wildcards.version].batches[wildcards.batch].study,
            )
        ),
        program=lambda wildcards: LADDER().rungs[wildcards.version].program_of("ns3"),
    output:
        flows=f"{RUNG}/batches/{{batch}}.flows.parquet",
        series=f"{RUNG}/batches/{{batch}}.series.parquet",
        usage=f"{RUNG}/batches/{{batch}}.usage.json",
    log:
        f"{RUNG}/logs/simulate_rung/{{batch}}.log",
    benchmark:
        f"{RUNG}/benchmarks/simulate_rung/{{batch}}.tsv"
    resources:
        runtime=lambda wildcards, attempt: attempt
        * LADDER().rungs[wildcards.version].runtime_min(wildcards.batch),
        mem_mb=PIPE.memory_mb,
    params:
        code=PIPE.code("run.simulate"),
        launch=lambda wildcards: LADDER()
        .rungs[wildcards.version]
        .launch(wildcards.batch),
        batch=f"{RUNG}/design/batches/{{batch}}.json",
        store=lambda wildcards: LADDER().rungs[wildcards.version].store(wildcards.batch),
        memory=PIPE.config.memory_limit_bytes,
        time=PIPE.config.time_limit_s,
        goal=PATHS.goal,


use rule collect_results as collect_rung with:
    input:
        design=rules.design_rung.output.design,
        flows=lambda wildcards: expand(
            rules.simulate_rung.output.flows,
            version=wildcards.version,
            batch=LADDER().rungs[wildcards.version].batch_ids(wildcards.study),
        ),
        series=lambda wildcards: expand(
            rules.simulate_rung.output.series,
            version=wildcards.version,
            batch=LADDER().rungs[wildcards.version].batch_ids(wildcards.study),
        ),
    output:
        flows=f"{RUNG}/results/{{study}}/flows.parquet",
        series=f"{RUNG}/results/{{study}}/series.parquet",
    log:
        f"{RUNG}/logs/collect_rung/{{study}}.log",
    benchmark:
        f"{RUNG}/benchmarks/collect_rung/{{study}}.tsv"
    wildcard_constraints:
        study="|".join(RUNGS.studies),


use rule evaluate_study as evaluate_rung with:
    input:
        study="configs/studies/{study}.yaml",
        published=f"{PATHS.published}/{{study}}.csv",
        design=rules.design_rung.output.design,
        scenarios=rules.design_rung.output.scenarios,
        flows=rules.collect_rung.output.flows,
        series=rules.collect_rung.output.series,
    output:
        cells=f"{RUNG}/evaluation/{{study}}/cells.csv",
        claims=f"{RUNG}/evaluation/{{study}}/claims.csv",
        audit=f"{RUNG}/evaluation/{{study}}/audit.csv",
        quantities=f"{RUNG}/evaluation/{{study}}/quantities.csv",
        evidence=f"{RUNG}/evaluation/{{study}}/evidence.parquet",
        typed_cells=f"{RUNG}/evaluation/{{study}}/cells.parquet",
        typed_claims=f"{RUNG}/evaluation/{{study}}/claims.parquet",
    log:
        f"{RUNG}/logs/evaluate_rung/{{study}}.log",
    benchmark:
        f"{RUNG}/benchmarks/evaluate_rung/{{study}}.tsv"
    wildcard_constraints:
        study="|".join(RUNGS.studies),
    params:
        code=PIPE.code("judge.evaluate"),
        data=lambda wildcards: RUNG.format(version=wildcards.version),


rule compare_versions:
    input:
        cells=lambda wildcards: expand(
            rules.evaluate_rung.output.cells,
            version=LADDER().rungs,
            study=RUNGS.studies,
        ),
        claims=lambda wildcards: expand(
            rules.evaluate_rung.output.claims,
            version=LADDER().rungs,
            study=RUNGS.studies,
        ),
    output:
        table=f"{PATHS.data}/ladder.csv",
        stamp=f"{PATHS.data}/ladder.json",
    log:
        f"{PATHS.data}/logs/compare_versions.log",
    benchmark:
        f"{PATHS.ladder}/benchmarks/compare_versions.tsv"
    params:
        code=PIPE.code("compare.ladder"),
        versions=lambda wildcards: list(LADDER().rungs),
        data=PATHS.data,
    shell:
        'echo "comparing the versions" >&2; '
        "replicate ladder {params.versions} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}; cat {log} >&2"


rule ladder:
    input:
        rules.compare_versions.output.table,
