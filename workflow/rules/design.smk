# Design: from a study's YAML to points, scenarios and batches.


rule design_study:
    input:
        study="configs/studies/{study}.yaml",
        tier=f"configs/tiers/{PIPE.config.tier}.yaml",
    output:
        design=f"{PATHS.design}/{{study}}.csv",
        scenarios=f"{PATHS.design}/scenarios/{{study}}.json",
    log:
        f"{PATHS.data}/logs/design_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/design_study/{{study}}.tsv"
    params:
        code=PIPE.code("plan.design"),
        sources=lambda wildcards: PIPE.sources(
            wildcards.study, f"configs/tiers/{PIPE.config.tier}.yaml"
        ),
        selection=PIPE.selection,
        data=PATHS.data,
        # The batches are outputs too, but named by their content: see simulate_batch.
        batches=lambda wildcards: PIPE.batch_ids(wildcards.study),
    shell:
        'echo "designing {wildcards.study}" >&2; '
        "replicate design {wildcards.study} {params.selection}"
        " --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"
