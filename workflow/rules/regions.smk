# Regions: where the papers' claims hold, over buffers, delays, rates and other axes. Not part of the report's rules:
# `make regions` runs them, and the report shows their results if they exist.


REGION = f"{PATHS.regions}/{{region}}"
VARIED = f"{PATHS.regions}/{{variation}}/{{study}}"


wildcard_constraints:
    region="[a-z0-9][a-z0-9_.-]*",
    variation="[a-z_]+",


# Every region of the chosen studies on each available engine, and the studies that are judged under a named variation.
# An invalid file ends the workflow with exit code 2.
regions_to_explore = lambda wildcards: exit_with_error()(rule_inputs.region_runs)(
    REPO, PIPE.engines, PIPE.studies
)
studies_to_vary = lambda wildcards: exit_with_error()(rule_inputs.variation_runs)(
    REPO, PIPE.engines, PIPE.studies
)
region_study_files = lambda wildcards: study_inputs(
    rule_inputs.region_study(REPO, wildcards.region)
)
variation_engine = lambda wildcards: rule_inputs.variation_engine(
    REPO, wildcards.variation
)


rule explore_region:
    input:
        region=ancient("configs/regions/{region}.yaml"),
        settings=ancient("configs/regions.yaml"),
        study=lambda wildcards: ancient(region_study_files(wildcards)),
        program=lambda wildcards: START.program_of(wildcards.engine),
    output:
        result=f"{REGION}/{{engine}}.json",
        scenarios=f"{REGION}/{{engine}}.scenarios.json",
    log:
        f"{PATHS.data}/logs/explore_region/{{region}}.{{engine}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explore_region/{{region}}.{{engine}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        code=code_of("judge", "explore_region"),
        sources=lambda wildcards: content_hash(
            f"configs/regions/{wildcards.region}.yaml",
            "configs/regions.yaml",
            *region_study_files(wildcards),
        ),
        tier=START.config.tier,
        machine=lambda wildcards: START.machine(wildcards.engine),
    script:
        "../scripts/explore_region.py"


rule judge_variation:
    input:
        variation=ancient("configs/{variation}.yaml"),
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        program=lambda wildcards: START.program_of(variation_engine(wildcards)),
    output:
        claims=f"{VARIED}.claims.json",
        scenarios=f"{VARIED}.claims.scenarios.json",
    log:
        f"{PATHS.data}/logs/judge_variation/{{variation}}.{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/judge_variation/{{variation}}.{{study}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        code=code_of("judge", "judge_variation"),
        sources=lambda wildcards: content_hash(
            f"configs/{wildcards.variation}.yaml", *study_inputs(wildcards.study)
        ),
        tier=START.config.tier,
        machine=lambda wildcards: START.machine(variation_engine(wildcards)),
    script:
        "../scripts/judge_variation.py"


rule merge_regions:
    input:
        results=lambda wildcards: expand(
            f"{PATHS.regions}/{{run}}.json", run=regions_to_explore(wildcards)
        ),
        varied=lambda wildcards: expand(
            f"{PATHS.regions}/{{run}}.claims.json", run=studies_to_vary(wildcards)
        ),
    output:
        table=f"{PATHS.data}/regions.csv",
    log:
        f"{PATHS.data}/logs/merge_regions.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_regions.tsv"
    localrule: True
    params:
        code=code_of("judge", "merge_regions"),
    script:
        "../scripts/merge_regions.py"


rule regions:
    input:
        rules.merge_regions.output.table,
    localrule: True
