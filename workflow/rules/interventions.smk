# Interventions: stated causes, switched on and off. Not part of the report's rules: `make interventions` runs them and
# copies their table to data/interventions.csv, which is committed and which the report shows.


INTERVENTIONS = f"{PATHS.data}/interventions"

intervention_studies = lambda wildcards: exit_with_error()(
    rule_inputs.intervention_studies
)(REPO, wildcards.engine)


rule measure_interventions:
    input:
        interventions=ancient("configs/interventions.yaml"),
        studies=lambda wildcards: ancient(
            study_inputs(*intervention_studies(wildcards))
        ),
        program=lambda wildcards: START.program_of(wildcards.engine),
    output:
        table=f"{INTERVENTIONS}/{{engine}}/interventions.csv",
    log:
        f"{PATHS.data}/logs/measure_interventions/{{engine}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/measure_interventions/{{engine}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        code=code_of("judge", "measure_interventions"),
        sources=lambda wildcards: content_hash(
            "configs/interventions.yaml",
            *study_inputs(*intervention_studies(wildcards)),
        ),
        machine=lambda wildcards: START.machine(wildcards.engine),
    script:
        "../scripts/measure_interventions.py"


rule merge_interventions:
    input:
        tables=expand(rules.measure_interventions.output.table, engine=PIPE.engines),
    output:
        table=f"{PATHS.data}/interventions.csv",
    log:
        f"{PATHS.data}/logs/merge_interventions.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_interventions.tsv"
    localrule: True
    params:
        code=code_of("judge", "merge_interventions"),
    script:
        "../scripts/merge_interventions.py"


rule interventions:
    input:
        rules.merge_interventions.output.table,
    localrule: True
