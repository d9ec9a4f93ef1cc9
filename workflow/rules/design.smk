# Design: from a study's YAML to points, scenarios and batches.


rule design_study:
    input:
        study="configs/studies/{study}.yaml",
        tier=lambda wildcards: plan_of(wildcards).tier_file,
    output:
        design="{data}/design/{study}.csv",
        scenarios="{data}/design/scenarios/{study}.json",
    log:
        "{data}/logs/design_study/{study}.log",
    benchmark:
        "{data}/benchmarks/design_study/{study}.tsv"
    localrule: True
    params:
        code=PIPE.code("plan.design"),
        sources=lambda wildcards: plan_of(wildcards).sources(
            wildcards.study, plan_of(wildcards).tier_file
        ),
        # What the batches are named by is in it.
        selection=lambda wildcards: plan_of(wildcards).selection,
    shell:
        'echo "designing {wildcards.study}" >&2; '
        "replicate step design {wildcards.study} {params.selection}"
        " --data {wildcards.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"
