# Simulate: from a study's YAML to points, scenarios and batches; one job per batch, one process per scenario.


TIER = f"configs/tiers/{START.config.tier}.yaml"


rule design_study:
    input:
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        tier=ancient(TIER),
    output:
        design=f"{PATHS.data}/design/{{study}}.csv",
        scenarios=f"{PATHS.data}/design/scenarios/{{study}}.json",
    log:
        f"{PATHS.data}/logs/design_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/design_study/{{study}}.tsv"
    localrule: True
    params:
        code=code_of("simulate", "design_study"),
        sources=lambda wildcards: content_hash(TIER, *study_inputs(wildcards.study)),
        tier=START.config.tier,
        # The engines, each with the fingerprint in its batches' names.
        named=PLAN.named,
        ns3_version=START.config.ns3_version,
        batch_cost_s=PLAN.batch_cost_s,
    script:
        "../scripts/design_study.py"


rule simulate_batch:
    input:
        # A batch is named after its scenarios and so never goes stale. Without `ancient`, a changed claim would rerun
        # every batch.
        design=lambda wildcards: ancient(
            rules.design_study.output.design.format(
                study=PLAN.batches[wildcards.batch].study,
            )
        ),
        scenarios=lambda wildcards: ancient(
            rules.design_study.output.scenarios.format(
                study=PLAN.batches[wildcards.batch].study,
            )
        ),
        program=lambda wildcards: START.program_of(PLAN.batches[wildcards.batch].engine),
    output:
        flows=f"{PATHS.data}/batches/{{batch}}.flows.parquet",
        series=f"{PATHS.data}/batches/{{batch}}.series.parquet",
        usage=f"{PATHS.data}/batches/{{batch}}.usage.json",
    log:
        f"{PATHS.data}/logs/simulate_batch/{{batch}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/simulate_batch/{{batch}}.tsv"
    resources:
        # On a cluster, a job that ran out of time gets more time when it is retried.
        runtime=lambda wildcards, attempt: attempt * PIPE.runtime_min(wildcards.batch),
        mem_mb=PIPE.memory_mb,
    params:
        machine=lambda wildcards: START.machine(PLAN.batches[wildcards.batch].engine),
        fingerprint=lambda wildcards: START.fingerprint(
            PLAN.batches[wildcards.batch].engine
        ),
        listed_version=lambda wildcards: START.listed_version(
            PLAN.batches[wildcards.batch].engine
        ),
        totals=PATHS.totals,
    script:
        "../scripts/simulate_batch.py"


use rule simulate_batch as simulate_heavy_batch with:
    wildcard_constraints:
        batch="[a-z0-9]+-heavy-[0-9a-f]+",
    # Heaviest first, so that no long job runs last while other cores are idle.
    priority: 100


ruleorder: simulate_heavy_batch > simulate_batch


rule collect_results:
    input:
        # Snakemake does not look past an `ancient` input for a reason to run. Without this input, a change of runtime,
        # which renames the batches, would keep the old results.
        design=rules.design_study.output.design,
        flows=lambda wildcards: expand(
            rules.simulate_batch.output.flows,
            batch=PLAN.batch_ids(wildcards.study),
        ),
        series=lambda wildcards: expand(
            rules.simulate_batch.output.series,
            batch=PLAN.batch_ids(wildcards.study),
        ),
    output:
        flows=f"{PATHS.data}/results/{{study}}/flows.parquet",
        features=f"{PATHS.data}/results/{{study}}/features.parquet",
        series=f"{PATHS.data}/results/{{study}}/series.parquet",
    log:
        f"{PATHS.data}/logs/collect_results/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/collect_results/{{study}}.tsv"
    localrule: True
    params:
        code=code_of("judge", "collect_results"),
        features=lambda wildcards: PLAN.studies[wildcards.study].features,
    script:
        "../scripts/collect_results.py"
